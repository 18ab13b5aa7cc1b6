//! A collection's file -> the collection in memory.
//! Signatures are read in parallel straight into the arena, then each band's postings are built on its own; nothing
//! is served before both are complete.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hapax_core::{SecretKey, Spec};
use parking_lot::{Condvar, Mutex, RwLock};
use tokio::sync::Semaphore;

use super::clusters::Clusters;
use super::disk::DataDisk;
use super::doubt::Doubts;
use super::epoch::Epochs;
use super::expiry::SeenTimes;
use super::memory::{MemoryBudget, Share};
use super::meters::Meters;
use super::order::Order;
use super::payload_room::PayloadRoom;
use super::records::Records;
use super::{Collection, CollectionError, Live, Result, WriteFailure};
use crate::cpu::CpuPool;
use crate::index::{Arena, BandIndex, Entry, IdIndex};
use crate::store::{Meta, Opened, Store, Writer};
use crate::types::{CollectionName, Keep, Seq, Slot, TimestampMs};
use crate::verdicts::{Limits, Medium, Preparer, Settings};

/// What all collections of a process have in common.
#[derive(Clone)]
pub(crate) struct Common {
    /// The secret of those with keyed hashing.
    pub secret: Option<SecretKey>,
    /// Bounds of each one's work.
    pub limits: Limits,
    /// Where long contents are signed.
    pub cpu: CpuPool,
    /// What all of them may take.
    pub memory: Arc<MemoryBudget>,
    /// What outlives the process.
    pub medium: Medium,
    /// What all of them are on.
    pub disk: Arc<DataDisk>,
}

impl Common {
    fn preparer(&self, name: &CollectionName, spec: &Spec, keep: Keep) -> Result<Preparer> {
        Preparer::new(name, spec, self.secret.as_ref(), keep, self.cpu.clone())
    }
}

/// Makes a new collection in a file that does not exist.
pub(crate) fn create(
    path: &Path,
    name: &CollectionName,
    settings: &Settings,
    common: &Common,
) -> Result<Arc<Collection>> {
    // First, so that a key that is missing leaves no file behind.
    let preparer = common.preparer(name, &settings.spec, settings.keep)?;
    let meta = Meta {
        name: name.clone(),
        spec: settings.spec.to_string(),
        keep: settings.keep,
        created: super::order::now(),
        seen_floor: TimestampMs(0),
        changeable: settings.changeable(),
    };
    let made = Store::create(path, &meta);
    let (store, writer) = made.map_err(|error| CollectionError::of_file(error, WriteFailure::NothingKept))?;
    let opened = Opened { meta, last_seq: Seq(0), documents: 0 };
    assemble(store, writer, opened, preparer, common, &|_| {})
}

/// Opens a collection's file; `progress` is told shares of the work from 0 to 1.
pub(crate) fn open(path: &Path, common: &Common, progress: &(dyn Fn(f64) + Sync)) -> Result<Arc<Collection>> {
    let started = Instant::now();
    let (store, writer, opened) = Store::open(path)?;
    let name = opened.meta.name.to_string();
    let damaged = |detail: String| CollectionError::Damaged { collection: name, record: None, detail };
    let spec = Spec::parse(&opened.meta.spec).map_err(|error| damaged(error.to_string()))?;
    let preparer = common.preparer(&opened.meta.name, &spec, opened.meta.keep)?;
    let collection = assemble(store, writer, opened, preparer, common, progress)?;
    tracing::info!(
        collection = %collection.name,
        documents = collection.documents.load(Ordering::Relaxed),
        seconds = started.elapsed().as_secs_f64(),
        "collection opened"
    );
    Ok(collection)
}

