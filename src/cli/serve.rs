//! `hapax serve`: settings -> a listening server, until a signal.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{ExitStatus, descriptors};
use crate::collections::{Collections, Medium, Opening};
use crate::config::{self, Config, Sources};
use crate::cpu::CpuPool;
use crate::http::{self, Access, AppState, Boot, Wiring};
use crate::telemetry::{logs, memory, names, recorder::Metrics};

/// What a shell calls "ended by SIGINT": the status of a stop that did not wait.
const EXIT_INTERRUPTED: i32 = 130;
/// Between two looks at how far the boot is.
const BOOT_LOOK: Duration = Duration::from_millis(100);

/// Run the server.
///
/// Without any configuration it listens on 127.0.0.1:8080 and keeps its data in ./hapax-data. Once it answers, one
/// line on stdout says so; everything else goes to stderr. SIGINT and SIGTERM let requests under way finish; a second
/// signal does not.
#[derive(Debug, clap::Args)]
// The last of two equal flags wins, so that a wrapper's can be overridden.
#[command(args_override_self = true)]
#[command(after_help = "Examples:
  hapax serve
  hapax serve --listen 127.0.0.1:9000 --data-dir /var/lib/hapax
  hapax serve --config hapax.toml --check-config       print what would be used, secrets masked
  HAPAX__AUTH__API_KEY_FILE=/run/secrets/key hapax serve --listen 0.0.0.0:8080

Every setting is described in config/default.toml. Flags win over HAPAX__SECTION__KEY variables, these over the file.

Exit status: 0 stopped by a signal, or the configuration is fine; 2 it could not start; 130 stopped by a second signal.")]
pub struct Args {
    /// Address and port; beyond loopback an API key is required
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Where documents are kept
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the settings that would be used, and stop
    #[arg(long)]
    check_config: bool,
    /// How long to wait for another process to leave the data directory: 500ms, 60s, 5m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    lock_wait: Option<Duration>,
    /// auto, human or json
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// error, warn, info, debug, trace, or directives such as info,hapax::store=debug
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return Err("a number with ms, s or m, such as 60s".into()),
    };
    let number: u64 = number.parse().map_err(|_| "a number with ms, s or m, such as 60s".to_owned())?;
    Ok(Duration::from_millis(number.saturating_mul(millis)))
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
            let Some(dir) = dir.to_str() else { bail!("--data-dir {}: the path is not UTF-8", dir.display()) };
            set("--data-dir", "data.dir", Some(dir.to_owned()));
        }
        Ok(Sources { file: self.config.clone(), environment: std::env::vars_os().collect(), flags })
    }
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<ExitStatus> {
    let loaded = config::load(&args.sources()?)?;
    if args.check_config {
        writeln!(std::io::stdout().lock(), "{}", loaded.effective).context("cannot write the settings")?;
        return Ok(ExitStatus::Fine);
    }
    let mut config = loaded.config;
    logs::install(config.log.format, &config.log.level)?;
    logs::log_panics();
    let (server, collections) = (&mut config.server, &config.collections);
    server.limits.connections_max = descriptors::connections_that_fit(
        descriptors::raise_limit(),
        server.limits.connections_max,
        collections.collections_max,
        server.admin_listen.is_some(),
    );
    let metrics = Metrics::install().map_err(|_| anyhow!("cannot record metrics: it is done already"))?;
    memory::give_back_large_buffers();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = config.server.worker_threads {
        runtime.worker_threads(threads);
    }
    // They do short reads of the disk, which more threads would not make faster: the rest queues, and each thread costs
    // the allocator some megabytes.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    runtime.max_blocking_threads(cores + 2);
    let runtime = runtime.enable_all().thread_name("hapax-serve").build().context("cannot start threads")?;
    let outcome = runtime.block_on(serve(config, metrics));
    // What still runs is a boot that a signal made pointless; nothing it does was promised to anyone.
    runtime.shutdown_background();
    outcome.map(|()| ExitStatus::Fine)
}

