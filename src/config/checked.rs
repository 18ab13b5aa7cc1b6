//! Settings that are possible: ranges kept, words known, secrets read.
//! Comes in: [`Raw`]. Goes out: [`Config`]. Its holder need not check again.
//! Must never know: HTTP, or how a collection is opened.

use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use hapax_core::{
    Banding, Digits, Fold, Marks, SecretKey, Shingling, SignatureShape, SketchKind, Spec, TextSpec, tuning,
};

use super::error::ConfigError;
use super::hosts::{Host, Origin};
use super::raw::{self, Raw};
use super::secrets::secret;
use crate::collections::{BackupSettings, CollectionError, CollectionsConfig, Limits, Medium, ScrubConfig, Settings};
use crate::cpu::CpuConfig;
use crate::telemetry::logs;
use crate::types::{Keep, Verify};

/// An API key with fewer characters draws a warning at start: what people type as a password is guessed within days.
const API_KEY_CHARS_SHORT: usize = 16;

/// Everything `hapax serve` is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Section `[server]`.
    pub server: Server,
    /// The key that clients must send.
    pub api_key: Option<ApiKey>,
    /// Sections `[data]`, `[collections]`, `[default_collection]`, `[hashing]`, `[limits]`, `[commit]`, `[backup]` and
    /// `[scrub]`.
    pub collections: CollectionsConfig,
    /// Section `[cpu]`.
    pub cpu: CpuConfig,
    /// Section `[log]`.
    pub log: Log,
}

/// Section `[server]`; each field as in `config/default.toml`.
#[derive(Clone, Debug)]
pub struct Server {
    /// Address and port.
    pub listen: SocketAddr,
    /// Address and port of a listener for probes and metrics alone.
    pub admin_listen: Option<SocketAddr>,
    /// Names it goes by, besides loopback ones.
    pub hosts: Vec<Host>,
    /// Pages of other sites that may use it.
    pub cors_origins: Vec<Origin>,
    /// `None`: one per core.
    pub worker_threads: Option<usize>,
    /// Open connections.
    pub connections_max: usize,
    /// Requests being answered.
    pub requests_concurrent_max: usize,
    /// Bytes of request bodies in memory.
    pub bodies_bytes_max: usize,
    /// Body of any request but a bulk one or a streamed text.
    pub body_bytes_max: usize,
    /// How fast it has to come.
    pub body_bytes_per_second_min: u64,
    /// A streamed text.
    pub text_body_bytes_max: u64,
    /// How fast it has to come.
    pub text_bytes_per_second_min: u64,
    /// Streamed texts at once.
    pub text_streams_max: usize,
    /// Documents of a batch.
    pub batch_documents_max: usize,
    /// Bulk requests being answered.
    pub bulk_requests_max: usize,
    /// Body of a bulk request.
    pub bulk_body_bytes_max: u64,
    /// Lines of a bulk request.
    pub bulk_lines_max: u64,
    /// One line of a bulk request.
    pub bulk_line_bytes_max: usize,
    /// Decisions of one bulk request that wait for the disk.
    pub bulk_open_max: usize,
    /// Answers kept for a bulk client that does not read.
    pub bulk_answer_buffer_bytes_max: usize,
    /// How long it may go on not reading.
    pub bulk_stall_timeout: Duration,
    /// How long it may send nothing.
    pub bulk_idle_timeout: Duration,
    /// An answer, or a line of a bulk answer.
    pub answer_bytes_max: usize,
    /// Bytes of answers in memory.
    pub answers_bytes_max: usize,
    /// How fast an answer has to be taken.
    pub answer_bytes_per_second_min: u64,
    /// Time for a request's headers.
    pub header_timeout: Duration,
    /// Time that a connection may be without a request.
    pub keep_alive_timeout: Duration,
    /// Time for a body to arrive, and for an answer to be made; longest pause of a streamed text.
    pub request_timeout: Duration,
    /// Time for an answer to be read.
    pub write_timeout: Duration,
    /// Time that a stop waits.
    pub drain_timeout: Duration,
}

/// Section `[log]`.
#[derive(Clone, Debug)]
pub struct Log {
    /// Words or JSON.
    pub format: logs::Format,
    /// A filter that parses.
    pub level: String,
}

