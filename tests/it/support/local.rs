//! A server within the test's own process, on a real socket, for limits and keys that a test sets itself.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hapax::audit::{AuditLog, AuditSettings};
use hapax::collections::{Collections, CollectionsConfig};
use hapax::config::{self, Addresses, ApiKey, HttpLimits};
use hapax::corpus::SearchLimits;
use hapax::cpu::{CpuConfig, CpuPool};
use hapax::http::{Access, AppState, Boot, Defaults, Listener, Wiring, serve, serve_probes};
use hapax::keys::{self, KeysFile};
use hapax::tls::Acceptor;
use hapax_core::SecretKey;
use tokio_util::sync::CancellationToken;

use super::library::{self, Dir};

/// The settings that a test may change.
pub struct Setup {
    pub limits: HttpLimits,
    pub api_key: Option<&'static str>,
    /// A file of keys.
    pub keys_file: Option<PathBuf>,
    pub access: Access,
    pub addresses: Addresses,
    pub collections: CollectionsConfig,
    pub cpu: CpuConfig,
    /// Whether the collections open. If false, they never do.
    pub boots: bool,
    /// Whether there is a separate listener for probes.
    pub probes: bool,
    /// The number of threads that serve connections; one for each core if `None`.
    pub workers: Option<usize>,
    /// The text of `/metrics`.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// The part that makes TLS handshakes; `None` means plain HTTP.
    pub tls: Option<Acceptor>,
}

fn listen() -> (std::net::TcpListener, SocketAddr) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A running server, which stops when it is dropped.
pub struct Local {
    pub address: SocketAddr,
    scheme: &'static str,
    /// The address of the listener for probes.
    pub probes_address: Option<SocketAddr>,
    pub state: AppState,
    stop: CancellationToken,
    thread: Option<JoinHandle<usize>>,
}

impl Setup {
    /// Makes a setup whose limits leave enough time for a busy machine, and never refuse a request because of its wait.
    /// A test of a deadline sets its own limits.
    pub fn new(dir: &Dir) -> Self {
        Self {
            limits: HttpLimits {
                request_timeout: Duration::from_secs(600),
                queue_delay_max: Duration::ZERO,
                batch_delay_max: Duration::ZERO,
                drain_idle: Duration::from_millis(50),
                ..config::defaults().server.limits
            },
            api_key: None,
            keys_file: None,
            access: Access::default(),
            addresses: Addresses::default(),
            collections: library::config(dir),
            cpu: library::CPU,
            boots: true,
            probes: false,
            workers: None,
            metrics: Arc::new(|| "# none\n".to_owned()),
            tls: None,
        }
    }

    pub fn secret(mut self, byte: u8) -> Self {
        self.collections.secret = Some(SecretKey::new([byte; 16]));
        self
    }

    pub fn limits(mut self, change: impl FnOnce(&mut HttpLimits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Returns the parts of a router, and the collections that have to be closed.
    pub fn wire(self) -> (AppState, Option<Collections>) {
        self.wire_with(None)
    }

    fn wire_with(self, audit: Option<Arc<AuditLog>>) -> (AppState, Option<Collections>) {
        let boot = Boot::new();
        let cpu = CpuPool::new(self.cpu);
        let state = AppState::new(Wiring {
            boot: Arc::clone(&boot),
            limits: self.limits,
            keys: keys::ring(
                self.api_key.map(|key| ApiKey::new(key).expect("a key").digest()),
                self.keys_file.map(|path| KeysFile::read(&path).expect("a keys file")),
            )
            .expect("a thread"),
            access: self.access,
            addresses: self.addresses,
            metrics: self.metrics,
            cpu: cpu.clone(),
            memory: Arc::clone(&self.collections.memory.process),
            stream_threads: self.workers,
            defaults: Defaults {
                settings: self.collections.default_settings.clone(),
                secret_fingerprint: self.collections.secret.as_ref().map(SecretKey::fingerprint),
                search_limits: SearchLimits::from(&self.collections.limits),
            },
            audit,
            console: true,
        });
        let collections = self.boots.then(|| Collections::open(self.collections, cpu, Arc::default()).unwrap());
        if let Some(collections) = &collections {
            boot.finish(collections.clone());
        }
        (state, collections)
    }

    pub fn start(self) -> Local {
        self.start_with(None)
    }

    /// Starts a server that logs its decisions in this directory.
    pub fn start_audited(self, dir: PathBuf) -> Local {
        let settings = AuditSettings {
            dir,
            checks: false,
            queue_bytes_max: 1 << 20,
            file_bytes_max: 1 << 20,
            bytes_max: 1 << 24,
            retention: None,
        };
        let log = AuditLog::new(settings);
        log.start(Duration::ZERO).expect("no other process logs here");
        self.start_with(Some(log))
    }

    fn start_with(self, audit: Option<Arc<AuditLog>>) -> Local {
        let (probes, workers, tls) = (self.probes, self.workers, self.tls.clone());
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (state, collections) = self.wire_with(audit);
        let (listener, address) = listen();
        let (probes, probes_address) = probes.then(listen).unzip();
        let stop = CancellationToken::new();
        let (stopped, serving) = (stop.clone(), state.clone());
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            workers.into_iter().for_each(|workers| _ = runtime.worker_threads(workers));
            let runtime = runtime.enable_all().build().unwrap();
            let cut = runtime.block_on(async move {
                let listener = Listener::new(tokio::net::TcpListener::from_std(listener).unwrap(), tls);
                if let Some(probes) = probes {
                    let probes = tokio::net::TcpListener::from_std(probes).unwrap();
                    tokio::spawn(serve_probes(probes, serving.clone(), std::future::pending()));
                }
                serve(listener, serving, stopped.cancelled_owned()).await
            });
            if let Some(collections) = collections {
                collections.close();
            }
            cut
        });
        Local { address, scheme, probes_address, state, stop, thread: Some(thread) }
    }
}

impl Local {
    /// Starts a server with these defaults.
    pub fn plain(dir: &Dir) -> Self {
        Setup::new(dir).start()
    }

    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits for the drain. Returns the number of connections that were cut.
    pub fn stopped(mut self) -> usize {
        self.stop.cancel();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // If an assertion failed elsewhere, its message is more useful than this one.
            let _ = thread.join();
        }
    }
}
