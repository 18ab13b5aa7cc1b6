//! Files of signatures -> the file of a new collection. Each row becomes a record with the next `seq`. Rows are
//! compared only with the earlier rows that they name.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use hapax_core::verify::matching_slots;
use hapax_core::{ContentHash, ShingleSet, SignatureShape};

use super::columns::Column;
use super::error::LoadError;
use super::reader::LoadFile;
use super::row::{Row, Wrong};
use super::stored_verdict;
use crate::grams::GramSize;
use crate::store::{
    Additions, Building, Built, Earlier, Meta, Record, StoreError, StoredMatch, StoredVerdict, id_fingerprint,
};
use crate::types::{CollectionName, DocId, Keep, Overlap, Payload, PayloadKind, Seq, TimestampMs};
use crate::verdicts::{Settings, gram_size, is_of_nothing, is_packed_text, unpacked_grams};

/// The number of rows that are looked up together. `stop` is called before each such group of rows.
const TOGETHER: usize = 64;
/// A row of a file has at least this many bytes, unless the file compresses well.
const ROW_BYTES: u64 = 128;

/// The numbers of rows that a load took from its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The documents of the new collection, links included.
    pub documents: u64,
    pub links: u64,
    /// The rows without a signature. Their texts were empty, and a collection never stores such documents.
    pub empty: u64,
}

/// What records are put into.
pub trait Target {
    /// Adds a record. Its `seq` is one higher than that of the record before.
    fn push(&mut self, record: Record) -> Result<(), StoreError>;
    /// Returns the parts of a record that was added before.
    fn earlier(&mut self, seq: Seq) -> Result<Earlier, StoreError>;
    /// Returns whether no more records are wanted.
    fn is_closed(&self) -> bool {
        false
    }
}

impl Target for Building {
    fn push(&mut self, record: Record) -> Result<(), StoreError> {
        Self::push(self, record)
    }

    fn earlier(&mut self, seq: Seq) -> Result<Earlier, StoreError> {
        Self::earlier(self, seq)
    }
}

/// The file of a collection. It is complete, checked and on disk, but does not have its final name yet.
pub struct Made {
    pub file: Built,
    pub loaded: Loaded,
}

/// The progress of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadProgress {
    /// The number of rows that were read.
    Rows(u64),
    /// The share of the new file that was read again.
    Checked(f64),
}

/// Builds the file of the collection `name`, which will be at `path`, from files that have the same settings. Ends with
/// an error if `stop` returns true. `stop` is called from time to time, and before and after the new file is checked.
/// The caller must hold the lock of the data directory.
pub fn build(
    files: Vec<LoadFile>,
    (name, path): (&CollectionName, &Path),
    default: &Settings,
    progress: &dyn Fn(LoadProgress),
    stop: &dyn Fn() -> bool,
) -> Result<Made, LoadError> {
    check_same(&files)?;
    let first = files.first().expect("a load has a file");
    let settings = first.settings().settings(default).checked()?;
    let meta = Meta {
        name: name.clone(),
        spec: settings.spec.to_string(),
        keep: settings.keep,
        extract: settings.extract,
        extractor: first.settings().extractor,
        created: TimestampMs::now(),
        seen_floor: TimestampMs(0),
        changeable: settings.changeable(),
    };
    let building = Building::begin(path, &meta)?;
    let (building, loaded) = read_into(files, &settings, (building, meta.created), progress, stop)?;
    if stop() {
        return Err(LoadError::Cancelled);
    }
    let file = building.complete(&|share| progress(LoadProgress::Checked(share)))?;
    if stop() { Err(LoadError::Cancelled) } else { Ok(Made { file, loaded }) }
}