/// The key that clients send. `{:?}` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Printable ASCII characters without spaces, or else what is allowed.
    pub fn new(text: &str) -> Result<Self, String> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self(text.to_owned()));
        }
        Err("a key has at least one character, all printable ASCII, and no spaces".to_owned())
    }

    /// Whether it can be guessed.
    pub fn is_short(&self) -> bool {
        self.0.len() < API_KEY_CHARS_SHORT
    }

    /// The key itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(********)")
    }
}

impl Config {
    /// Checks every value, and reads the files that hold secrets.
    pub fn check(raw: Raw) -> Result<Self, ConfigError> {
        let server = server(&raw.server)?;
        let api_key =
            secret("auth.api_key", "auth.api_key_file", raw.auth.api_key, raw.auth.api_key_file, ApiKey::new)?;
        let mut addresses = [Some(server.listen), server.admin_listen].into_iter().flatten();
        let beyond_loopback = addresses.find(|address| !address.ip().is_loopback());
        if let (None, Some(listen)) = (&api_key, beyond_loopback) {
            return Err(ConfigError::OpenWithoutKey { listen });
        }
        let hashing =
            secret("hashing.secret", "hashing.secret_file", raw.hashing.secret, raw.hashing.secret_file, |text| {
                SecretKey::from_hex(text).map_err(|_| "must be 32 hexadecimal digits".to_owned())
            })?;
        let limits = limits(&raw.limits, &raw.commit)?;
        if raw.data.dir.as_os_str().is_empty() {
            return Err(impossible("data.dir", "\"\"", "must be a path".into()));
        }
        let collections = CollectionsConfig {
            data_dir: raw.data.dir,
            lock_wait: milliseconds("data.lock_wait_ms", raw.data.lock_wait_ms, 0..=3_600_000)?,
            collections_max: count("collections.max", raw.collections.max, 1..=10_000)?,
            default_settings: default_collection(&raw.default_collection, hashing.as_ref())?,
            secret: hashing,
            limits,
            memory_max_bytes: match within("limits.memory_max_bytes", raw.limits.memory_max_bytes, 0..=1 << 50)? {
                0 => None,
                max => Some(max),
            },
            medium: word("data.store", &raw.data.store, &[("disk", Medium::Disk), ("memory", Medium::Memory)])?,
            backup: backup(raw.backup)?,
            scrub: scrub(&raw.scrub)?,
        };
        Ok(Self { server, api_key, collections, cpu: cpu(&raw.cpu)?, log: log(raw.log)? })
    }
}

