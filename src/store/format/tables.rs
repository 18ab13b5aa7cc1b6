//! The tables of a collection's file, and the marks that identify such a file.
//! A change here is a new format: raise [`FORMAT`], and teach `upgrade.rs` to convert the old one.

/// The letters "hapx". They identify our files among SQLite files, also for `file(1)`.
pub(super) const APPLICATION_ID: i32 = 0x6861_7078;
/// The format that this version writes.
pub(in crate::store) const FORMAT: i32 = 8;

pub(super) const TABLES: &str = "
CREATE TABLE meta (
    only          INTEGER PRIMARY KEY CHECK (only = 1),
    name          TEXT    NOT NULL,
    spec          TEXT    NOT NULL,
    bands         INTEGER NOT NULL,
    rows          INTEGER NOT NULL,
    threshold     REAL    NOT NULL,
    created_ms    INTEGER NOT NULL,
    sum           INTEGER NOT NULL,
    keep          TEXT    NOT NULL DEFAULT 'signature',
    verify        TEXT    NOT NULL DEFAULT 'estimate',
    ttl_ms        INTEGER,
    touch         INTEGER NOT NULL DEFAULT 0,
    seen_floor_ms INTEGER NOT NULL DEFAULT 0,
    banding_by_hand INTEGER NOT NULL DEFAULT 0,
    extract       TEXT    NOT NULL DEFAULT 'article',
    extractor     INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE TABLE ledger (
    tally         TEXT    PRIMARY KEY,
    rows          INTEGER NOT NULL,
    sum           INTEGER NOT NULL,
    last_seq      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE signature (
    seq            INTEGER PRIMARY KEY,
    id_fingerprint INTEGER NOT NULL,
    content_prefix INTEGER NOT NULL,
    flags          INTEGER NOT NULL,
    bytes          BLOB    NOT NULL,
    sum            INTEGER NOT NULL,
    cluster        INTEGER NOT NULL DEFAULT 0,
    seen_ms        INTEGER NOT NULL DEFAULT 0,
    labels         TEXT
) STRICT;
CREATE TABLE document (
    seq            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL,
    metadata       TEXT,
    content_hash   BLOB    NOT NULL,
    flags          INTEGER NOT NULL,
    first_seen_ms  INTEGER NOT NULL,
    shingles       INTEGER,
    verdict        TEXT    NOT NULL,
    sum            INTEGER NOT NULL,
    id_first_seen_ms INTEGER,
    page_hash      BLOB,
    extractor      INTEGER,
    capture_date   TEXT,
    payload_digest TEXT
) STRICT;
INSERT INTO ledger VALUES ('signature', 0, 0, 0), ('document', 0, 0, 0);
";

/// The table and the row that format 2 adds to format 1, apart from columns.
pub(super) const TABLES_SINCE_2: &str = "
CREATE TABLE payload (
    seq            INTEGER PRIMARY KEY,
    kind           INTEGER NOT NULL,
    shingles       INTEGER NOT NULL,
    size_sum       INTEGER NOT NULL,
    bytes          BLOB    NOT NULL,
    sum            INTEGER NOT NULL
) STRICT;
INSERT INTO ledger SELECT 'payload', 0, 0, last_seq FROM ledger WHERE tally = 'signature';
";

/// The table and the row that format 4 adds: labelled pairs of texts. No transaction with documents changes them.
pub(super) const TABLES_SINCE_4: &str = "
CREATE TABLE golden (
    pair           INTEGER PRIMARY KEY,
    name           TEXT,
    a              TEXT    NOT NULL,
    b              TEXT    NOT NULL,
    duplicate      INTEGER NOT NULL,
    sum            INTEGER NOT NULL
) STRICT;
INSERT INTO ledger VALUES ('golden', 0, 0, 0);
";

/// The tables and the rows that format 6 adds: jobs, the documents that deletions by label must still remove, the
/// reports of merges, and statistics. A row of `doomed` has up to 512 documents, and the first of them is its key.
pub(super) const TABLES_SINCE_6: &str = "
CREATE TABLE job (
    number         INTEGER PRIMARY KEY,
    job            TEXT    NOT NULL,
    sum            INTEGER NOT NULL
) STRICT;
CREATE TABLE doomed (
    first          INTEGER PRIMARY KEY,
    deletion       INTEGER NOT NULL,
    seqs           BLOB    NOT NULL,
    sum            INTEGER NOT NULL
) STRICT;
CREATE TABLE merged (
    place          INTEGER PRIMARY KEY,
    merge          INTEGER NOT NULL,
    source         INTEGER NOT NULL,
    report         TEXT    NOT NULL,
    sum            INTEGER NOT NULL
) STRICT;
CREATE INDEX merged_by_source ON merged (merge, source);
CREATE TABLE statistics (
    place          INTEGER PRIMARY KEY,
    label          TEXT    NOT NULL,
    counts         TEXT    NOT NULL,
    sum            INTEGER NOT NULL
) STRICT;
INSERT INTO ledger VALUES ('job', 0, 0, 0), ('doomed', 0, 0, 0), ('merged', 0, 0, 0), ('statistics', 0, 0, 0);
";