/// Makes records of the rows of files that have the same settings, and puts them into `target`. A row without a time gets
/// the time `now`. Ends with an error if `stop` returns true.
pub fn read_into<T: Target>(
    files: Vec<LoadFile>,
    settings: &Settings,
    (target, now): (T, TimestampMs),
    progress: &dyn Fn(LoadProgress),
    stop: &dyn Fn() -> bool,
) -> Result<(T, Loaded), LoadError> {
    let mut rows = Rows {
        target,
        shape: settings.spec.shape(),
        keep: settings.keep,
        grams: gram_size(&settings.spec),
        threshold: settings.threshold,
        now,
        known: KnownRows::default(),
        loaded: Loaded::default(),
    };
    rows.known.reserve(files.iter().map(rows_at_most).fold(0, usize::saturating_add));
    let mut read = 0;
    for file in files {
        let label = file.label().to_owned();
        file.read(|mut first, batch| {
            read += batch.len() as u64;
            let mut batch = batch.into_iter();
            while !batch.as_slice().is_empty() {
                if stop() || rows.target.is_closed() {
                    return Err(LoadError::Cancelled);
                }
                rows.known.prefetch(batch.as_slice().iter().take(TOGETHER).flatten().map(|row| &row.id));
                for (at, row) in (first..).zip(batch.by_ref().take(TOGETHER)) {
                    let added = row.map_err(Failed::from).and_then(|row| rows.add(row));
                    added.map_err(|failed| failed.at(&label, at))?;
                }
                first += TOGETHER as u64;
            }
            progress(LoadProgress::Rows(read));
            Ok(())
        })?;
    }
    Ok((rows.target, rows.loaded))
}

/// Returns the number of rows according to the file's metadata, but at most the number that is plausible for a file of
/// this size.
fn rows_at_most(file: &LoadFile) -> usize {
    usize::try_from(file.rows().min(file.bytes() / ROW_BYTES)).unwrap_or(0)
}

/// Refuses files that do not have the same spec and settings.
pub fn check_same(files: &[LoadFile]) -> Result<(), LoadError> {
    let [first, others @ ..] = files else { return Ok(()) };
    match others.iter().find(|file| file.settings() != first.settings()) {
        None => Ok(()),
        Some(other) => Err(LoadError::File {
            file: other.label().to_owned(),
            detail: format!("its spec or its settings are not those of {}", first.label()),
        }),
    }
}

/// The reason why a row was not added.
enum Failed {
    Wrong(Wrong),
    Store(StoreError),
}

impl From<Wrong> for Failed {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(wrong)
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failed {
    fn at(self, file: &str, row: u64) -> LoadError {
        match self {
            Self::Wrong((column, detail)) => {
                LoadError::Row { file: file.to_owned(), row, column: column.name(), detail }
            }
            Self::Store(error) => LoadError::Store(error),
        }
    }
}

fn wrong(column: Column, detail: impl Into<String>) -> Failed {
    Failed::Wrong((column, detail.into()))
}

/// The rows that were added so far.
struct Rows<T> {
    target: T,
    shape: SignatureShape,
    keep: Keep,
    /// The n of a containment collection.
    grams: Option<GramSize>,
    threshold: f64,
    now: TimestampMs,
    known: KnownRows,
    loaded: Loaded,
}

impl<T: Target> Rows<T> {
    fn add(&mut self, mut row: Row) -> Result<(), Failed> {
        let signature = row.signature.take().filter(|signature| !is_of_nothing(signature, self.shape));
        let Some(signature) = signature else {
            self.loaded.empty += 1;
            return Ok(());
        };
        let seq = Seq(self.loaded.documents + 1);
        let hash = self.known.hash(&row.id);
        if self.row_with(hash, &row.id)?.is_some() {
            return Err(wrong(Column::Id, format!("an earlier row has the same id {:?}", row.id.as_str())));
        }
        check_parts(&row)?;
        let payload = self.payload(row.payload)?;
        let content = row.content.map(ContentHash);
        let ours = Ours { signature: &signature, content };
        let representative = row.representative.as_ref().map(|id| self.representative(id)).transpose()?;
        let linked = representative.is_some() && row.linked != Some(false);
        let verdict = match (&row.verdict, &representative) {
            (Some(json), _) => self.verdict(json, &ours)?,
            (None, None) => stored_verdict::of_unknown(self.threshold, None),
            (None, Some((seq, earlier))) => {
                let found = self.judged(&ours, *seq, earlier, None);
                stored_verdict::of_unknown(self.threshold, Some((earlier.id.clone(), found)))
            }
        };
        let first_seen = row.first_seen.unwrap_or(self.now);
        let Additions { metadata, labels, capture, page } = row.additions;
        let record = Record {
            seq,
            id_fingerprint: id_fingerprint(&row.id),
            id: row.id,
            signature,
            content: content.unwrap_or(ContentHash(0)),
            given: content.is_none(),
            linked,
            metadata,
            labels,
            capture,
            first_seen,
            id_first_seen: row.id_first_seen.unwrap_or(first_seen),
            seen: row.last_seen.unwrap_or(first_seen),
            cluster: representative.map_or(Seq(0), |(seq, _)| seq),
            shingles: row.shingles,
            page,
            verdict,
            payload,
        };
        let stands = !linked && record.cluster == Seq(0);
        self.known.add(hash, KnownRow { seq, stands });
        self.target.push(record)?;
        self.loaded.documents += 1;
        self.loaded.links += u64::from(linked);
        Ok(())
    }

