//! `hapax serve`: reads the settings and runs a server until a signal stops it.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use jiff::Timestamp;

use super::descriptors;
use super::duration::duration;
use super::exit::ExitStatus;
use super::in_use::advise;
use super::plural::plural;
use super::secure::Secure;
use super::service::ServiceManager;
use super::signals::Signals;
use super::socket_activation::Given;
use super::sockets::{Serving, Sockets};
use crate::audit::{AuditLog, AuditSettings};
use crate::collections::{Collections, CollectionsConfig, Medium, Opening};
use crate::config::{self, ApiKey, Config, HttpLimits, Server, Sources};
use crate::corpus::SearchLimits;
use crate::cpu::{self, CpuPool, run_promptly};
use crate::http::{Access, AppState, Boot, Defaults, Wiring};
use crate::keys::{self, KeyRing, KeysFile};
use crate::telemetry::{logs, names, recorder::Metrics};

/// The time between two checks of the progress of the start.
const BOOT_LOOK: Duration = Duration::from_millis(100);

/// The number of tasks that a thread runs before it looks for events. Tokio's default is 61 tasks, which take 30 ms
/// with texts of 16 KB. With fewer tasks, fewer answers share one wake-up of a sleeping client, so checks are a tenth
/// faster with 31 than with 13. But if ten times as many requests arrive as the server can answer, it refuses short
/// checks late with 31, and fewer requests get good answers.
const EVENT_INTERVAL: u32 = 13;

/// Run the server.
///
/// Without any configuration, it listens on 127.0.0.1:8080 and stores its data in ./hapax-data. When it is ready, it
/// prints one line to stdout. All other messages go to stderr. After SIGINT or SIGTERM, it finishes open requests and
/// stops. A second signal stops it at once.
#[derive(Debug, clap::Args)]
// If a flag is given twice, the last one is used. So the arguments of a caller override those of a wrapper script.
#[command(args_override_self = true)]
#[command(after_help = "Examples:
  hapax serve
  hapax serve --listen 127.0.0.1:9000 --data-dir /var/lib/hapax
  hapax serve --config hapax.toml --check-config       print the settings, with secrets masked
  HAPAX__AUTH__API_KEY_FILE=/run/secrets/key hapax serve --listen 0.0.0.0:8080

config/default.toml describes every setting. Flags override the variables HAPAX__SECTION__KEY, and
these variables override the configuration file.

Exit status: 0 stopped by a signal, or the configuration is valid; 2 the server could not start;
130 stopped by a second signal.")]
pub struct Args {
    /// Address and port to listen on. An API key is required unless the address is a loopback address [default:
    /// server.listen, which is 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Directory to store the data in [default: data.dir, which is ./hapax-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Configuration file, in TOML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the settings, print the ones that would be used, and exit
    #[arg(long)]
    check_config: bool,
    /// How long to wait for another process to release the data directory, such as 500ms, 60s or 5m [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    lock_wait: Option<Duration>,
    /// Format of the log: auto, human or json [default: auto, which is human on a terminal and json elsewhere]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Log level: error, warn, info, debug or trace, or directives such as info,hapax::store=debug [default:
    /// info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
}