fn assemble(
    store: Store,
    mut writer: Writer,
    opened: Opened,
    preparer: Preparer,
    common: &Common,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Arc<Collection>> {
    let Opened { meta, last_seq, documents, .. } = opened;
    let Common { limits, ref memory, .. } = *common;
    if common.medium == Medium::Memory {
        writer.never_sync()?;
    }
    let shape = preparer.shape();
    let settings = Settings::of(&meta, preparer.spec().clone())
        .map_err(|error| CollectionError::Store(format!("collection `{}`: {error}", meta.name)))?;
    let arena = Arena::new(shape);
    let ids = IdIndex::with_fingerprint_bits(limits.id_fingerprint_bits);
    let seen_times = settings.ttl.map(|_| Arc::new(SeenTimes::new(meta.created)));
    let (slots, linked, joined) = (AtomicU32::new(0), AtomicI64::new(0), Mutex::new(Vec::new()));

    let total = documents.max(1) as f64;
    let scanned = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let (watcher, done) = (std::thread::current(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let scan = scope.spawn(|| {
            let scanned = store.scan(
                threads,
                |row| {
                    let slot = Slot(slots.fetch_add(1, Ordering::Relaxed));
                    let content = if row.given { 0 } else { row.content_prefix.max(1) };
                    let entry = Entry {
                        seq: row.seq,
                        id_fingerprint: row.id_fingerprint,
                        content,
                        linked: row.linked,
                        signature: row.bytes,
                        last_seen: row.seen,
                    };
                    arena.publish(slot, entry);
                    ids.insert(&arena, slot);
                    if let Some(seen_times) = &seen_times {
                        seen_times.set(slot, if row.seen == TimestampMs(0) { meta.seen_floor } else { row.seen });
                    }
                    linked.fetch_add(i64::from(row.linked), Ordering::Relaxed);
                    if row.cluster != Seq(0) {
                        joined.lock().push((row.cluster, row.seq, slot));
                    }
                },
                &scanned,
            );
            done.store(true, Ordering::Release);
            watcher.unpark();
            scanned
        });
        while !done.load(Ordering::Acquire) && !scan.is_finished() {
            progress(scanned.load(Ordering::Relaxed) as f64 / total / 2.0);
            std::thread::park_timeout(Duration::from_millis(50));
        }
        scan.join().expect("the scan does not panic")
    })?;

    let slots = slots.into_inner();
    let indexed: Vec<Slot> = (0..slots).map(Slot).collect();
    let bands = BandIndex::new(settings.banding, shape);
    let postings = indexed.len().max(1) as f64 * f64::from(settings.banding.bands());
    let placed = AtomicU64::new(0);
    bands.insert_all(
        &arena,
        &indexed,
        |slot| !arena.is_linked(slot),
        |count| {
            let placed = placed.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
            progress(0.5 + placed as f64 / postings / 2.0);
        },
    );
    progress(1.0);
    let present = (0..slots).map(Slot).filter_map(|slot| arena.peek(slot).map(|seen| (seen.seq, slot)));
    let clusters = Clusters::load(joined.into_inner(), present);

    let collection = Arc::new(Collection {
        meters: Meters::new(&meta.name),
        name: meta.name,
        preparer,
        created: meta.created,
        seen_floor: meta.seen_floor,
        limits,
        arena,
        ids,
        records: Records::new(store),
        live: RwLock::new(Live::new(bands, settings, seen_times)),
        order: Mutex::new(Order::new(last_seq, slots, clusters, Share::new(Arc::clone(memory)))),
        work: Condvar::new(),
        durable: AtomicU64::new(last_seq.0),
        epochs: Epochs::default(),
        doubts: Doubts::default(),
        documents: AtomicI64::new(i64::from(slots)),
        linked,
        latches: Arc::default(),
        places: Arc::new(Semaphore::new(limits.commit_queue_max)),
        payload_room: PayloadRoom::new(limits.commit_payload_bytes_max, limits.commit_queue_wait),
        committer: Mutex::new(None),
        rebanding: tokio::sync::Mutex::new(()),
        sweep: Mutex::default(),
        disk: Arc::clone(&common.disk),
    });
    // Over the budget it opens all the same: what is stored is looked up, and can be deleted.
    collection.account_now();
    collection.start_committer(writer);
    Ok(collection)
}