    /// If the collection stores shingles or texts, returns those of a row, and refuses a row without them.
    fn payload(&self, given: Option<(Vec<u8>, u64)>) -> Result<Option<Arc<Payload>>, Failed> {
        let kind = match self.keep {
            Keep::Signature => return Ok(None),
            Keep::Shingles if self.grams.is_some() => PayloadKind::Grams,
            Keep::Shingles => PayloadKind::Shingles,
            Keep::Text => PayloadKind::Text,
        };
        let keep = self.keep.as_str();
        let missing = || wrong(Column::Payload, format!("it has no value, but the collection keeps `{keep}`"));
        let (bytes, shingles) = given.ok_or_else(missing)?;
        if kind == PayloadKind::Shingles && ShingleSet::from_bytes(&bytes, shingles).is_none() {
            return Err(wrong(Column::Payload, format!("it is not a set of {shingles} shingles")));
        }
        if kind == PayloadKind::Text && !is_packed_text(&bytes) {
            return Err(wrong(Column::Payload, "it is not a text as `hapax export` writes it"));
        }
        let payload = Payload { kind, shingles, bytes };
        if self.grams.is_some_and(|size| unpacked_grams(size, &payload).is_none()) {
            return Err(wrong(Column::Payload, format!("it is not a set of {shingles} n-grams")));
        }
        Ok(Some(Arc::new(payload)))
    }

    /// Returns the earlier row with this id.
    fn row_of(&mut self, id: &DocId) -> Result<Option<(KnownRow, Earlier)>, Failed> {
        self.row_with(self.known.hash(id), id)
    }

    fn row_with(&mut self, hash: u64, id: &DocId) -> Result<Option<(KnownRow, Earlier)>, Failed> {
        for known in self.known.of(hash) {
            let earlier = self.target.earlier(known.seq)?;
            if earlier.id == *id {
                return Ok(Some((known, earlier)));
            }
        }
        Ok(None)
    }

    fn representative(&mut self, id: &DocId) -> Result<(Seq, Earlier), Failed> {
        let shown = id.as_str();
        match self.row_of(id)? {
            Some((KnownRow { seq, stands: true }, earlier)) => Ok((seq, earlier)),
            Some(_) => Err(wrong(Column::Representative, format!("{shown:?} has a representative itself"))),
            None => Err(wrong(Column::Representative, format!("no earlier row has the id {shown:?}"))),
        }
    }