impl Args {
    fn sources(&self) -> Result<Sources> {
        let mut flags = Vec::new();
        let mut set = |flag, key, value: Option<String>| flags.extend(value.map(|value| (flag, key, value)));
        set("--listen", "server.listen", self.listen.clone());
        set("--lock-wait", "data.lock_wait_ms", self.lock_wait.map(|wait| wait.as_millis().to_string()));
        set("--log-format", "log.format", self.log_format.clone());
        set("--log-level", "log.level", self.log_level.clone());
        if let Some(dir) = &self.data_dir {
            let Some(dir) = dir.to_str() else { bail!("--data-dir {}: the path must be UTF-8", dir.display()) };
            set("--data-dir", "data.dir", Some(dir.to_owned()));
        }
        Ok(Sources { flags, ..Sources::of_process(self.config.clone()) })
    }
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let loaded = config::load(&args.sources()?)?;
    if args.check_config {
        writeln!(std::io::stdout().lock(), "{}", loaded.effective).context("cannot write the settings")?;
        let Config { api_key, server, tls, keys_file, .. } = &loaded.config;
        let now = Timestamp::now();
        let mut warnings = config::warnings(api_key.as_ref(), &server.addresses);
        warnings.extend(tls.as_ref().and_then(|tls| config::certificate_ends(tls, now)));
        warnings.extend(keys_file.as_ref().and_then(|file| config::keys_end(file, now)));
        for warning in warnings {
            writeln!(std::io::stderr().lock(), "hapax: warning: {warning}").context("cannot write the warnings")?;
        }
        return Ok(ExitStatus::Fine);
    }
    let mut config = loaded.config;
    // This must happen before the first thread starts, because it changes the environment.
    let given = Given::take()?;
    logs::install(config.log.format, &config.log.level)?;
    logs::log_panics();
    let warnings = config::warnings(config.api_key.as_ref(), &config.server.addresses);
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    fit_connections(&mut config.server, &config.collections);
    let metrics =
        Metrics::install().map_err(|_| anyhow!("cannot install the metrics recorder: there is one already"))?;
    let runtime = runtime(config.server.worker_threads).context("cannot start threads")?;
    let outcome = runtime.block_on(serve(config, metrics, given));
    // Here, only a start that a signal interrupted may still be running. The start has acknowledged no write, so it may
    // end at any point.
    runtime.shutdown_background();
    outcome.map(|()| ExitStatus::Fine)
}

fn fit_connections(server: &mut Server, collections: &CollectionsConfig) {
    server.limits.connections_max = descriptors::connections_that_fit(
        descriptors::raise_limit(),
        server.limits.connections_max,
        collections.collections_max,
        server.admin_listen.is_some(),
    );
}

fn runtime(worker_threads: Option<usize>) -> std::io::Result<tokio::runtime::Runtime> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = worker_threads {
        runtime.worker_threads(threads);
    }
    // Blocking threads do short disk reads, and more threads would not make these faster. Further reads wait in a
    // queue. Each thread costs some megabytes in the allocator.
    runtime.max_blocking_threads(cpu::cores() + 2);
    // A thread looks for new requests after this many tasks, even if other tasks wait. The waiting time of a request is
    // counted from then on.
    runtime.event_interval(EVENT_INTERVAL);
    runtime.enable_all().thread_name("hapax-serve").on_thread_start(run_promptly).build()
}

/// Returns what requests get that name no settings.
pub(super) fn defaults(collections: &CollectionsConfig) -> Defaults {
    Defaults {
        settings: collections.default_settings.clone(),
        secret_fingerprint: collections.secret.as_ref().map(hapax_core::SecretKey::fingerprint),
        search_limits: SearchLimits::from(&collections.limits),
    }
}

