//! Opens a collection in a directory as the server does, but without a server.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hapax::collections::{BackupSettings, Collections, CollectionsConfig, Limits, Medium, MemoryConfig, Settings};
use hapax::cpu::{CpuConfig, CpuPool};
use hapax::types::LabelLimits;

/// The largest number of writes in progress at a time.
pub(crate) const WRITES_MAX: usize = 1024;

pub(crate) fn open(config: &CollectionsConfig) -> Result<Collections, Box<dyn Error>> {
    Ok(Collections::open(
        config.clone(),
        CpuPool::new(CpuConfig { threads: 1, queue_max: 1, queue_delay_max: Duration::ZERO }),
        Arc::default(),
    )?)
}

pub(crate) fn config(dir: &Path, default_settings: Settings, id_cache_bytes_max: u64) -> CollectionsConfig {
    CollectionsConfig {
        data_dir: dir.to_owned(),
        lock_wait: Duration::ZERO,
        collections_max: 1,
        secret: None,
        default_settings,
        limits: Limits {
            bucket_read_max: 256,
            scoped_reads_max: 100_000,
            labels: LabelLimits { labels_max: 100_000, source_documents_max: None },
            candidates_max: 4096,
            exact_reads_max: 256,
            exact_bytes_max: 32 << 20,
            commit_queue_max: WRITES_MAX,
            commit_batch_max: WRITES_MAX,
            commit_window: Duration::ZERO,
            commit_payload_bytes_max: 1 << 20,
            commit_queue_wait: Duration::from_secs(60),
            id_fingerprint_bits: 64,
        },
        reserve_bytes: 0,
        memory: MemoryConfig { index_bytes_max: None, id_cache_bytes_max, process: Arc::default() },
        medium: Medium::Disk,
        redis: None,
        backup: BackupSettings::default(),
        scrub: None,
    }
}
