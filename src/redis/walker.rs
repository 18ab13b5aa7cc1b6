//! The walker of a collection: it reads all records and all groups, slowly and again and again, and ends what servers have
//! left that were killed. One server at a time walks through a collection. This is only polite: if two do, nothing breaks, because the
//! walker settles a record like any other server that meets it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use redis::Value;

use super::call::call;
use super::collection::RedisCollection;
use super::context::Context;
use super::dangling::{Entry, entries, remove};
use super::drive::LEASE;
use super::failure::Failure;
use super::keys::FIRST;
use super::protocol::{Found, Head, Ref, State, Step};
use super::record::Judged;
use crate::telemetry::names::{self, label, value};
use crate::verdicts::CollectionError;

type Result<T, E = CollectionError> = std::result::Result<T, E>;

/// The time between two turns. In a turn, a walker reads up to `TURN` records of each collection, `BATCH` at a time.
const PAUSE: Duration = Duration::from_secs(1);
const TURN: u64 = 2048;
const BATCH: u64 = 256;
/// How many groups are read at a time, and how often in a turn.
const GROUPS: usize = 256;
const BATCHES_OF_GROUPS: usize = 64;
const PAUSE_OF_BATCH: Duration = Duration::from_millis(20);
/// How many records are settled at once.
const AT_ONCE: usize = 16;
/// The shortest time between the beginnings of two rounds through one collection.
const ROUND_MIN: Duration = Duration::from_secs(5);
/// How long another server waits for the one that walks through a collection.
const WALKER_LEASE_MS: u64 = 10_000;
/// How long a record stays that says only that a document is over. A command of a server that was thought to be dead may
/// arrive late, and this record keeps it from storing the document.
const BARE: Duration = Duration::from_secs(600);

/// Walks through the collections that this server has used, until the task is aborted.
pub(super) async fn walk(open: impl Fn() -> Vec<Arc<RedisCollection>>) {
    let name = getrandom::u64().expect("the system has random numbers").to_string();
    let mut walkers: HashMap<u64, Walker> = HashMap::new();
    loop {
        tokio::time::sleep(PAUSE).await;
        let collections = open();
        let numbers: Vec<_> = collections.iter().map(|collection| collection.context().entry().number()).collect();
        walkers.retain(|number, _| numbers.contains(number));
        for (number, collection) in numbers.into_iter().zip(collections) {
            let walker = walkers.entry(number).or_default();
            // While a node does not answer, the rest is for a later turn.
            let _ = walker.turn(collection.context(), &name).await;
        }
    }
}

/// The place of the walker in one collection.
#[derive(Default)]
struct Walker {
    /// The number after which it goes on.
    after: u64,
    round_began: Option<Instant>,
    /// The place among the groups at which it goes on.
    place: usize,
    /// The entries of the groups before it that led to no document, when they were read.
    doubtful: BTreeSet<Entry>,
    /// The heads of records that another server may still be working on, and when they are settled if they stay as they are.
    known: BTreeMap<Ref, (Head, Instant)>,
}

impl Walker {
    /// Reads the next records, if no other server does.
    async fn turn(&mut self, context: &Context, name: &str) -> Result<()> {
        if !is_walker(context, name).await? {
            self.known.clear();
            return Ok(());
        }
        self.look_again(context).await?;
        if self.after == 0 {
            if self.round_began.is_some_and(|began| began.elapsed() < ROUND_MIN) {
                return Ok(());
            }
            self.round_began = Some(Instant::now());
        }
        let reserved = context.counters().reserved().await?;
        let end = reserved.min(self.after + TURN);
        while self.after < end {
            let next = end.min(self.after + BATCH);
            let numbers: Vec<_> = (self.after + 1..=next).map(|number| Ref(FIRST + number)).collect();
            self.look(context, &numbers).await?;
            self.after = next;
            tokio::time::sleep(PAUSE_OF_BATCH).await;
        }
        if self.after >= reserved {
            self.after = 0;
        }
        self.look_at_groups(context).await
    }

    /// Looks again at the records that were to be looked at later.
    async fn look_again(&mut self, context: &Context) -> Result<()> {
        let now = Instant::now();
        let due: Vec<_> = self.known.iter().filter(|(_, (_, due))| *due <= now).map(|(&at, _)| at).collect();
        for numbers in due.chunks(BATCH as usize).take(TURN.div_ceil(BATCH) as usize) {
            self.look(context, numbers).await?;
        }
        Ok(())
    }

    /// Looks at some groups. An entry that leads to no document is removed if it is still there when the groups are read
    /// the next time: its server may be about to remove it.
    async fn look_at_groups(&mut self, context: &Context) -> Result<()> {
        let (bands, mut seen) = (context.entry().settings().banding.bands(), 0);
        for _ in 0..BATCHES_OF_GROUPS {
            let groups = context.keys().groups_from(bands, self.place, GROUPS);
            if groups.is_empty() {
                self.place = 0;
                break;
            }
            seen += self.look_at(context, &groups).await.map_err(|failure| failure.told(false))?;
            self.place += groups.len();
            if seen >= TURN as usize {
                break;
            }
        }
        Ok(())
    }