async fn serve(config: Config, metrics: Metrics, given: Given) -> Result<()> {
    watch_memory(&config.server, &config.collections)?;
    let mut signals = Signals::new()?;
    let sockets = bind(&config, given).await?;
    let manager = ServiceManager::of_environment();
    tokio::spawn(manager.clone().keep_alive());
    let Config { server, api_key, tls, keys_file, collections: collections_config, cpu, audit, log: _ } = config;
    let (boot, cpu, audit) = (Boot::new(), CpuPool::new(cpu), audit_log(audit));
    let state = AppState::new(Wiring {
        boot: Arc::clone(&boot),
        limits: server.limits,
        keys: key_ring(api_key, keys_file)?,
        access: Access::new(sockets.address().ip(), &server.hosts, &server.cors_origins),
        addresses: server.addresses,
        metrics: scrape(metrics, Arc::clone(&boot), cpu.clone()),
        cpu: cpu.clone(),
        memory: Arc::clone(&collections_config.memory.process),
        stream_threads: server.worker_threads,
        defaults: defaults(&collections_config),
        audit: audit.clone(),
        console: server.console,
    });
    // Probes and /metrics are answered while the collections are being opened.
    let secure = Secure::start(tls);
    let mut serving = sockets.serve(state, &secure);
    let place = place(&collections_config);
    let boot_log = tokio::spawn(report_boot(manager.clone(), Arc::clone(boot.opening())));
    let collections = tokio::select! {
        opened = open(collections_config, audit.clone(), cpu, Arc::clone(boot.opening())) => opened?,
        () = signals.next() => {
            drain(signals, &manager, serving, server.limits.drain_timeout).await?;
            tracing::info!("stopped before the start was complete");
            return Ok(());
        }
    };
    let rest = collections.open_rest();
    boot.begin(collections.clone());
    let (address, probes_address) = (serving.address(), serving.probes_address());
    let ready = async {
        rest.await;
        boot_log.abort();
        boot.finish(collections.clone());
        let documents = collections.documents();
        manager.ready(&count(documents));
        announce(&secure, address, probes_address, &place, documents)?;
        std::future::pending::<Result<()>>().await
    };
    tokio::select! {
        () = signals.next() => {}
        failed = ready => failed?,
        ended = serving.ended() => {
            ended?;
            bail!("the server ended unexpectedly");
        }
    }
    drain(signals, &manager, serving, server.limits.drain_timeout).await?;
    close(&manager, collections, audit).await
}

/// Waits until all decisions are on disk, and then until their lines are in the audit log.
async fn close(manager: &ServiceManager, collections: Collections, audit: Option<Arc<AuditLog>>) -> Result<()> {
    manager.closing();
    let close = move || {
        collections.close();
        audit.iter().for_each(|audit| audit.close());
    };
    tokio::task::spawn_blocking(close).await.context("closing the data failed")?;
    tracing::info!("stopped");
    Ok(())
}

/// Finishes open requests. A second signal ends the process at once.
async fn drain(signals: Signals, manager: &ServiceManager, serving: Serving, patience: Duration) -> Result<()> {
    tracing::info!("finishing open requests; a second signal stops at once");
    signals.exit_at_next();
    manager.stopping(patience);
    serving.drain().await
}

async fn bind(config: &Config, given: Given) -> Result<Sockets> {
    let sockets = Sockets::bind(&config.server, given).await?;
    // A socket of the service manager may have another address than the configured one.
    sockets.addresses().try_for_each(|address| Config::protects(config, address))?;
    Ok(sockets)
}

/// Returns the log of decisions, or `None` if decisions are not logged. The log writes nothing until it is started.
fn audit_log(settings: Option<AuditSettings>) -> Option<Arc<AuditLog>> {
    for gauge in [names::AUDIT_BYTES, names::AUDIT_QUEUE_BYTES] {
        metrics::gauge!(gauge).set(0.0);
    }
    settings.map(AuditLog::new)
}

/// Returns the keys of clients, and begins to watch their file.
fn key_ring(api_key: Option<ApiKey>, file: Option<KeysFile>) -> Result<KeyRing> {
    keys::ring(api_key.map(|key| key.digest()), file).context("cannot start the thread of the keys file")
}

/// Warns if the connections or the index may take memory that other parts need, and begins to watch the memory of the
/// process.
fn watch_memory(server: &Server, collections: &CollectionsConfig) -> Result<()> {
    collections.memory.process.watch().context("cannot start the thread that watches memory")?;
    let Some(max) = collections.memory.process.max() else { return Ok(()) };
    let HttpLimits { bodies_bytes_max, answers_bytes_max, connections_max, .. } = server.limits;
    let others = bodies_bytes_max + answers_bytes_max + collections.limits.commit_payload_bytes_max;
    let others = (others as u64).saturating_add(collections.memory.id_cache_bytes_max);
    if let Some((taken, share)) = config::too_many_connections(max, others, connections_max) {
        tracing::warn!(
            connections_max,
            connections_bytes = taken,
            share_bytes = share,
            max_bytes = max,
            "server.connections_max is too large for memory.max_bytes: so many connections with unfinished requests \
             take more memory than the share for everything without a limit of its own"
        );
    }
    let Some(index) = collections.memory.index_bytes_max else { return Ok(()) };
    if index.saturating_add(others) > max {
        tracing::warn!(
            index_bytes = index,
            other_bytes = others,
            max_bytes = max,
            "limits.memory_max_bytes is too large for memory.max_bytes: if bodies, answers and ids take all the memory \
             that they may take, documents are refused before the index is full"
        );
    }
    Ok(())
}

