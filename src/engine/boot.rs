//! Opens a collection's file and builds the collection in memory. Signatures are read in parallel straight into the
//! index, then each band's postings are built separately. No request is served before both steps are complete.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hapax_core::{SecretKey, Spec};
use parking_lot::Mutex;

use super::collection::{LocalCollection, Parts};
use super::disk::DataDisk;
use super::jobs::Jobs;
use super::lookup::{DocumentCounts, IdCache, Items, Lookup, Policy, Records};
use super::memory_budget::{BudgetShare, MemoryBudget};
use super::meters::{self, Meters};
use super::statistics::LabelStatistics;
use super::write::{Clusters, Order, PayloadBudget, Writes};
use crate::cpu::{self, CpuPool};
use crate::extract::EXTRACTOR_VERSION;
use crate::index::{Entry, Index, IndexOptions, LabelSet, Place, Walk};
use crate::store::{Meta, Opened, Store, StoredJobs, Writer};
use crate::types::{CollectionName, Seq, TimestampMs};
use crate::verdicts::{CollectionError, Limits, Medium, Preparer, Result, Settings, WriteFailure, gram_size};

/// The parts that all collections of a process share.
#[derive(Clone)]
pub(crate) struct Common {
    /// The secret key of collections with keyed hashing.
    pub secret: Option<SecretKey>,
    /// The limits of each collection.
    pub limits: Limits,
    /// The threads that sign long contents.
    pub cpu: CpuPool,
    /// The memory that all collections together may use.
    pub memory: Arc<MemoryBudget>,
    /// Ids of documents, so that answers can name them without reading the disk.
    pub ids: Arc<IdCache>,
    /// The bytes of shingles, texts and metadata that may wait for the disk.
    pub payloads: PayloadBudget,
    /// Whether data outlives the process.
    pub medium: Medium,
    /// The disk that holds all collections.
    pub disk: Arc<DataDisk>,
}

/// A callback for progress: the share of the work that is done, from 0 to 1.
type Tell<'a> = &'a (dyn Fn(f64) + Sync);

/// Creates a new collection in a file that does not exist yet.
pub(crate) fn create(
    path: &Path,
    name: &CollectionName,
    settings: &Settings,
    common: &Common,
) -> Result<Arc<LocalCollection>> {
    // This comes first, so that a missing key leaves no file behind.
    let preparer = preparer(name, settings, common)?;
    let meta = Meta {
        name: name.clone(),
        spec: settings.spec.to_string(),
        keep: settings.keep,
        extract: settings.extract,
        extractor: EXTRACTOR_VERSION,
        created: TimestampMs::now(),
        seen_floor: TimestampMs(0),
        changeable: settings.changeable(),
    };
    let made = Store::create(path, &meta);
    let (store, writer) = made.map_err(|error| CollectionError::of_file(error, WriteFailure::NothingKept))?;
    let opened = Opened { meta, last_seq: Seq(0), documents: 0 };
    assemble((store, writer), opened, settings.clone(), preparer, common, &|_| {})
}

/// Refuses a load if its collection could not be served, because its index would have no room or its key is missing.
pub(crate) fn admit(name: &CollectionName, settings: &Settings, documents: u64, common: &Common) -> Result<()> {
    preparer(name, settings, common)?;
    let index = index(settings, common);
    common.memory.admit_many(documents.saturating_mul(index.claim_of_one()))
}

fn index(settings: &Settings, common: &Common) -> Index {
    Index::new(&IndexOptions {
        shape: settings.spec.shape(),
        banding: settings.banding,
        id_fingerprint_bits: common.limits.id_fingerprint_bits,
        seed: None,
    })
}

/// Opens a collection's file. `progress` is called with the share of the work that is done, from 0 to 1.
pub(crate) fn open(path: &Path, common: &Common, progress: Tell<'_>) -> Result<Arc<LocalCollection>> {
    let started = Instant::now();
    let (store, writer, opened) = Store::open(path)?;
    let name = opened.meta.name.to_string();
    let damaged = |detail: String| CollectionError::Damaged { collection: name, record: None, detail };
    let spec = Spec::parse(&opened.meta.spec).map_err(|error| damaged(error.to_string()))?;
    let settings = Settings::of(&opened.meta, spec)
        .map_err(|error| CollectionError::Store(format!("collection `{}`: {error}", opened.meta.name)))?;
    let preparer = preparer(&opened.meta.name, &settings, common)?;
    if opened.meta.extractor != EXTRACTOR_VERSION {
        tracing::warn!(
            collection = %opened.meta.name,
            created_with = opened.meta.extractor,
            extractor = EXTRACTOR_VERSION,
            "collection was created with another version of the extractor; if a page that is already stored is sent \
             again under another id, it may not be found as a duplicate"
        );
    }
    let collection = assemble((store, writer), opened, settings, preparer, common, progress)?;
    tracing::info!(
        collection = %collection.name(),
        documents = collection.lookup().counts().documents(),
        seconds = started.elapsed().as_secs_f64(),
        "collection opened"
    );
    Ok(collection)
}

fn preparer(name: &CollectionName, settings: &Settings, common: &Common) -> Result<Arc<Preparer>> {
    Preparer::new(name, &settings.spec, common.secret.as_ref(), settings.keep, settings.extract, common.cpu.clone())
        .map(Arc::new)
}

