//! The handle to a collection's open file. Any thread can read through it while the [`Writer`] writes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::data_dir::files::{self, name_of};
use super::error::{Result, StoreError};
use super::format::columns::Flaw;
use super::format::creation::create;
use super::format::jobs::{self, StoredJobs};
use super::format::opening::{open_for_writing, peek};
use super::format::rows::SignatureRow;
use super::format::statistics::{self, StoredStatistics};
use super::format::{golden, payload};
use super::integrity::scan::{ScanTotals, scan};
use super::integrity::scrub::{Scrubbed, scrub};
use super::read::clusters::{self, ClusterRows, ClusterStart, LargestRows, Stretch};
use super::read::payloads::{self, Looked};
use super::read::readers::Readers;
use super::read::{pages, records};
use super::record::{Head, Record};
use super::settings::{Meta, Opened};
use super::write::writer::Writer;
use crate::types::{ClusterPlace, ClusterRank, DocId, Document, GoldenPair, Keep, Payload, Seq};

/// The records of a collection. Cheap to clone. If a record differs from the data that was written, reading it returns
/// an error that names the record, never a wrong answer.
#[derive(Clone, Debug)]
pub struct Store {
    readers: Arc<Readers>,
}

impl Store {
    /// Creates a collection's file, completely or not at all. The file gets its name only after its content is on disk.
    /// The caller holds the data directory's lock.
    pub fn create(path: &Path, meta: &Meta) -> Result<(Self, Writer)> {
        create(path, meta)?;
        let (store, writer, _) = Self::open(path)?;
        writer.check_usable()?;
        Ok((store, writer))
    }

    /// Opens a collection's file, including the commits that a crash left in its log.
    pub fn open(path: &Path) -> Result<(Self, Writer, Opened)> {
        let (connection, opened, ledger) = open_for_writing(path)?;
        payload::check_count(&opened.meta, &ledger)?;
        let jobs = jobs::read(&connection, opened.meta.name.as_str(), false)?;
        let writer = Writer::new(connection, path, &opened.meta, ledger)?;
        writer.restart_log()?;
        let store = Self { readers: writer.readers() };
        jobs.doomed_of_each().into_iter().for_each(|(deletion, seqs)| store.hide(deletion, seqs.into()));
        Ok((store, writer, opened))
    }

    /// Reads the settings and the counts of a collection. The collection need not be open.
    pub fn peek(path: &Path) -> Result<Opened> {
        peek(path)
    }