fn server(raw: &raw::Server) -> Result<Server, ConfigError> {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    const TIB: u64 = 1 << 40;
    const TIMES: RangeInclusive<u64> = 100..=3_600_000;
    let (listen, admin_listen) = addresses(raw)?;
    let server = Server {
        listen,
        admin_listen,
        hosts: each(
            "server.hosts",
            &raw.hosts,
            Host::of_setting,
            "names or addresses without a port, such as hapax.internal",
        )?,
        cors_origins: each(
            "server.cors_origins",
            &raw.cors_origins,
            Origin::new,
            "origins without a path, such as https://app.example:8443, or null",
        )?,
        worker_threads: match count("server.worker_threads", raw.worker_threads, 0..=1024)? {
            0 => None,
            threads => Some(threads),
        },
        connections_max: count("server.connections_max", raw.connections_max, 1..=1_000_000)?,
        requests_concurrent_max: count("server.requests_concurrent_max", raw.requests_concurrent_max, 1..=100_000)?,
        bodies_bytes_max: count("server.bodies_bytes_max", raw.bodies_bytes_max, MIB..=TIB)?,
        body_bytes_max: count("server.body_bytes_max", raw.body_bytes_max, KIB..=GIB)?,
        body_bytes_per_second_min: within("server.body_bytes_per_second_min", raw.body_bytes_per_second_min, 1..=GIB)?,
        text_body_bytes_max: within("server.text_body_bytes_max", raw.text_body_bytes_max, KIB..=TIB)?,
        text_bytes_per_second_min: within("server.text_bytes_per_second_min", raw.text_bytes_per_second_min, 1..=GIB)?,
        text_streams_max: count("server.text_streams_max", raw.text_streams_max, 1..=100_000)?,
        batch_documents_max: count("server.batch_documents_max", raw.batch_documents_max, 1..=100_000)?,
        bulk_requests_max: count("server.bulk_requests_max", raw.bulk_requests_max, 1..=100_000)?,
        bulk_body_bytes_max: within("server.bulk_body_bytes_max", raw.bulk_body_bytes_max, KIB..=TIB)?,
        bulk_lines_max: within("server.bulk_lines_max", raw.bulk_lines_max, 1..=100_000_000)?,
        bulk_line_bytes_max: count("server.bulk_line_bytes_max", raw.bulk_line_bytes_max, KIB..=GIB)?,
        bulk_open_max: count("server.bulk_open_max", raw.bulk_open_max, 1..=100_000)?,
        bulk_answer_buffer_bytes_max: count(
            "server.bulk_answer_buffer_bytes_max",
            raw.bulk_answer_buffer_bytes_max,
            64 * KIB..=GIB,
        )?,
        bulk_stall_timeout: milliseconds("server.bulk_stall_timeout_ms", raw.bulk_stall_timeout_ms, TIMES)?,
        bulk_idle_timeout: milliseconds("server.bulk_idle_timeout_ms", raw.bulk_idle_timeout_ms, TIMES)?,
        answer_bytes_max: count("server.answer_bytes_max", raw.answer_bytes_max, 64 * KIB..=GIB)?,
        answer_bytes_per_second_min: within(
            "server.answer_bytes_per_second_min",
            raw.answer_bytes_per_second_min,
            1..=GIB,
        )?,
        answers_bytes_max: count("server.answers_bytes_max", raw.answers_bytes_max, MIB..=TIB)?,
        header_timeout: milliseconds("server.header_timeout_ms", raw.header_timeout_ms, TIMES)?,
        keep_alive_timeout: milliseconds("server.keep_alive_timeout_ms", raw.keep_alive_timeout_ms, TIMES)?,
        request_timeout: milliseconds("server.request_timeout_ms", raw.request_timeout_ms, TIMES)?,
        write_timeout: milliseconds("server.write_timeout_ms", raw.write_timeout_ms, TIMES)?,
        drain_timeout: milliseconds("server.drain_timeout_ms", raw.drain_timeout_ms, 0..=3_600_000)?,
    };
    if server.bulk_line_bytes_max as u64 > server.bulk_body_bytes_max {
        let allowed = format!("must be at most server.bulk_body_bytes_max, which is {}", server.bulk_body_bytes_max);
        return Err(impossible("server.bulk_line_bytes_max", server.bulk_line_bytes_max, allowed));
    }
    if server.answers_bytes_max / 4 < server.answer_bytes_max {
        let allowed =
            format!("must be at least four times server.answer_bytes_max, which is {}", server.answer_bytes_max);
        return Err(impossible("server.answers_bytes_max", server.answers_bytes_max, allowed));
    }
    // Itself and its text; a line that takes all the room would wait for more of it.
    let largest = server.body_bytes_max.max(server.bulk_line_bytes_max);
    if server.bodies_bytes_max < 2 * largest {
        let allowed = format!(
            "must be at least twice server.body_bytes_max and twice server.bulk_line_bytes_max, the larger of which is {largest}"
        );
        return Err(impossible("server.bodies_bytes_max", server.bodies_bytes_max, allowed));
    }
    Ok(server)
}

/// Both addresses to listen on; they are apart.
pub(super) fn addresses(raw: &raw::Server) -> Result<(SocketAddr, Option<SocketAddr>), ConfigError> {
    let parse = |key, text: &str| {
        text.parse().map_err(|_| {
            let allowed = "must be an IP address and a port, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080".into();
            impossible(key, text, allowed)
        })
    };
    let listen: SocketAddr = parse("server.listen", &raw.listen)?;
    if raw.admin_listen.is_empty() {
        return Ok((listen, None));
    }
    let admin = parse("server.admin_listen", &raw.admin_listen)?;
    if admin == listen && listen.port() != 0 {
        let allowed = "must be another address or port than server.listen, or empty".into();
        return Err(impossible("server.admin_listen", admin, allowed));
    }
    Ok((listen, Some(admin)))
}

