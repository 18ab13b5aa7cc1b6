//! Checks all settings: ranges, words, secrets. Input: [`Raw`]. Output: [`Config`], whose values need no further
//! checks. It must never know HTTP, or how a collection is opened.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use hapax_core::SecretKey;

use super::api_key::ApiKey;
use super::default_collection::default_collection;
use super::error::ConfigError;
use super::http_limits::HttpLimits;
use super::memory;
use super::ranges::{count, impossible, milliseconds, optional, within, word, zero_or_within};
use super::raw::{Raw, RawAudit, RawBackup, RawCommit, RawCpu, RawLimits, RawLog, RawMemory, RawScrub};
use super::redis::redis;
use super::secrets::{keys_file, secret};
use super::server::Server;
use super::tls::Tls;
use crate::audit::AuditSettings;
use crate::collections::{BackupSettings, CollectionsConfig, Limits, Medium, MemoryConfig, ScrubConfig};
use crate::cpu::{self, CpuConfig};
use crate::keys::KeysFile;
use crate::telemetry::logs;
use crate::telemetry::memory::Bound;
use crate::types::LabelLimits;

/// All settings of `hapax serve`.
#[derive(Clone, Debug)]
pub struct Config {
    /// Section `[server]`.
    pub server: Server,
    /// A key that may do everything.
    pub api_key: Option<ApiKey>,
    /// The file of further keys. If this file or `api_key` is set, clients must send a key.
    pub keys_file: Option<KeysFile>,
    /// Section `[tls]`. `None`: plain HTTP.
    pub tls: Option<Tls>,
    /// Sections `[data]`, `[collections]`, `[default_collection]`, `[hashing]`, `[limits]`, `[commit]`, `[backup]` and
    /// `[scrub]`.
    pub collections: CollectionsConfig,
    /// Section `[cpu]`.
    pub cpu: CpuConfig,
    /// Section `[audit]`. `None`: decisions are not logged.
    pub audit: Option<AuditSettings>,
    /// Section `[log]`.
    pub log: LogSettings,
}

/// Section `[log]`.
#[derive(Clone, Debug)]
pub struct LogSettings {
    pub format: logs::Format,
    /// A filter that can be parsed.
    pub level: String,
}

impl Config {
    /// Checks every value, and reads the files that hold secrets.
    pub fn check(raw: Raw) -> Result<Self, ConfigError> {
        let server = Server::check(&raw.server, &raw.address_limits, &raw.limits)?;
        let api_key =
            secret("auth.api_key", "auth.api_key_file", raw.auth.api_key, raw.auth.api_key_file, ApiKey::new)?;
        let keys_file = raw.auth.keys_file.map(keys_file).transpose()?;
        let hashing =
            secret("hashing.secret", "hashing.secret_file", raw.hashing.secret, raw.hashing.secret_file, |text| {
                SecretKey::from_hex(text).map_err(|_| "must be 32 hexadecimal digits".to_owned())
            })?;
        let limits = limits(&raw.limits, &raw.commit)?;
        let memory = memory_config(&raw.memory, &raw.limits)?;
        if raw.memory.max_bytes > 0 {
            let HttpLimits { bodies_bytes_max, answers_bytes_max, .. } = server.limits;
            let payloads = limits.commit_payload_bytes_max;
            memory::fit(&raw.memory, bodies_bytes_max, answers_bytes_max, payloads)?;
        }
        if raw.data.dir.as_os_str().is_empty() {
            return Err(impossible("data.dir", "\"\"", "must be a path".into()));
        }
        let stores = [("disk", Store::Disk), ("memory", Store::Memory), ("redis", Store::Redis)];
        let store = word("data.store", &raw.data.store, &stores)?;
        let medium = if store == Store::Disk { Medium::Disk } else { Medium::Memory };
        let collections = CollectionsConfig {
            data_dir: raw.data.dir,
            lock_wait: milliseconds("data.lock_wait_ms", raw.data.lock_wait_ms, 0..=3_600_000)?,
            reserve_bytes: within("data.reserve_bytes", raw.data.reserve_bytes, 0..=1 << 40)?,
            collections_max: count("collections.max", raw.collections.max, 1..=10_000)?,
            default_settings: default_collection(&raw.default_collection, hashing.as_ref())?,
            secret: hashing,
            limits,
            memory,
            medium,
            redis: (store == Store::Redis).then(|| redis(raw.redis)).transpose()?,
            backup: backup(raw.backup)?,
            scrub: scrub(&raw.scrub)?,
        };
        let (tls, audit) = (Tls::check(raw.tls)?, audit(raw.audit)?);
        let (cpu, log) = (cpu(&raw.cpu)?, log(raw.log)?);
        let config = Self { server, api_key, keys_file, tls, collections, cpu, audit, log };
        let addresses = [Some(config.server.listen), config.server.admin_listen].into_iter().flatten();
        addresses.into_iter().try_for_each(|address| Self::protects(&config, address))?;
        Ok(config)
    }

    /// Refuses an address that other machines can reach, if the server has no key.
    pub fn protects(config: &Self, address: SocketAddr) -> Result<(), ConfigError> {
        let open = config.api_key.is_none() && config.keys_file.is_none();
        if open && !address.ip().is_loopback() {
            return Err(ConfigError::OpenWithoutKey { listen: address });
        }
        Ok(())
    }
}

