//! A collection's file, open: what others hold of it. Reads of it go on from any thread beside its [`Writer`].

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::data_dir::files::{self, name_of};
use super::error::{Result, StoreError};
use super::format::columns::Flaw;
use super::format::creation::create;
use super::format::opening::{open_for_writing, peek};
use super::format::payload;
use super::format::rows::SignatureRow;
use super::integrity::scan::{ScanTotals, scan};
use super::integrity::scrub::{Scrubbed, scrub};
use super::read::clusters::{self, ClusterRows, ClusterStart, Stretch};
use super::read::payloads::{self, Looked};
use super::read::readers::Readers;
use super::read::{pages, records};
use super::record::{Head, Record};
use super::settings::{Meta, Opened};
use super::write::writer::Writer;
use crate::types::{ClusterPlace, DocId, Document, Keep, Payload, Seq};

/// A collection's records. Cheap to clone. A record that is not what was written is an error that names it, never another
/// answer.
#[derive(Clone, Debug)]
pub struct Store {
    readers: Arc<Readers>,
}

impl Store {
    /// Makes a collection's file, whole or not at all: it takes its name only when it is on disk. Under the data
    /// directory's lock.
    pub fn create(path: &Path, meta: &Meta) -> Result<(Self, Writer)> {
        create(path, meta)?;
        let (store, writer, _) = Self::open(path)?;
        writer.check_usable()?;
        Ok((store, writer))
    }

    /// Opens a collection's file, with everything that a crash left in its log.
    pub fn open(path: &Path) -> Result<(Self, Writer, Opened)> {
        let (connection, opened, ledger) = open_for_writing(path)?;
        payload::check_count(&opened, ledger.payloads.rows)?;
        let writer = Writer::new(connection, path, &opened.meta, ledger)?;
        writer.restart_log()?;
        let store = Self { readers: writer.readers() };
        Ok((store, writer, opened))
    }

    /// The settings and the counts of a collection that need not be open.
    pub fn peek(path: &Path) -> Result<Opened> {
        peek(path)
    }

    /// Removes a collection's file for good: gone in one step, whatever happens. Close its [`Writer`] first.
    pub fn remove(path: &Path) -> Result<()> {
        files::remove(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => StoreError::Missing { path: path.to_owned() },
            _ => StoreError::from_io(&name_of(path), "removing its file", source),
        })
    }

    pub fn path(&self) -> &Path {
        self.readers.path()
    }

    /// What its write-ahead log takes on the disk.
    pub fn log_bytes(&self) -> u64 {
        std::fs::metadata(files::log(self.path())).map_or(0, |log| log.len())
    }

    /// Whether its writer is closed: no read begins from here on.
    pub fn is_closed(&self) -> bool {
        self.readers.is_closed()
    }

    /// One record, whole; `None` if there is none of this `seq`.
    pub fn record(&self, seq: Seq) -> Result<Option<Record>> {
        self.readers.read(|snapshot| records::record(snapshot, seq))
    }

    /// One record without signature and verdict.
    pub fn head(&self, seq: Seq, with_metadata: bool) -> Result<Option<Head>> {
        self.readers.read(|snapshot| records::head(snapshot, seq, with_metadata))
    }

    /// As [`head`](Self::head), for many, in the order asked for, all as of one moment.
    ///
    /// With so many bytes of metadata at most, if it is asked for: the first that does not fit and those behind it stay
    /// in the file.
    pub fn heads(&self, seqs: &[Seq], mut metadata_bytes: Option<usize>) -> Result<Vec<Option<Head>>> {
        self.readers
            .read(|snapshot| seqs.iter().map(|seq| records::head_within(snapshot, *seq, &mut metadata_bytes)).collect())
    }

    /// The records after `after`, in order of `seq`. Fewer than `limit` means that these are the last.
    pub fn page(&self, after: Seq, limit: usize) -> Result<Vec<Document>> {
        self.page_while(after, limit, |_| true)
    }

    /// As [`page`](Self::page), up to the first that `fits` refuses; that one is always read.
    pub fn page_while(&self, after: Seq, limit: usize, fits: impl FnMut(&Document) -> bool) -> Result<Vec<Document>> {
        self.readers.read(|snapshot| pages::page(snapshot, after, limit, fits))
    }

    /// Looks at the payloads of these documents, all as of one moment, in their order: first `size` is told the number of
    /// shingles, and where that is not enough to know, the payload is read and `visit` told. A payload that is missing though its
    /// document is there, or that is not what was written, is an error that names it.
    pub fn payloads<T>(
        &self,
        seqs: &[Seq],
        mut size: impl FnMut(u64) -> Result<(), T>,
        mut visit: impl FnMut(Seq, Payload) -> Result<T, Flaw>,
    ) -> Result<Vec<(Seq, Looked<T>)>> {
        self.readers.read(|snapshot| {
            let look = |&seq: &Seq| Ok((seq, payloads::payload(snapshot, seq, &mut size, &mut visit)?));
            seqs.iter().map(look).collect()
        })
    }

    /// Up to `limit` documents of one cluster. `None` where there is no such document, or none left.
    pub fn cluster(&self, start: ClusterStart, limit: usize) -> Result<Option<ClusterRows>> {
        self.readers.read(|snapshot| clusters::cluster(snapshot, start, limit))
    }

    /// Up to `limit` documents of the clusters that have more than one, cluster by cluster in the order of their names,
    /// and where the rest begins. There may be fewer than `limit`, or none, and still be more to come.
    pub fn clusters(&self, after: ClusterPlace, limit: usize) -> Result<(Vec<Stretch>, Option<ClusterPlace>)> {
        self.readers.read(|snapshot| clusters::clusters(snapshot, after, limit))
    }

    /// The first document of a cluster; `None` where none is left.
    pub fn representative(&self, cluster: Seq) -> Result<Option<(Seq, DocId)>> {
        let representative = self.readers.read(|snapshot| clusters::representative(snapshot, cluster))?;
        Ok(representative.map(|member| (member.head.seq, member.head.id)))
    }

    /// Shows every record's signature to `visit`, from `partitions` threads at once, in order within a range only.
    /// `progress` counts rows. An error means that what was visited must not be used.
    ///
    /// Scan before the first commit: rows that come or go meanwhile do not add up with the ledger.
    pub fn scan(
        &self,
        partitions: usize,
        visit: impl Fn(SignatureRow<'_>) + Sync,
        progress: &AtomicU64,
    ) -> Result<ScanTotals> {
        scan(&self.readers, partitions, visit, progress)
    }

    /// Reads the rows of documents behind `after`, as of one moment, until it has read about `bytes_max`; a document is
    /// read whole. Each row is held against its own sum and the other rows of its document.
    pub fn scrub(&self, keep: Keep, after: Seq, bytes_max: u64) -> Result<Scrubbed> {
        scrub(&self.readers, keep, after, bytes_max)
    }
}