    fn verdict(&mut self, json: &str, ours: &Ours<'_>) -> Result<StoredVerdict, Failed> {
        let mut failed = None;
        let verdict = stored_verdict::from_json(json, |(id, overlap)| match self.row_of(&id) {
            Ok(Some((known, earlier))) => Ok(self.judged(ours, known.seq, &earlier, overlap)),
            Ok(None) => Err(format!("a match names the id {:?}, but no earlier row has this id", id.as_str())),
            Err(error) => {
                failed = Some(error);
                Err(String::new())
            }
        });
        verdict.map_err(|detail| failed.unwrap_or_else(|| wrong(Column::Verdict, detail)))
    }

    /// Compares a row with an earlier one.
    fn judged(&self, ours: &Ours<'_>, seq: Seq, earlier: &Earlier, overlap: Option<Overlap>) -> StoredMatch {
        let matching = matching_slots(ours.signature, &earlier.signature, self.shape);
        let equal = ours.content.is_some() && ours.content == earlier.content;
        StoredMatch { seq, matching, exact: equal && ours.signature == earlier.signature, overlap }
    }
}

/// Refuses values that contradict each other.
fn check_parts(row: &Row) -> Result<(), Failed> {
    if row.content.is_some() && row.shingles.is_none_or(|shingles| shingles == 0) {
        return Err(wrong(Column::Shingles, "a content hash needs the number of shingles, at least 1"));
    }
    if row.content.is_none() && row.shingles.is_some() {
        return Err(wrong(Column::ContentHash, "a number of shingles needs a content hash"));
    }
    if row.additions.page.is_some() && row.content.is_none() {
        return Err(wrong(Column::HtmlHash, "the hash of a page needs a content hash"));
    }
    if row.linked == Some(true) && row.representative.is_none() {
        return Err(wrong(Column::Linked, "a link needs a representative"));
    }
    Ok(())
}

/// The parts of a row by which it is compared.
struct Ours<'a> {
    signature: &'a [u8],
    content: Option<ContentHash>,
}

/// A row that was added.
#[derive(Clone, Copy)]
struct KnownRow {
    seq: Seq,
    /// Whether the row can represent a cluster.
    stands: bool,
}

/// The rows that were added, indexed by the hash of their id. A row takes 16 bytes and the overhead of the table. The
/// hash has a random key, so that nothing in a file can make many ids have the same hash.
#[derive(Default)]
struct KnownRows {
    key: RandomState,
    first: HashMap<u64, u64, BuildHasherDefault<Hashed>>,
    /// Rows with the same hash as an earlier row.
    more: Vec<(u64, u64)>,
}

impl KnownRows {
    /// Makes room for this many more rows, so that the table is not built again and again while it grows. Without so much
    /// memory, nothing happens.
    fn reserve(&mut self, rows: usize) {
        drop(self.first.try_reserve(rows));
    }

    fn hash(&self, id: &DocId) -> u64 {
        self.key.hash_one(id)
    }

    /// Loads the parts of the table that a lookup of these ids reads into the CPU cache. In a large table, each lookup
    /// waits for memory, but lookups in quick succession wait at the same time.
    fn prefetch<'a>(&self, ids: impl Iterator<Item = &'a DocId>) {
        for id in ids {
            black_box(self.first.get(&self.hash(id)));
        }
    }

    fn add(&mut self, hash: u64, row: KnownRow) {
        let packed = row.seq.0 << 1 | u64::from(row.stands);
        let first = *self.first.entry(hash).or_insert(packed);
        if first != packed {
            self.more.push((hash, packed));
        }
    }

    fn of(&self, hash: u64) -> impl Iterator<Item = KnownRow> {
        let first = self.first.get(&hash).copied();
        // `more` is nearly always empty. If no row has the hash, `more` is not searched.
        let more = self.more.iter().filter(move |(other, _)| first.is_some() && *other == hash);
        let packed = first.into_iter().chain(more.map(|(_, packed)| *packed));
        packed.map(|packed| KnownRow { seq: Seq(packed >> 1), stands: packed & 1 == 1 })
    }
}

/// A hasher that returns a key unchanged, because the key is already a hash.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
