//! The settings before they are checked. `sources.rs` refuses unknown keys. `config/default.toml` has the defaults, and
//! describes the meaning of each key.

use std::path::PathBuf;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    pub server: RawServer,
    pub auth: RawAuth,
    pub tls: RawTls,
    pub address_limits: RawAddressLimits,
    pub data: RawData,
    pub redis: RawRedis,
    pub collections: RawCollections,
    pub default_collection: RawDefaultCollection,
    pub hashing: RawHashing,
    pub memory: RawMemory,
    pub limits: RawLimits,
    pub cpu: RawCpu,
    pub commit: RawCommit,
    pub backup: RawBackup,
    pub scrub: RawScrub,
    pub audit: RawAudit,
    pub log: RawLog,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawServer {
    pub listen: String,
    pub admin_listen: String,
    pub hosts: Vec<String>,
    pub cors_origins: Vec<String>,
    pub trusted_proxies: Vec<String>,
    pub console: bool,
    pub worker_threads: u64,
    pub connections_max: u64,
    pub requests_concurrent_max: u64,
    pub admin_requests_max: u64,
    pub queue_delay_max_ms: u64,
    pub batch_delay_max_ms: u64,
    pub bodies_bytes_max: u64,
    pub body_bytes_max: u64,
    pub body_bytes_per_second_min: u64,
    pub text_body_bytes_max: u64,
    pub text_bytes_per_second_min: u64,
    pub text_streams_max: u64,
    pub batch_documents_max: u64,
    pub bulk_requests_max: u64,
    pub bulk_body_bytes_max: u64,
    pub load_body_bytes_max: u64,
    pub bulk_lines_max: u64,
    pub bulk_line_bytes_max: u64,
    pub bulk_open_max: u64,
    pub bulk_answer_buffer_bytes_max: u64,
    pub bulk_stall_timeout_ms: u64,
    pub bulk_idle_timeout_ms: u64,
    pub answer_bytes_max: u64,
    pub answers_bytes_max: u64,
    pub answer_bytes_per_second_min: u64,
    pub header_timeout_ms: u64,
    pub keep_alive_timeout_ms: u64,
    pub request_timeout_ms: u64,
    pub write_timeout_ms: u64,
    pub drain_timeout_ms: u64,
    pub drain_idle_ms: u64,
    pub start_wait_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawAuth {
    pub api_key: Option<String>,
    pub api_key_file: Option<PathBuf>,
    pub keys_file: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTls {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    pub admin_listen: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawAddressLimits {
    pub requests_per_second: u64,
    pub bytes_per_second: u64,
    pub requests_in_flight: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawData {
    pub dir: PathBuf,
    pub store: String,
    pub lock_wait_ms: u64,
    pub reserve_bytes: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRedis {
    pub nodes: Vec<String>,
    pub username: String,
    pub password_file: Option<PathBuf>,
    pub tls: bool,
    pub ca_file: Option<PathBuf>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    pub timeout_ms: u64,
    pub acks: Option<u64>,
    pub prefix: String,
    pub documents_expected: u64,
    pub check_interval_s: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawCollections {
    pub max: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawDefaultCollection {
    pub fold: String,
    pub marks: String,
    pub digits: String,
    pub shingle: String,
    pub sketch: String,
    pub key: String,
    pub bands: u32,
    pub rows: u32,
    pub threshold: f64,
    pub keep: Option<String>,
    pub extract: String,
    pub verify: String,
    pub ttl_s: u64,
    pub touch: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawHashing {
    pub secret: Option<String>,
    pub secret_file: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawMemory {
    pub max_bytes: u64,
    pub id_cache_bytes_max: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawLimits {
    pub bucket_read_max: u64,
    pub scoped_reads_max: u64,
    pub labels_max: u64,
    pub source_documents_max: u64,
    pub source_documents_per_second: u64,
    pub candidates_max: u64,
    pub exact_reads_max: u64,
    pub exact_bytes_max: u64,
    pub memory_max_bytes: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawCpu {
    pub threads: u64,
    pub queue_max: u64,
    pub queue_delay_max_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawCommit {
    pub queue_max: u64,
    pub batch_max: u64,
    pub window_ms: u64,
    pub payload_bytes_max: u64,
    pub queue_wait_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawBackup {
    pub dir: PathBuf,
    pub bytes_per_second_max: u64,
    pub log_bytes_max: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawScrub {
    pub bytes_per_second: u64,
    pub interval_s: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawAudit {
    pub dir: PathBuf,
    pub checks: bool,
    pub queue_bytes_max: u64,
    pub file_bytes_max: u64,
    pub bytes_max: u64,
    pub retention_s: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawLog {
    pub format: String,
    pub level: String,
}

// `Debug` is not derived for these two types: they contain secrets, and any `{:?}` would log them.
impl std::fmt::Debug for RawAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auth")
            .field("api_key_file", &self.api_key_file)
            .field("keys_file", &self.keys_file)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for RawHashing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hashing").field("secret_file", &self.secret_file).finish_non_exhaustive()
    }
}