fn limits(raw: &raw::Limits, commit: &raw::Commit) -> Result<Limits, ConfigError> {
    const MILLION: RangeInclusive<u64> = 1..=1_000_000;
    let limits = Limits {
        bucket_read_max: count("limits.bucket_read_max", raw.bucket_read_max, MILLION)?,
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

fn scrub(raw: &raw::Scrub) -> Result<Option<ScrubConfig>, ConfigError> {
    let bytes_per_second = within("scrub.bytes_per_second", raw.bytes_per_second, 0..=1 << 40)?;
    let interval = within("scrub.interval_s", raw.interval_s, 1..=31_536_000)?;
    let config = ScrubConfig { bytes_per_second, interval: Duration::from_secs(interval) };
    Ok((bytes_per_second > 0).then_some(config))
}

fn cpu(raw: &raw::Cpu) -> Result<CpuConfig, ConfigError> {
    let threads = match count("cpu.threads", raw.threads, 0..=1024)? {
        // One core is left to the connections.
        0 => std::thread::available_parallelism().map_or(1, usize::from).saturating_sub(1).max(1),
        threads => threads,
    };
    Ok(CpuConfig { threads, queue_max: count("cpu.queue_max", raw.queue_max, 1..=1_000_000)? })
}

fn default_collection(raw: &raw::DefaultCollection, secret: Option<&SecretKey>) -> Result<Settings, ConfigError> {
    let (sketch, shape) =
        sketch(&raw.sketch).ok_or_else(|| impossible("default_collection.sketch", &raw.sketch, SKETCHES.into()))?;
    let threshold = raw.threshold;
    if !(threshold > 0.0 && threshold <= 1.0) {
        let allowed = "must be a number above 0 and at most 1".into();
        return Err(impossible("default_collection.threshold", threshold, allowed));
    }
    let key = match (raw.key.as_str(), secret) {
        ("none", _) => None,
        ("secret", Some(secret)) => Some(secret.fingerprint()),
        ("secret", None) => {
            let allowed = "set hashing.secret or hashing.secret_file as well".into();
            return Err(impossible("default_collection.key", "\"secret\"", allowed));
        }
        (other, _) => {
            return Err(impossible("default_collection.key", other, "must be \"none\" or \"secret\"".into()));
        }
    };
    let spec = TextSpec {
        fold: word(
            "default_collection.fold",
            &raw.fold,
            &[("nfkc_casefold", Fold::NfkcCasefold), ("nfkc", Fold::Nfkc), ("none", Fold::None)],
        )?,
        marks: word("default_collection.marks", &raw.marks, &[("keep", Marks::Keep), ("strip", Marks::Strip)])?,
        digits: word("default_collection.digits", &raw.digits, &[("keep", Digits::Keep), ("zero", Digits::Zero)])?,
        shingling: shingling(&raw.shingle).ok_or_else(|| {
            let allowed = "must be \"word1\" to \"word32\" or \"char1\" to \"char32\"".into();
            impossible("default_collection.shingle", &raw.shingle, allowed)
        })?,
        sketch,
        shape,
        key,
    };
    let banding = match (raw.bands, raw.rows) {
        (0, 0) => tuning::default_banding(shape, threshold),
        (bands, rows) => Banding::new(bands, rows, shape).map_err(|refused| {
            impossible("default_collection.bands and .rows", format!("{bands} and {rows}"), refused.to_string())
        })?,
    };
    let settings = Settings {
        spec: Spec::Text(spec),
        keep: word("default_collection.keep", &raw.keep, &Keep::ALL.map(|keep| (keep.as_str(), keep)))?,
        banding,
        banding_by_hand: (raw.bands, raw.rows) != (0, 0),
        threshold,
        verify: word("default_collection.verify", &raw.verify, &Verify::ALL.map(|verify| (verify.as_str(), verify)))?,
        ttl: (raw.ttl_s > 0).then(|| Duration::from_secs(raw.ttl_s)),
        touch: raw.touch,
    };
    settings.checked().map_err(|refused| match refused {
        CollectionError::Invalid { field: "ttl", detail } => impossible("default_collection.ttl_s", raw.ttl_s, detail),
        refused => impossible("default_collection.verify", &raw.verify, refused.to_string()),
    })
}

fn backup(raw: raw::Backup) -> Result<BackupSettings, ConfigError> {
    let bytes_per_second_max = match raw.bytes_per_second_max {
        0 => None,
        rate => Some(within("backup.bytes_per_second_max", rate, 64 << 10..=1 << 40)?),
    };
    let log_bytes_max = Some(within("backup.log_bytes_max", raw.log_bytes_max, 1 << 20..=4 << 30)?);
    let dir = Some(raw.dir).filter(|dir| !dir.as_os_str().is_empty());
    Ok(BackupSettings { dir, bytes_per_second_max, log_bytes_max })
}

fn log(raw: raw::Log) -> Result<Log, ConfigError> {
    let format = word(
        "log.format",
        &raw.format,
        &[("auto", logs::Format::Auto), ("human", logs::Format::Human), ("json", logs::Format::Json)],
    )?;
    if let Err(refused) = logs::check_level(&raw.level) {
        let allowed = format!(
            "must be a level (error, warn, info, debug, trace) or directives such as info,hapax=debug: {refused}"
        );
        return Err(impossible("log.level", &raw.level, allowed));
    }
    Ok(Log { format, level: raw.level })
}

const SKETCHES: &str = "must be \"fss\", \"classic\" or \"oph\", then slots (a power of two, 64 to 1024), \"x\", bits (8, 16 or 32), \
                        such as \"fss256x8\"";

fn sketch(text: &str) -> Option<(SketchKind, SignatureShape)> {
    let (kind, shape) = SketchKind::split(text)?;
    let (k, bits) = shape.split_once('x')?;
    let (k, bits) = (plain_number(k)?, plain_number(bits)?);
    let fits = k.is_power_of_two() && (64..=1024).contains(&k) && [8, 16, 32].contains(&bits);
    fits.then_some((kind, SignatureShape { k, bits }))
}

fn shingling(text: &str) -> Option<Shingling> {
    let width = |digits: &str| plain_number(digits).filter(|width| (1..=32).contains(width));
    match (text.strip_prefix("word"), text.strip_prefix("char")) {
        (Some(digits), _) => Some(Shingling::Word(width(digits)? as u8)),
        (_, Some(digits)) => Some(Shingling::Char(width(digits)? as u8)),
        _ => None,
    }
}

/// Digits only, no leading zero: `+5` and `05` parse as numbers, but are no canonical text.
fn plain_number(digits: &str) -> Option<u32> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    plain.then(|| digits.parse().ok()).flatten()
}

pub(super) fn impossible(key: &'static str, value: impl fmt::Display, allowed: String) -> ConfigError {
    ConfigError::Impossible { key, value: value.to_string(), allowed }
}

fn within(key: &'static str, value: u64, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(impossible(key, value, format!("must be from {} to {}", range.start(), range.end())))
}

fn count(key: &'static str, value: u64, range: RangeInclusive<u64>) -> Result<usize, ConfigError> {
    let value = within(key, value, range)?;
    usize::try_from(value)
        .map_err(|_| impossible(key, value, format!("must be at most {} on this machine", usize::MAX)))
}

/// Every entry of a list, or the first that is refused.
fn each<T>(
    key: &'static str,
    list: &[String],
    parse: impl Fn(&str) -> Option<T>,
    allowed: &str,
) -> Result<Vec<T>, ConfigError> {
    list.iter()
        .map(|text| {
            parse(text).ok_or_else(|| impossible(key, format!("{text:?}"), format!("must be a list of {allowed}")))
        })
        .collect()
}

fn milliseconds(key: &'static str, value: u64, range: RangeInclusive<u64>) -> Result<Duration, ConfigError> {
    within(key, value, range).map(Duration::from_millis)
}

fn word<T: Copy>(key: &'static str, text: &str, words: &[(&str, T)]) -> Result<T, ConfigError> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let allowed = words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        impossible(key, format!("\"{text}\""), format!("must be one of {allowed}"))
    })
}
