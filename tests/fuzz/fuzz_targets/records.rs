//! A record -> its rows on disk -> the same record. Also rows that another program wrote, with checksums as
//! docs/inside.md defines them: such a row is refused or read, and a record that was read is stored again without a
//! change. A row with one wrong bit in its checksum is always refused.

use std::cell::RefCell;
use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use hapax::store::{Change, Changeable, Meta, Record, Store, StoredMatch, StoredVerdict, Writer, path_of};
use hapax::types::{
    Capture, CaptureDate, CollectionName, DocId, Extract, Keep, Label, Labels, Metadata, Overlap, PageMark,
    PayloadDigest, Seq, TimestampMs, VerdictKind, Verify,
};
use hapax_core::{ContentHash, ShingleSet};
use rusqlite::{Connection, params};
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A collection, and a connection to its file that bypasses the store.
struct Place {
    store: Store,
    writer: Writer,
    outside: Connection,
    seq: u64,
    _dir: TempDir,
}

thread_local! {
    static PLACE: RefCell<Place> = RefCell::new(Place::new());
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let changeable = Changeable {
            bands: 31,
            rows: 8,
            banding_by_hand: false,
            threshold: 0.8,
            verify: Verify::Estimate,
            ttl_ms: None,
            touch: false,
        };
        let meta = Meta {
            name: CollectionName::default_collection(),
            spec: "a spec".to_owned(),
            keep: Keep::Signature,
            extract: Extract::Article,
            extractor: 1,
            created: TimestampMs(1),
            seen_floor: TimestampMs(0),
            changeable,
        };
        let path = path_of(dir.path(), &meta.name);
        let (store, writer) = Store::create(&path, &meta).unwrap();
        let outside = Connection::open(&path).unwrap();
        Self { store, writer, outside, seq: 0, _dir: dir }
    }

    /// Stores the record, and deletes the previous one.
    fn store(&mut self, record: &Record) {
        let mut changes = vec![Change::Insert(Arc::new(record.clone()))];
        if self.seq > 0 {
            changes.insert(0, Change::Delete { seq: Seq(record.seq.0 - 1), target: Seq(self.seq), promoted: None });
        }
        self.writer.commit(&changes, record.seq).expect("a valid record is stored");
        self.seq = record.seq.0;
    }

    /// Overwrites the row of the document, with this error in its checksum.
    fn overwrite(&self, row: &Row, wrong: u64) {
        let id_first_seen = row.id_first_seen;
        let change = "UPDATE document SET id = ?2, metadata = ?3, content_hash = ?4, flags = ?5, first_seen_ms = ?6,
                      shingles = ?7, verdict = ?8, id_first_seen_ms = ?9, page_hash = ?11, extractor = ?12,
                      capture_date = ?13, payload_digest = ?14, sum = ?10 WHERE seq = ?1";
        let sum = row.sum(self.seq) ^ wrong;
        let values = params![
            self.seq as i64,
            row.id,
            row.metadata,
            row.content,
            row.flags,
            row.first_seen,
            row.shingles.map(|shingles| shingles as i64),
            row.verdict,
            id_first_seen,
            sum as i64,
            row.page.map(|page| page.hash.to_be_bytes()),
            row.page.map(|page| page.extractor),
            row.capture_date,
            row.payload_digest
        ];
        self.outside.prepare_cached(change).unwrap().execute(values).unwrap();
    }
}

/// A row of `document`, with any values.
struct Row {
    id: String,
    metadata: Option<String>,
    content: [u8; 16],
    flags: u8,
    first_seen: i64,
    shingles: Option<u64>,
    verdict: String,
    id_first_seen: Option<i64>,
    page: Option<PageMark>,
    capture_date: Option<String>,
    payload_digest: Option<String>,
}

impl Row {
    fn sum(&self, seq: u64) -> u64 {
        let mut bytes = [&seq.to_le_bytes()[..], &self.first_seen.to_le_bytes(), &self.content, &[self.flags]].concat();
        match self.shingles {
            None => bytes.push(0),
            Some(shingles) => bytes.extend([&[1][..], &shingles.to_le_bytes()].concat()),
        }
        for text in [Some(&self.id), self.metadata.as_ref(), Some(&self.verdict)] {
            match text {
                None => bytes.push(0),
                Some(text) => {
                    bytes.extend([&[1][..], &(text.len() as u64).to_le_bytes(), text.as_bytes()].concat());
                }
            }
        }
        bytes.extend(self.id_first_seen.iter().flat_map(|time| time.to_le_bytes()));
        if let Some(PageMark { hash, extractor }) = self.page {
            bytes.extend([&[1][..], &hash.to_be_bytes(), &extractor.to_le_bytes()].concat());
        }
        for (tag, text) in [(2, &self.capture_date), (3, &self.payload_digest)] {
            if let Some(text) = text {
                bytes.extend([&[tag, 1][..], &(text.len() as u64).to_le_bytes(), text.as_bytes()].concat());
            }
        }
        xxh3_64_with_seed(&bytes, 2)
    }
}

fn text(from: &mut Unstructured<'_>, max: usize) -> Result<String> {
    let text: String = from.arbitrary()?;
    Ok(text.chars().take(max / 4).collect())
}

fn id(from: &mut Unstructured<'_>) -> Result<DocId> {
    let text = text(from, 2048)?;
    Ok(DocId::new(if text.is_empty() { "a".to_owned() } else { text }).expect("at most 2048 bytes"))
}