fn assemble(
    (store, mut writer): (Store, Writer),
    opened: Opened,
    settings: Settings,
    preparer: Arc<Preparer>,
    common: &Common,
    progress: Tell<'_>,
) -> Result<Arc<LocalCollection>> {
    let Opened { meta, last_seq, documents, .. } = opened;
    if common.medium == Medium::Memory {
        writer.never_sync()?;
    }
    let index = index(&settings, common);
    let jobs = store.jobs()?;
    let statistics = LabelStatistics::of(store.intact_statistics()?, common.limits.labels.labels_max);
    index.keep_last_seen(settings.ttl.map(|_| meta.created));
    let Scanned { linked, joined } =
        scan(&store, (&index, &meta), &jobs, |read| progress(read as f64 / documents.max(1) as f64 / 2.0))?;
    index.build(|share| progress(0.5 + share / 2.0));
    progress(1.0);
    let present =
        index.places(Walk::start()).filter_map(|place| index.peek(place).map(|occupant| (occupant.seq, place)));
    let clusters = Clusters::load(joined, present);

    let counts = DocumentCounts::new(index.documents() as i64, linked);
    let meters = Meters::new(&meta.name);
    meters::extractor(&meta.name, meta.extractor, EXTRACTOR_VERSION);
    let items = items(&store, (&meta.name, &settings.spec), &common.limits)?;
    let policy = Policy::of(settings);
    let records = Records::new(store, common.ids.of_collection());
    let from = (last_seq, meta.seen_floor);
    let lookup = Lookup::new((index, records, items), policy, preparer, common.limits, meters, counts, from);
    let order = Order::new(last_seq, clusters, BudgetShare::new(Arc::clone(&common.memory)));
    let writes = Arc::new(Writes::new(
        Arc::new(lookup),
        order,
        common.payloads.clone(),
        Arc::clone(&common.disk),
        (Jobs::of(jobs), statistics),
    ));
    // A collection that exceeds the budget is opened anyway, so that its documents can be looked up and deleted.
    writes.account();
    let parts = Parts { name: meta.name, created: meta.created, writes };
    Ok(Arc::new(LocalCollection::start(parts, writer)))
}

/// Reads the items of a containment collection; `None` for another collection.
fn items(store: &Store, (name, spec): (&CollectionName, &Spec), limits: &Limits) -> Result<Option<Items>> {
    /// The records that are read at once.
    const RECORDS: usize = 1024;
    const BYTES: usize = 16 << 20;
    let Some(size) = gram_size(spec) else { return Ok(None) };
    let (items, mut after) = (Items::new(size, limits.bucket_read_max), Seq(0));
    loop {
        let records = store.whole_records(after, RECORDS, BYTES)?;
        let Some(last) = records.last() else { return Ok(Some(items)) };
        after = last.seq;
        for record in &records {
            let damaged = |detail: &str| CollectionError::Damaged {
                collection: name.to_string(),
                record: Some(record.seq),
                detail: detail.to_owned(),
            };
            let payload = record.payload.as_ref().ok_or_else(|| damaged("its n-grams are missing"))?;
            items.add(record.seq, payload).map_err(damaged)?;
        }
    }
}

/// The facts that a scan collects in addition to loading the index.
struct Scanned {
    linked: i64,
    /// Documents that joined a cluster: (name of the cluster, `seq`, place).
    joined: Vec<(Seq, Seq, Place)>,
}

/// Reads every signature into the index on all processors. `tell` is called regularly with the number of rows read.
fn scan(store: &Store, (index, meta): (&Index, &Meta), jobs: &StoredJobs, tell: impl Fn(u64)) -> Result<Scanned> {
    let doomed: HashSet<Seq> = jobs.doomed.iter().flat_map(|part| part.seqs.iter().copied()).collect();
    let (linked, joined, flaw) = (AtomicI64::new(0), Mutex::new(Vec::new()), Mutex::new(None));
    let read = AtomicU64::new(0);
    let threads = cpu::cores();
    let (watcher, done) = (std::thread::current(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let scan = scope.spawn(|| {
            let scanned = store.scan(
                threads,
                |row| {
                    if !doomed.is_empty() && doomed.contains(&row.seq) {
                        return;
                    }
                    let labels = index.load_labels(row.labels).unwrap_or_else(|error| {
                        flaw.lock().get_or_insert((row.seq, error));
                        LabelSet::NONE
                    });
                    let place = index.load(Entry {
                        seq: row.seq,
                        id_fingerprint: row.id_fingerprint,
                        content: if row.given { 0 } else { row.content_prefix.max(1) },
                        linked: row.linked,
                        signature: row.bytes,
                        labels,
                        last_seen: if row.seen == TimestampMs(0) { meta.seen_floor } else { row.seen },
                    });
                    linked.fetch_add(i64::from(row.linked), Ordering::Relaxed);
                    if row.cluster != Seq(0) {
                        joined.lock().push((row.cluster, row.seq, place));
                    }
                },
                &read,
            );
            done.store(true, Ordering::Release);
            watcher.unpark();
            scanned
        });
        while !done.load(Ordering::Acquire) && !scan.is_finished() {
            tell(read.load(Ordering::Relaxed));
            std::thread::park_timeout(Duration::from_millis(50));
        }
        scan.join().expect("the scan does not panic")
    })?;
    if let Some((record, error)) = flaw.into_inner() {
        let (collection, detail) = (meta.name.to_string(), format!("its labels cannot be read: {error}"));
        return Err(CollectionError::Damaged { collection, record: Some(record), detail });
    }
    Ok(Scanned { linked: linked.into_inner(), joined: joined.into_inner() })
}