async fn serve(config: Config, metrics: Metrics) -> Result<()> {
    let Config { server, api_key, collections: collections_config, cpu, log: _ } = config;
    let mut signals = Signals::new()?;
    if api_key.as_ref().is_some_and(config::ApiKey::is_short) {
        tracing::warn!("the API key is short enough to be guessed; take 16 random characters or more");
    }
    let (listener, address) = listen("--listen", server.listen).await?;
    let probes = match server.admin_listen {
        Some(address) => Some(listen("server.admin_listen", address).await?),
        None => None,
    };
    let boot = Boot::new();
    let cpu = CpuPool::new(cpu);
    let state = AppState::new(Wiring {
        boot: Arc::clone(&boot),
        limits: server.limits,
        api_key,
        access: Access::new(server.listen.ip(), &server.hosts, &server.cors_origins),
        metrics: scrape(metrics, Arc::clone(&boot), cpu.clone()),
        cpu: cpu.clone(),
        default_settings: collections_config.default_settings.clone(),
        secret_fingerprint: collections_config.secret.as_ref().map(hapax_core::SecretKey::fingerprint),
    });
    let stop = CancellationToken::new();
    // Probes and /metrics answer while the index is being rebuilt.
    let mut serving = tokio::spawn(http::serve(listener, state.clone(), stop.clone().cancelled_owned()));
    let (probes, probes_address) = probes.unzip();
    let drained = CancellationToken::new();
    let probing =
        probes.map(|probes| tokio::spawn(http::serve_probes(probes, state, drained.clone().cancelled_owned())));
    let (data_dir, medium) = (collections_config.data_dir.clone(), collections_config.medium);
    let opening = {
        let opening = Arc::clone(boot.opening());
        tokio::task::spawn_blocking(move || Collections::open(collections_config, cpu, opening))
    };
    let boot_log = tokio::spawn(log_boot(Arc::clone(boot.opening())));
    let collections = tokio::select! {
        opened = opening => opened.context("opening the data directory broke off")?
            .with_context(|| format!("cannot open the data in {}", data_dir.display()))?,
        () = signals.next() => {
            tracing::info!("stopped while starting");
            return Ok(());
        }
    };
    let rest = collections.open_rest();
    boot.begin(collections.clone());
    let place = match medium {
        Medium::Disk => data_dir.display().to_string(),
        Medium::Memory => "memory: NOTHING IS KEPT when this process ends".to_owned(),
    };
    let ready = async {
        rest.await;
        boot_log.abort();
        boot.finish(collections.clone());
        announce(address, probes_address, &place, collections.documents())?;
        std::future::pending::<Result<()>>().await
    };
    tokio::select! {
        () = signals.next() => {}
        failed = ready => failed?,
        ended = &mut serving => {
            ended.context("the server broke off")?;
            bail!("the server ended without being told to");
        }
    }
    tracing::info!("draining; a second signal stops at once");
    stop.cancel();
    tokio::spawn(async move {
        signals.next().await;
        // Acknowledged writes are on disk; only requests under way are lost.
        std::process::exit(EXIT_INTERRUPTED);
    });
    let cut_off = serving.await.context("the server broke off")?;
    if cut_off > 0 {
        tracing::warn!(connections = cut_off, "requests took longer than server.drain_timeout_ms and were cut off");
    }
    drained.cancel();
    if let Some(probing) = probing {
        probing.await.context("the listener for probes broke off")?;
    }
    tokio::task::spawn_blocking(move || collections.close()).await.context("closing the data broke off")?;
    tracing::info!("stopped");
    Ok(())
}

/// A listener, and the address it got, since port 0 takes any free one.
async fn listen(setting: &str, address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address} (if another server is there, {setting} takes another address)")
    })?;
    let address = listener.local_addr().context("the listener has no address")?;
    Ok((listener, address))
}

/// The one line that scripts wait for.
fn announce(address: SocketAddr, probes: Option<SocketAddr>, place: &str, documents: u64) -> Result<()> {
    tracing::info!(%address, probes = probes.map(tracing::field::display), data_dir = place, documents, "ready");
    let probes = probes.map(|probes| format!(", probes on http://{probes}")).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    writeln!(out, "hapax ready on http://{address}{probes} (data in {place}, {documents} documents)")
        .and_then(|()| out.flush())
        .context("cannot write the ready line")
}

/// The text of `/metrics`; gauges of the collections and of the pool are read when somebody asks.
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

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// A line in the log for each tenth of the boot.
async fn log_boot(opening: Arc<Opening>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for text in ["", "60", "s", "-1s", "1.5s", "1h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