fn verdict(from: &mut Unstructured<'_>) -> Result<StoredVerdict> {
    let threshold: f64 = from.arbitrary()?;
    let matches = (0..from.int_in_range(0..=3)?).map(|_| {
        let overlap = Overlap { both: from.arbitrary()?, query: from.arbitrary()?, found: from.arbitrary()? };
        let overlap = from.arbitrary::<bool>()?.then_some(overlap);
        Ok(StoredMatch { seq: Seq(from.arbitrary()?), matching: from.arbitrary()?, exact: from.arbitrary()?, overlap })
    });
    let matches = matches.collect::<Result<_>>()?;
    Ok(StoredVerdict {
        kind: *from.choose(&VerdictKind::ALL)?,
        duplicate_of: from.arbitrary::<bool>()?.then(|| id(from)).transpose()?,
        threshold: if threshold.is_finite() { threshold } else { 0.5 },
        candidates: from.arbitrary()?,
        unread: from.arbitrary()?,
        matches,
    })
}

fn record(from: &mut Unstructured<'_>, seq: u64) -> Result<Record> {
    let metadata = text(from, 200)?;
    Ok(Record {
        seq: Seq(seq),
        id: id(from)?,
        id_fingerprint: from.arbitrary()?,
        signature: from.arbitrary()?,
        content: ContentHash(from.arbitrary()?),
        given: from.arbitrary()?,
        linked: from.arbitrary()?,
        labels: labels(from)?,
        capture: capture(from)?,
        metadata: (!metadata.is_empty()).then(|| Metadata::new(metadata).expect("short")),
        first_seen: TimestampMs(from.arbitrary()?),
        id_first_seen: TimestampMs(from.arbitrary()?),
        seen: TimestampMs(from.arbitrary()?),
        cluster: Seq(0),
        shingles: from.arbitrary()?,
        page: page(from)?,
        verdict: verdict(from)?,
        payload: None,
    })
}

fn labels(from: &mut Unstructured<'_>) -> Result<Option<Labels>> {
    let labels = (0..from.int_in_range(0..=4)?).map(|number: u8| {
        let value = text(from, 40)?;
        Ok(Label::new(&format!("label-{number}"), &value)
            .unwrap_or_else(|_| Label::new("none", "none").expect("valid")))
    });
    let labels = labels.collect::<Result<Vec<_>>>()?;
    // Two labels may have the same name. In this case, the document gets no labels.
    Ok(Labels::new(labels).ok().filter(|labels| !labels.is_empty()))
}

fn capture(from: &mut Unstructured<'_>) -> Result<Capture> {
    let date = from.choose(&[None, Some("2026"), Some("2026-11-20T10:00:00.123456789Z")])?;
    let digest = from.choose(&[None, Some("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"), Some("md5:00")])?;
    Ok(Capture {
        date: date.map(|date| CaptureDate::new(date).expect("valid")),
        digest: digest.map(|digest| PayloadDigest::new(digest).expect("valid")),
    })
}

fn page(from: &mut Unstructured<'_>) -> Result<Option<PageMark>> {
    let page = PageMark { hash: from.arbitrary()?, extractor: from.arbitrary()? };
    Ok(from.arbitrary::<bool>()?.then_some(page))
}

/// Returns any text, the valid text, or none.
fn foreign(from: &mut Unstructured<'_>, valid: &str) -> Result<Option<String>> {
    Ok(match from.int_in_range(0..=3)? {
        0 => Some(text(from, 40)?),
        1 => Some(valid.to_owned()),
        _ => None,
    })
}

fn foreign_row(from: &mut Unstructured<'_>) -> Result<Row> {
    Ok(Row {
        content: from.arbitrary()?,
        flags: from.arbitrary()?,
        first_seen: from.arbitrary()?,
        shingles: from.arbitrary()?,
        id_first_seen: from.arbitrary()?,
        page: page(from)?,
        // Some of these values are valid.
        capture_date: foreign(from, "2026-11")?,
        payload_digest: foreign(from, "sha1:A")?,
        id: text(from, 4096)?,
        metadata: from.arbitrary::<bool>()?.then(|| text(from, 200)).transpose()?,
        // This field gets the rest of the input, so that a fuzzer can write JSON.
        verdict: String::from_utf8_lossy(from.bytes(from.len())?).into_owned(),
    })
}

fn check(place: &mut Place, from: &mut Unstructured<'_>) -> Result<()> {
    // Shingle sets have a format of their own.
    let hashes: Vec<u64> = from.arbitrary()?;
    let set = ShingleSet::new(hashes);
    assert_eq!(ShingleSet::from_bytes(&set.to_bytes(), set.len()).as_ref(), Some(&set));
    let (bytes, len): (Vec<u8>, u64) = from.arbitrary()?;
    if let Some(read) = ShingleSet::from_bytes(&bytes, len) {
        assert_eq!(read.len(), len);
    }
    // Each record takes two positions: one for the deletion of the previous record, then its own.
    let seq = place.seq + 2;
    let made = record(from, seq)?;
    place.store(&made);
    assert_eq!(place.store.record(Seq(seq)).expect("it is sound").as_ref(), Some(&made));
    let row = foreign_row(from)?;
    place.overwrite(&row, 1 << (row.flags % 64));
    place.store.record(Seq(seq)).expect_err("the checksum is wrong");
    place.overwrite(&row, 0);
    if let Ok(read) = place.store.record(Seq(seq)) {
        let mut read = read.expect("it is there");
        read.seq = Seq(seq + 2);
        place.store(&read);
        assert_eq!(place.store.record(Seq(seq + 2)).expect("it is sound"), Some(read));
    }
    Ok(())
}

pub fn run(data: &[u8]) {
    PLACE.with_borrow_mut(|place| _ = check(place, &mut Unstructured::new(data)));
}