/// Takes the directory of the audit log, then takes the data directory, and opens `default`.
async fn open(
    config: CollectionsConfig,
    audit: Option<Arc<AuditLog>>,
    cpu: CpuPool,
    opening: Arc<Opening>,
) -> Result<Collections> {
    let lock_wait = config.lock_wait;
    let what = match config.redis {
        Some(_) => "cannot open the collections in the Redis cluster".to_owned(),
        None => format!("cannot open the data in {}", config.data_dir.display()),
    };
    if let Some(audit) = audit {
        // A stopping server releases its data directory first, and this directory afterwards.
        let started = tokio::task::spawn_blocking(move || audit.start(lock_wait)).await;
        started.context("opening the audit log failed")??;
    }
    let opened = tokio::task::spawn_blocking(move || Collections::open(config, cpu, opening)).await;
    opened
        .context("opening the data directory failed")?
        .context(what)
        .map_err(|error| advise(error, "stop it, choose another directory with --data-dir, or wait with --lock-wait"))
}

/// Describes where the documents are stored, for people.
fn place(config: &CollectionsConfig) -> String {
    if let Some(redis) = &config.redis {
        return format!("the Redis cluster of {}, EXPERIMENTAL", redis.nodes.join(", "));
    }
    match config.medium {
        Medium::Disk => config.data_dir.display().to_string(),
        Medium::Memory => "memory: NOTHING IS KEPT when this process ends".to_owned(),
    }
}

/// Returns a number of documents in words.
fn count(documents: u64) -> String {
    format!("{documents} document{}", plural(documents))
}

/// Prints the one line that scripts wait for.
fn announce(
    secure: &Secure,
    address: SocketAddr,
    probes: Option<SocketAddr>,
    place: &str,
    documents: u64,
) -> Result<()> {
    tracing::info!(%address, probes = probes.map(tracing::field::display), data_dir = place, documents, "ready");
    let url = secure.server_url(address);
    let also = probes.map(|probes| format!(", probes on {}", secure.probes_url(probes))).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    writeln!(out, "hapax ready on {url}{also} (data in {place}, {})", count(documents))
        .and_then(|()| out.flush())
        .context("cannot write the ready line")
}

/// Returns a function that renders the text of `/metrics`. The gauges of the collections and of the pool are read at
/// each request.
fn scrape(metrics: Metrics, boot: Arc<Boot>, cpu: CpuPool) -> Arc<dyn Fn() -> String + Send + Sync> {
    Arc::new(move || {
        cpu.observe();
        metrics::gauge!(names::BOOT_PROGRESS).set(boot.opening().share());
        if let Ok(collections) = boot.collections() {
            collections.observe();
        }
        metrics.render()
    })
}

/// Logs the progress of the start, and reports it to the service manager.
async fn report_boot(manager: ServiceManager, opening: Arc<Opening>) {
    tokio::join!(log_boot(&opening), manager.report(&opening));
}

/// Logs a line each time that another tenth of the start is done.
async fn log_boot(opening: &Opening) {
    let (begun, mut told) = (Instant::now(), 0);
    let mut looks = tokio::time::interval(BOOT_LOOK);
    loop {
        looks.tick().await;
        let tenths = (opening.share() * 10.0) as u64;
        if tenths > told {
            told = tenths;
            let next = opening.pending().into_iter().find(|(_, share)| *share > 0.0).map(|(name, _)| name.to_string());
            tracing::info!(
                percent = tenths * 10,
                seconds = begun.elapsed().as_secs_f64(),
                collection = next,
                "opening the collections"
            );
        }
    }
}