    /// Removes a collection's file for good. The removal is one step, even if the process is killed. Close its
    /// [`Writer`] first.
    pub fn remove(path: &Path) -> Result<()> {
        files::remove(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => StoreError::Missing { path: path.to_owned() },
            _ => StoreError::from_io(&name_of(path), "removing its file", source),
        })
    }

    pub fn path(&self) -> &Path {
        self.readers.path()
    }

    /// Returns the size of the write-ahead log on disk.
    pub fn log_bytes(&self) -> u64 {
        std::fs::metadata(files::log(self.path())).map_or(0, |log| log.len())
    }

    /// Returns whether the writer is closed. If so, no new read can start.
    pub fn is_closed(&self) -> bool {
        self.readers.is_closed()
    }

    /// Reads a whole record; `None` if no record has this `seq`.
    pub fn record(&self, seq: Seq) -> Result<Option<Record>> {
        self.readers.read(|snapshot| records::record(snapshot, seq))
    }

    /// Reads a record without its signature and verdict.
    pub fn head(&self, seq: Seq, with_metadata: bool) -> Result<Option<Head>> {
        self.readers.read(|snapshot| records::head(snapshot, seq, with_metadata))
    }

    /// Reads many records like [`head`](Self::head), in the order of `seqs`, all from one snapshot.
    ///
    /// If `metadata_bytes` is given, metadata is read up to that many bytes in total. The first metadata that does not
    /// fit, and all metadata after it, is not read. Captures are read if `with_captures` is true.
    pub fn heads(
        &self,
        seqs: &[Seq],
        mut metadata_bytes: Option<usize>,
        with_captures: bool,
    ) -> Result<Vec<Option<Head>>> {
        self.readers.read(|snapshot| {
            let mut head = |&seq| records::head_within(snapshot, seq, &mut metadata_bytes, with_captures);
            seqs.iter().map(&mut head).collect()
        })
    }

    /// Reads the documents after `after`, in order of `seq`. A page with fewer than `limit` documents is the last page.
    pub fn page(&self, after: Seq, limit: usize) -> Result<Vec<Document>> {
        self.page_while(after, limit, |_| true)
    }

    /// Reads a page like [`page`](Self::page), but stops after the first document for which `fits` returns false. The
    /// page includes this document.
    pub fn page_while(&self, after: Seq, limit: usize, fits: impl FnMut(&Document) -> bool) -> Result<Vec<Document>> {
        self.readers.read_clusters(|snapshot| pages::page(snapshot, after, limit, fits))
    }

    /// Looks at the payloads of these documents, in the order of `seqs`, all from one snapshot. For each payload it
    /// first calls `size` with the number of shingles. If `size` returns `Ok`, it reads the payload and calls `visit`.
    /// If a payload is damaged, or is missing although its document exists, returns an error that names the document.
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

    /// Reads the payload of one document; `None` if the document is gone.
    pub fn payload<T>(&self, seq: Seq, mut visit: impl FnMut(Payload) -> Result<T, Flaw>) -> Result<Option<T>> {
        self.look_at(seq, |_| Ok(()), |_, payload| visit(payload))
    }

    /// Returns how many shingles a document has, if it has a payload; `None` if it is gone.
    pub fn shingles(&self, seq: Seq) -> Result<Option<u64>> {
        self.look_at(seq, Err, |_, payload| Ok(payload.shingles))
    }

    /// Like [`payloads`](Self::payloads), for one document; `None` if it is gone.
    fn look_at<T>(
        &self,
        seq: Seq,
        mut size: impl FnMut(u64) -> Result<(), T>,
        mut visit: impl FnMut(Seq, Payload) -> Result<T, Flaw>,
    ) -> Result<Option<T>> {
        let looked = self.readers.read(|snapshot| payloads::payload(snapshot, seq, &mut size, &mut visit))?;
        Ok(looked.found())
    }

    /// Reads the payload of one document if it has at most `bytes_max` bytes. If it has more, the inner error is the
    /// number of its bytes. `None` if the document is gone.
    pub fn payload_within<T>(
        &self,
        seq: Seq,
        bytes_max: usize,
        mut visit: impl FnMut(Payload) -> Result<T, Flaw>,
    ) -> Result<Option<std::result::Result<T, usize>>> {
        self.readers.read(|snapshot| match payloads::bytes(snapshot, seq)? {
            Some(bytes) if bytes > bytes_max => Ok(Some(Err(bytes))),
            _ => {
                let read = payloads::payload(snapshot, seq, &mut |_| Ok(()), &mut |_, payload| visit(payload))?;
                Ok(read.found().map(Ok))
            }
        })
    }

    /// Reads up to `limit` documents of one cluster. `None` if there is no such document, or if the cluster has no
    /// document left.
    pub fn cluster(&self, start: ClusterStart, limit: usize) -> Result<Option<ClusterRows>> {
        self.readers.read_clusters(|snapshot| clusters::cluster(snapshot, start, limit))
    }

    /// Reads up to `limit` documents of the clusters with more than one document, in the order of the clusters' names.
    /// Also returns the place where the next page begins. A page may have fewer than `limit` documents, or none,
    /// although more follow.
    pub fn clusters(&self, after: ClusterPlace, limit: usize) -> Result<(Vec<Stretch>, Option<ClusterPlace>)> {
        self.readers.read_clusters(|snapshot| clusters::clusters(snapshot, after, limit))
    }

    /// Reads up to `limit` of the clusters with more than one document, the largest first.
    pub fn largest_clusters(&self, after: Option<ClusterRank>, limit: usize) -> Result<LargestRows> {
        self.readers.read_clusters(|snapshot| clusters::largest(snapshot, after, limit))
    }

    /// Returns the bytes of memory that the lists of clusters take.
    pub fn cluster_bytes(&self) -> u64 {
        self.readers.joined().bytes()
    }

    /// Reads the first document of a cluster; `None` if the cluster has no document left.
    pub fn representative(&self, cluster: Seq) -> Result<Option<(Seq, DocId)>> {
        let representative = self.readers.read_clusters(|snapshot| clusters::representative(snapshot, cluster))?;
        Ok(representative.map(|member| (member.head.seq, member.head.id)))
    }

    /// Runs `work`, which reads from this store. If the store had no file open for reading before, the files that
    /// `work` opened are closed afterwards. Background work therefore does not keep the files of idle collections open.
    pub fn in_passing<T>(&self, work: impl FnOnce() -> T) -> T {
        let unused = self.readers.are_unused();
        let done = work();
        if unused {
            self.readers.release();
        }
        done
    }

    /// Reads the golden set.
    pub fn golden(&self) -> Result<Vec<GoldenPair>> {
        self.readers.read(|snapshot| golden::read(snapshot.connection(), snapshot.collection()))
    }

    /// Reads the statistics.
    pub fn statistics(&self) -> Result<Vec<StoredStatistics>> {
        self.readers.read(|snapshot| statistics::read(snapshot.connection(), snapshot.collection()))
    }

    /// Reads the intact rows of the statistics, and logs an error if other rows are damaged. Documents must be served
    /// even if counts are damaged.
    pub fn intact_statistics(&self) -> Result<Vec<StoredStatistics>> {
        match self.statistics() {
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::error!(%error, "damaged counts start again at 0; `hapax verify --repair` repairs the file");
                self.readers.read(|snapshot| Ok(statistics::look(snapshot.connection()).0))
            }
            read => read,
        }
    }

    /// Reads the jobs.
    pub fn jobs(&self) -> Result<StoredJobs> {
        self.readers.read(|snapshot| jobs::read(snapshot.connection(), snapshot.collection(), false))
    }

    /// Reads up to `limit` reports of a merge, in the order of their documents, from the first document after `after`.
    pub fn reports(&self, merge: Seq, after: Seq, limit: usize) -> Result<Vec<(Seq, String)>> {
        self.readers.read(|snapshot| jobs::reports(snapshot.connection(), snapshot.collection(), (merge, after), limit))
    }

    /// Reads up to `limit` documents after `after`, in order of `seq`, with their payloads, all from one snapshot.
    /// Stops after the document that brings the total size of the payloads to `bytes_max` or more.
    pub fn whole_records(&self, after: Seq, limit: usize, bytes_max: usize) -> Result<Vec<Record>> {
        self.readers.read(|snapshot| records::whole(snapshot, after, limit, bytes_max))
    }

    /// Hides the documents of a deletion from all lists. `seqs` must be in ascending order. A read of one `seq` still
    /// finds its document.
    pub fn hide(&self, deletion: Seq, seqs: Arc<[Seq]>) {
        self.readers.set_doomed(|doomed| doomed.with(deletion, seqs));
    }

    /// Returns whether a document is hidden.
    pub fn is_hidden(&self, seq: Seq) -> bool {
        self.readers.doomed().has(seq)
    }

    /// Ends the hiding of a deletion's documents. Call this after the documents are removed from the disk.
    pub fn forget_hidden(&self, deletion: Seq) {
        self.readers.set_doomed(|doomed| doomed.without(deletion));
    }

    /// Calls `visit` with the signature of every record, from `partitions` threads at once. The threads scan ranges of
    /// `seq`. Only the records of one range are visited in order. `progress` counts rows. After an error, discard
    /// everything that was visited.
    ///
    /// Call this before the first commit. If rows are added or removed during the scan, the sums differ from the
    /// ledger.
    pub fn scan(
        &self,
        partitions: usize,
        visit: impl Fn(SignatureRow<'_>) + Sync,
        progress: &AtomicU64,
    ) -> Result<ScanTotals> {
        let visit = |row: SignatureRow<'_>| {
            visit(row);
            true
        };
        scan(&self.readers, partitions, visit, progress)
    }

    /// Reads the rows of the documents after `after`, from one snapshot, until about `bytes_max` bytes are read. It
    /// never stops within a document. Each row is compared with its own checksum and with the other rows of its
    /// document.
    pub fn scrub(&self, keep: Keep, after: Seq, bytes_max: u64) -> Result<Scrubbed> {
        scrub(&self.readers, keep, after, bytes_max)
    }
}