fn limits(raw: &RawLimits, commit: &RawCommit) -> Result<Limits, ConfigError> {
    const MILLION: RangeInclusive<u64> = 1..=1_000_000;
    let limits = Limits {
        bucket_read_max: count("limits.bucket_read_max", raw.bucket_read_max, MILLION)?,
        scoped_reads_max: count("limits.scoped_reads_max", raw.scoped_reads_max, MILLION)?,
        labels: LabelLimits {
            labels_max: count("limits.labels_max", raw.labels_max, 1..=10_000_000)?,
            source_documents_max: optional("limits.source_documents_max", raw.source_documents_max, 1..=1 << 32)?,
        },
        candidates_max: count("limits.candidates_max", raw.candidates_max, MILLION)?,
        exact_reads_max: count("limits.exact_reads_max", raw.exact_reads_max, MILLION)?,
        exact_bytes_max: within("limits.exact_bytes_max", raw.exact_bytes_max, 1 << 10..=1 << 40)?,
        commit_queue_max: count("commit.queue_max", commit.queue_max, MILLION)?,
        commit_batch_max: count("commit.batch_max", commit.batch_max, MILLION)?,
        commit_window: milliseconds("commit.window_ms", commit.window_ms, 0..=1000)?,
        commit_payload_bytes_max: count("commit.payload_bytes_max", commit.payload_bytes_max, 1 << 20..=1 << 40)?,
        commit_queue_wait: milliseconds("commit.queue_wait_ms", commit.queue_wait_ms, 0..=600_000)?,
        id_fingerprint_bits: u64::BITS,
    };
    if limits.commit_batch_max > limits.commit_queue_max {
        let allowed = format!("must be at most commit.queue_max, which is {}", limits.commit_queue_max);
        return Err(impossible("commit.batch_max", limits.commit_batch_max, allowed));
    }
    Ok(limits)
}

/// Where documents are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Store {
    Disk,
    Memory,
    Redis,
}

fn memory_config(raw: &RawMemory, limits: &RawLimits) -> Result<MemoryConfig, ConfigError> {
    let index = within("limits.memory_max_bytes", limits.memory_max_bytes.unwrap_or(0), 0..=1 << 50)?;
    let ids = zero_or_within("memory.id_cache_bytes_max", raw.id_cache_bytes_max, 1 << 20..=1 << 36)?;
    Ok(MemoryConfig {
        index_bytes_max: Some(index).filter(|&max| max > 0),
        id_cache_bytes_max: ids,
        process: Bound::new(Some(raw.max_bytes).filter(|&max| max > 0)),
    })
}

fn scrub(raw: &RawScrub) -> Result<Option<ScrubConfig>, ConfigError> {
    let bytes_per_second = within("scrub.bytes_per_second", raw.bytes_per_second, 0..=1 << 40)?;
    let interval = within("scrub.interval_s", raw.interval_s, 1..=31_536_000)?;
    let config = ScrubConfig { bytes_per_second, interval: Duration::from_secs(interval) };
    Ok((bytes_per_second > 0).then_some(config))
}

fn cpu(raw: &RawCpu) -> Result<CpuConfig, ConfigError> {
    let threads = match count("cpu.threads", raw.threads, 0..=1024)? {
        // One core is left to the connections.
        0 => cpu::cores().saturating_sub(1).max(1),
        threads => threads,
    };
    Ok(CpuConfig {
        threads,
        queue_max: count("cpu.queue_max", raw.queue_max, 1..=1_000_000)?,
        queue_delay_max: milliseconds("cpu.queue_delay_max_ms", raw.queue_delay_max_ms, 0..=60_000)?,
    })
}

fn backup(raw: RawBackup) -> Result<BackupSettings, ConfigError> {
    let bytes_per_second_max = match raw.bytes_per_second_max {
        0 => None,
        rate => Some(within("backup.bytes_per_second_max", rate, 64 << 10..=1 << 40)?),
    };
    let log_bytes_max = Some(within("backup.log_bytes_max", raw.log_bytes_max, 1 << 20..=4 << 30)?);
    let dir = Some(raw.dir).filter(|dir| !dir.as_os_str().is_empty());
    Ok(BackupSettings { dir, bytes_per_second_max, log_bytes_max })
}

fn audit(raw: RawAudit) -> Result<Option<AuditSettings>, ConfigError> {
    let file_bytes_max = within("audit.file_bytes_max", raw.file_bytes_max, 256 << 10..=1 << 40)?;
    let bytes_max = within("audit.bytes_max", raw.bytes_max, 512 << 10..=1 << 50)?;
    // The oldest file is removed when the limit is reached. If there were only one file, all lines would be removed.
    if file_bytes_max > bytes_max / 2 {
        let allowed = format!("must be at most half of audit.bytes_max, which is {bytes_max}");
        return Err(impossible("audit.file_bytes_max", file_bytes_max, allowed));
    }
    let retention = within("audit.retention_s", raw.retention_s, 0..=3_153_600_000)?;
    let settings = AuditSettings {
        dir: raw.dir,
        checks: raw.checks,
        queue_bytes_max: count("audit.queue_bytes_max", raw.queue_bytes_max, 256 << 10..=1 << 30)?,
        file_bytes_max,
        bytes_max,
        retention: (retention > 0).then(|| Duration::from_secs(retention)),
    };
    Ok(Some(settings).filter(|settings| !settings.dir.as_os_str().is_empty()))
}

fn log(raw: RawLog) -> Result<LogSettings, ConfigError> {
    let format = word(
        "log.format",
        &raw.format,
        &[("auto", logs::Format::Auto), ("human", logs::Format::Human), ("json", logs::Format::Json)],
    )?;
    if let Err(refused) = logs::check_level(&raw.level) {
        let allowed = format!(
            "must be a level (error, warn, info, debug, trace) or directives such as info,hapax=debug; {refused}"
        );
        return Err(impossible("log.level", &raw.level, allowed));
    }
    Ok(LogSettings { format, level: raw.level })
}