    /// Looks at these groups. Returns how many documents they lead to.
    async fn look_at(&mut self, context: &Context, groups: &[Vec<u8>]) -> Result<usize, Failure> {
        let entries = entries(context, groups).await?;
        let numbers: Vec<_> = entries.keys().copied().collect();
        let mut driver = context.driver(context.wire_of_reads());
        let mut removed = Vec::new();
        for numbers in numbers.chunks(BATCH as usize) {
            let seem_over = driver.which_seem_over(numbers).await?;
            let (known, new): (Vec<_>, Vec<_>) = seem_over
                .into_iter()
                .partition(|(at, _)| entries[at].iter().all(|entry| self.doubtful.contains(entry)));
            self.doubtful.extend(new.iter().flat_map(|(at, _)| entries[at].iter().cloned()));
            for at in driver.make_over(&known).await? {
                entries[&at].iter().for_each(|entry| _ = self.doubtful.remove(entry));
                removed.extend(entries[&at].iter().cloned());
            }
        }
        metrics::counter!(names::REDIS_LEFTOVERS, label::KIND => value::LEFT_DANGLING).increment(removed.len() as u64);
        remove(context, removed).await?;
        Ok(numbers.len())
    }

    /// Looks at some records, and settles those that have had the same head for long enough.
    async fn look(&mut self, context: &Context, numbers: &[Ref]) -> Result<()> {
        let mut driver = context.driver(context.wire_of_reads());
        let records = driver.records(numbers).await.map_err(|failure| failure.told(false))?;
        metrics::counter!(names::REDIS_WALKED).increment(numbers.len() as u64);
        let mut ripe = Vec::new();
        for (&at, record) in numbers.iter().zip(records) {
            let Some(found) = record else {
                self.known.remove(&at);
                continue;
            };
            match patience(&found) {
                None => _ = self.known.remove(&at),
                Some(patience) if self.is_due(at, found.head, patience) => {
                    self.known.remove(&at);
                    ripe.push((at, found));
                }
                Some(_) => {}
            }
        }
        let settled = ripe.into_iter().map(|(at, found)| settle(context, at, found));
        stream::iter(settled).buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Returns whether a record has had this head for long enough.
    fn is_due(&mut self, at: Ref, head: Head, patience: Duration) -> bool {
        let now = Instant::now();
        let known = self.known.entry(at).or_insert_with(|| (head, now + patience));
        if known.0 != head {
            *known = (head, now + patience);
        }
        known.1 <= now
    }
}

/// Returns how long a record must stay as it is before it is settled. None: nothing is to be done.
fn patience(found: &Found<Judged>) -> Option<Duration> {
    match (found.head.state, &found.body) {
        (State::Sealed, _) if !found.expired => None,
        (State::Sealed | State::Kept, _) if found.expired => Some(Duration::ZERO),
        (_, None) => Some(BARE),
        _ => Some(LEASE),
    }
}

/// Settles a record.
async fn settle(context: &Context, at: Ref, found: Found<Judged>) -> Result<()> {
    let kind = kind(&found);
    let Some(body) = found.body else {
        let mut driver = context.driver(context.wire_of_reads());
        driver.finish_rest(vec![vec![Step::remove(at, found.head)]]).await;
        count(kind);
        return Ok(());
    };
    let mut driver = context.driver(context.wire(&body, Some(&body.stored.id)));
    let rest = driver.sweep(at, found.head).await.map_err(|failure| failure.told(false))?;
    context.count_expired(driver.ended(), 0);
    if let Some(rest) = rest
        && driver.finish_rest(rest).await
    {
        count(kind);
    }
    Ok(())
}

fn kind(found: &Found<Judged>) -> &'static str {
    match found.head.state {
        State::Pending => value::LEFT_PENDING,
        _ if found.expired => value::LEFT_EXPIRED,
        State::Kept | State::Sealed => value::LEFT_UNSEALED,
        State::Superseded => value::LEFT_SUPERSEDED,
        State::Aborted | State::Deleted if found.body.is_none() => value::LEFT_BARE,
        State::Aborted => value::LEFT_ABORTED,
        State::Deleted => value::LEFT_DELETED,
    }
}

fn count(kind: &'static str) {
    metrics::counter!(names::REDIS_LEFTOVERS, label::KIND => kind).increment(1);
}

/// Returns whether this server is the one that walks through a collection, and stays it for a while.
async fn is_walker(context: &Context, name: &str) -> Result<bool> {
    let key = context.keys().walker();
    let get = redis::cmd("GET").arg(&key).to_owned();
    let walks: Option<String> = redis::from_redis_value(call(context.cluster(), &key, get).await?).unwrap_or(None);
    let mut set = redis::cmd("SET");
    set.arg(&key).arg(name).arg("PX").arg(WALKER_LEASE_MS);
    match walks {
        Some(other) if other != name => return Ok(false),
        Some(_) => {}
        None => _ = set.arg("NX"),
    }
    Ok(call(context.cluster(), &key, set).await? != Value::Nil)
}
