//! The library's collections in their own folder, without a server.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use hapax::collections::{
    BackupSettings, Collection, Collections, CollectionsConfig, Limits, Medium, MemoryConfig, Settings,
};
use hapax::cpu::{CpuConfig, CpuPool, WhenFull};
use hapax::types::{CollectionName, LabelLimits};
use hapax_core::{Spec, tuning};
use tokio::task::JoinHandle;

pub(crate) type Dir = tempfile::TempDir;

/// Generous limits, so that a test meets only those that it sets itself.
pub(crate) const LIMITS: Limits = Limits {
    bucket_read_max: 1000,
    scoped_reads_max: 100_000,
    labels: LabelLimits { labels_max: 100_000, source_documents_max: None },
    candidates_max: 4096,
    exact_reads_max: 256,
    exact_bytes_max: 32 << 20,
    commit_queue_max: 8192,
    commit_batch_max: 4096,
    commit_window: Duration::ZERO,
    commit_payload_bytes_max: 256 << 20,
    commit_queue_wait: Duration::from_secs(30),
    id_fingerprint_bits: 64,
};

/// Generous limits for long documents.
pub(crate) const CPU: CpuConfig = CpuConfig { threads: 2, queue_max: 1024, queue_delay_max: Duration::ZERO };

pub(crate) fn dir() -> Dir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn settings() -> Settings {
    let spec = Spec::default();
    let banding = tuning::default_banding(spec.shape(), 0.8);
    Settings { banding_by_hand: false, ..Settings::new(spec, banding, 0.8) }
}

pub(crate) fn config(dir: &Dir) -> CollectionsConfig {
    CollectionsConfig {
        data_dir: dir.path().join("data"),
        // A process that another test starts inherits the lock, and holds it until it executes its own program.
        lock_wait: Duration::from_secs(5),
        collections_max: 64,
        secret: None,
        default_settings: settings(),
        limits: LIMITS,
        memory: MemoryConfig { index_bytes_max: None, id_cache_bytes_max: 1 << 20, process: Arc::default() },
        reserve_bytes: 0,
        medium: Medium::Disk,
        redis: None,
        backup: BackupSettings { dir: Some(dir.path().join("backups")), ..BackupSettings::default() },
        scrub: None,
    }
}

pub(crate) fn open(config: CollectionsConfig) -> Collections {
    Collections::open(config, CpuPool::new(CPU), Arc::default()).unwrap()
}

pub(crate) async fn default(collections: &Collections) -> Collection {
    collections.get(&CollectionName::default_collection()).await.unwrap()
}

/// Opens a collection's file as another program would.
pub(crate) fn file(dir: &Dir, collection: &str) -> rusqlite::Connection {
    let connection =
        rusqlite::Connection::open(dir.path().join(format!("data/collections/{collection}.sqlite"))).unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    connection
}

/// Locks a collection's file as a second writer, so that nothing is written to disk until the connection commits.
pub(crate) fn hold(dir: &Dir, collection: &str) -> rusqlite::Connection {
    let connection = file(dir, collection);
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

/// Makes changes of a collection fail, such as `BEFORE INSERT ON document`, until the trigger `no` is dropped.
pub(crate) fn refuse(dir: &Dir, collection: &str, changes: &str) -> rusqlite::Connection {
    let connection = file(dir, collection);
    let trigger = format!("CREATE TRIGGER no {changes} BEGIN SELECT RAISE(ABORT, 'refused by the test'); END");
    connection.execute_batch(&trigger).unwrap();
    connection
}

/// Waits until everything is on disk and releases the folder.
pub(crate) async fn close(collections: Collections) {
    tokio::task::spawn_blocking(move || collections.close()).await.unwrap();
}

/// Returns the results of all tasks.
pub(crate) async fn all<T>(tasks: Vec<JoinHandle<Vec<T>>>) -> Vec<T> {
    let mut made = Vec::new();
    for task in tasks {
        made.extend(task.await.unwrap());
    }
    made
}

/// Returns `HAPAX_SEED`, or a random one; prints it, so that a failure can be run again.
pub(crate) fn seed() -> u64 {
    let seed = match std::env::var("HAPAX_SEED") {
        Ok(seed) => seed.parse().expect("HAPAX_SEED is a number"),
        Err(_) => 0x6861_7061_7821,
    };
    println!("HAPAX_SEED={seed}");
    seed
}

/// Keeps a thread of the pool busy until the returned value is dropped.
pub(crate) fn occupy(pool: &CpuPool) -> mpsc::Sender<()> {
    occupy_for(pool, WhenFull::Wait)
}

/// Does the same as [`occupy`], with a thread for work of this kind.
pub(crate) fn occupy_for(pool: &CpuPool, work: WhenFull) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let pool = pool.clone();
    std::thread::spawn(move || {
        futures::executor::block_on(async {
            let place = pool.place(work).await.unwrap();
            let busy = move || {
                begun.send(()).unwrap();
                _ = released.recv();
            };
            place.run(busy).await.unwrap();
        });
    });
    begins.recv().unwrap();
    release
}
