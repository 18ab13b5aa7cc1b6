//! A data directory -> a server inside this process, without sockets. Input: requests of a command. Output: the answers
//! that `hapax serve` would give, because the same routes make them. Knows nothing of the use of an answer.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::Sender;
use ureq::http::Method;

use super::api::Api;
use super::client::{ClientError, Problem};
use super::in_use::advise;
use super::serve::defaults;
use crate::audit::AuditLog;
use crate::collections::{CollectionError, Collections, Medium};
use crate::config::{self, Addresses, Config, HttpLimits, Sources};
use crate::cpu::CpuPool;
use crate::http::{Access, Answered, AppState, BodyType, Boot, Group, GroupAnswers, InProcess, WholeAnswer, Wiring};
use crate::keys::KeyRing;
use crate::types::CollectionName;

/// A transaction begins at most this long after the last one. The answers are not urgent, and a transaction of many
/// documents costs less for each of them.
const COMMIT_WINDOW: Duration = Duration::from_millis(30);

/// The data directory, and the routes that answer about it.
pub(super) struct OwnServer {
    /// The path of the data directory.
    name: String,
    runtime: Runtime,
    routes: InProcess,
    collections: Collections,
    audit: Option<Arc<AuditLog>>,
}

impl OwnServer {
    /// Locks the data directory, and creates it if needed. Opens `default` and the given collections, if they exist.
    pub(super) fn open(dir: &Path, config: Option<&PathBuf>, collections: &[CollectionName]) -> Result<Self> {
        let Some(path) = dir.to_str() else { bail!("--data-dir {}: the path must be UTF-8", dir.display()) };
        let flags = vec![("--data-dir", "data.dir", path.to_owned())];
        let sources = Sources { flags, ..Sources::of_process(config.cloned()) };
        let config = config::load(&sources)?.config;
        if config.collections.redis.is_some() {
            bail!(
                "--data-dir {path}: data.store is \"redis\", so documents are in a Redis cluster; import through a server"
            );
        }
        if config.collections.medium == Medium::Memory {
            bail!("--data-dir {path}: nothing would be kept, because data.store is \"memory\"; it must be \"disk\"");
        }
        let runtime = Runtime::new().context("cannot start threads")?;
        let opened = runtime.block_on(serve(config, collections));
        let (routes, collections, audit) = opened
            .with_context(|| format!("cannot open the data in {path}"))
            .map_err(|error| advise(error, "stop it, or leave out --data-dir to import through the running server"))?;
        let name = dir.canonicalize().map_or_else(|_| path.to_owned(), |dir| dir.display().to_string());
        Ok(Self { name, runtime, routes, collections, audit })
    }

    /// Begins the work of one bulk request, whose lines are given in groups.
    pub(super) fn groups(&self, path: &str) -> Result<(Sender<Group>, OwnAnswers<'_>), ClientError> {
        let begun = self.runtime.block_on(self.routes.groups(path));
        let (give, answers) = begun.map_err(declined)?;
        Ok((give, OwnAnswers { runtime: &self.runtime, answers }))
    }

    fn ask(&self, method: Method, path: &str, of_type: BodyType, body: &[u8]) -> WholeAnswer {
        self.runtime.block_on(self.routes.ask(method, path, of_type, body.to_owned()))
    }
}

/// The answers to groups of lines, in their order.
pub(super) struct OwnAnswers<'a> {
    runtime: &'a Runtime,
    answers: GroupAnswers,
}

impl OwnAnswers<'_> {
    /// Returns the answers to the next group, once they are on disk; `None` after the last group.
    pub(super) fn next(&mut self) -> Option<Vec<Answered>> {
        self.runtime.block_on(self.answers.next())
    }
}

impl Api for OwnServer {
    fn name(&self) -> &str {
        &self.name
    }

    fn get(&self, path: &str) -> Result<(u16, String), ClientError> {
        let WholeAnswer { status, text, .. } = self.ask(Method::GET, path, BodyType::Json, b"");
        Ok((status, text))
    }

    fn send(&self, method: Method, path: &str, json: Option<&str>) -> Result<(u16, String), ClientError> {
        accepted(self.ask(method, path, BodyType::Json, json.unwrap_or_default().as_bytes()))
    }

    fn post_lines(&self, path: &str, lines: &[u8]) -> Result<Box<dyn Read>, ClientError> {
        let (_, text) = accepted(self.ask(Method::POST, path, BodyType::Lines, lines))?;
        Ok(Box::new(io::Cursor::new(text)))
    }
}

impl Drop for OwnServer {
    /// Waits until all decisions are on disk, and then until their lines are in the audit log.
    fn drop(&mut self) {
        self.collections.close();
        self.audit.iter().for_each(|audit| audit.close());
    }
}

fn accepted(answer: WholeAnswer) -> Result<(u16, String), ClientError> {
    match answer {
        WholeAnswer { status, text, .. } if (200..300).contains(&status) => Ok((status, text)),
        answer => Err(declined(answer)),
    }
}

fn declined(WholeAnswer { status, text, retry_after }: WholeAnswer) -> ClientError {
    let detail = serde_json::from_str::<Problem>(&text).map_or(text, |problem| problem.sentence());
    ClientError::Declined { status, detail, retry_after }
}

/// Opens the collections, and makes the routes.
async fn serve(config: Config, names: &[CollectionName]) -> Result<(InProcess, Collections, Option<Arc<AuditLog>>)> {
    let Config { server, collections: mut settings, cpu, audit, .. } = config;
    settings.limits.commit_window = settings.limits.commit_window.max(COMMIT_WINDOW);
    settings.memory.process.watch().context("cannot start the thread that watches memory")?;
    let (boot, cpu, audit) = (Boot::new(), CpuPool::new(cpu), audit.map(AuditLog::new));
    // The limit on a source slows clients down.
    let limits = HttpLimits { source_documents_per_second: None, ..server.limits };
    // There are no clients, so there are no keys, and no limits on clients.
    let state = AppState::new(Wiring {
        boot: Arc::clone(&boot),
        limits,
        keys: KeyRing::open(),
        access: Access::default(),
        addresses: Addresses::default(),
        metrics: Arc::new(String::new),
        cpu: cpu.clone(),
        memory: Arc::clone(&settings.memory.process),
        stream_threads: server.worker_threads,
        defaults: defaults(&settings),
        audit: audit.clone(),
        console: false,
    });
    let (lock_wait, opening, log) = (settings.lock_wait, Arc::clone(boot.opening()), audit.clone());
    let open = move || -> Result<Collections> {
        log.map_or(Ok(()), |log| log.start(lock_wait))?;
        Ok(Collections::open(settings, cpu, opening)?)
    };
    let collections = tokio::task::spawn_blocking(open).await.context("opening the data directory failed")??;
    for name in names {
        open_one(&collections, name).await?;
    }
    boot.finish(collections.clone());
    Ok((InProcess::new(state), collections, audit))
}

/// Opens a collection if it exists. A request would not wait long enough for a large one.
async fn open_one(collections: &Collections, name: &CollectionName) -> Result<()> {
    loop {
        match collections.get(name).await {
            Ok(_) | Err(CollectionError::NoSuchCollection(_)) => return Ok(()),
            // The opening goes on, and the next attempt waits for it too.
            Err(CollectionError::Overloaded { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
