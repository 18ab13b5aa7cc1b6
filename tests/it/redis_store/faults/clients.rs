//! Clients that insert, delete and check documents of a few groups under a few ids, on several servers, and record each
//! call and its answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use rand::seq::IndexedRandom as _;
use rand::{Rng, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use ureq::Agent;

use super::calls::{Call, CellNumber, Said};
use super::cell::{Doc, Id};
use super::history::Record;
use crate::redis_store::http::agent;
use crate::support::server::Address;
use crate::support::until::until_within;

/// The ids and the groups of the cells: the shape of a cell depends on its number.
const SHAPES: [(u8, u8); 5] = [(4, 1), (3, 2), (4, 2), (2, 3), (1, 3)];
const VARIANTS: u8 = 2;
/// After so many calls, another cell is the one that most clients choose. So no cell gets very many calls: the more
/// answers of a cell are uncertain, the less its history says.
const CALLS_OF_CELL: u64 = 100;
/// Clients choose one of so many cells, and sometimes an older one of the round.
const CELLS_AT_ONCE: u64 = 4;
/// The share of insertions with `on_existing=replace`.
const REPLACES: f64 = 0.25;
/// After an answer that says nothing, a client waits: a dead server refuses connections at once.
const PAUSE: Duration = Duration::from_millis(10);
/// When all nodes are well, each call must have a certain answer after this time.
const AGAIN_MAX: Duration = Duration::from_secs(60);

/// The clients, their servers and their records.
pub struct Clients {
    /// The servers that are alive.
    servers: RwLock<BTreeMap<usize, Address>>,
    clients: u64,
    begun: Instant,
    ended: AtomicBool,
    /// The cells of the round: the first one, and the one after the last.
    cells: [AtomicU64; 2],
    /// The calls of the round.
    calls: AtomicU64,
    records: Mutex<Vec<Record>>,
}

impl Clients {
    pub fn new(clients: u64) -> Self {
        Self {
            servers: RwLock::default(),
            clients,
            begun: Instant::now(),
            ended: AtomicBool::new(false),
            cells: Default::default(),
            calls: AtomicU64::new(0),
            records: Mutex::default(),
        }
    }

    /// Returns the time on the clock of the records.
    pub fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Replaces a server by the same one at another address. `None`: it is dead.
    pub fn moved(&self, number: usize, address: Option<&Address>) {
        let mut servers = self.servers.write();
        match address {
            Some(address) => _ = servers.insert(number, address.clone()),
            None => _ = servers.remove(&number),
        }
    }

    /// Uses the first cells without [`during`](Self::during).
    pub fn use_cells(&self, count: u64) {
        self.cells[1].store(count, Ordering::Relaxed);
    }

    /// Runs all clients during `work`, on cells that were not used before. After it, the records have all their calls.
    pub fn during<T>(&self, seed: u64, work: impl FnOnce() -> T) -> T {
        let [first, end] = &self.cells;
        first.store(end.load(Ordering::Relaxed), Ordering::Relaxed);
        self.calls.store(0, Ordering::Relaxed);
        self.ended.store(false, Ordering::Relaxed);
        thread::scope(|scope| {
            // If `work` panics, the clients must end, too.
            let _end = End(&self.ended);
            for client in 0..self.clients {
                let seed = seed.wrapping_mul(self.clients).wrapping_add(client);
                scope.spawn(move || self.run(&mut ChaCha8Rng::seed_from_u64(seed)));
            }
            work()
        })
    }

    fn run(&self, random: &mut ChaCha8Rng) {
        let agent = agent();
        let mut named = None;
        while !self.ended.load(Ordering::Relaxed) {
            let some = self.some_cell(random);
            let call = some_call(random, some);
            // Where a document was just deleted, several clients insert the next one.
            let (cell, call) = match named {
                Some((cell, id)) if random.random_bool(0.35) => (cell, Call::Delete(id)),
                _ => (some, call),
            };
            let said = self.call(&agent, random, cell, call);
            if matches!(said, None | Some(Said::Refused { .. } | Said::Uncertain(_))) {
                thread::sleep(PAUSE);
            }
            named = if let Some(Said::Named(named)) = said { Some(named) } else { None };
        }
    }

    fn some_cell(&self, random: &mut impl Rng) -> CellNumber {
        let first = self.cells[0].load(Ordering::Relaxed);
        let last = first + CELLS_AT_ONCE + self.calls.fetch_add(1, Ordering::Relaxed) / CALLS_OF_CELL;
        self.cells[1].fetch_max(last + 1, Ordering::Relaxed);
        match random.random_range(0..100) {
            0..60 => last,
            60..97 => last - random.random_range(0..CELLS_AT_ONCE),
            _ => random.random_range(first..=last),
        }
    }

    /// Sends a call to some server, and records it. Returns `None` if no server is alive.
    pub fn call(&self, agent: &Agent, random: &mut impl Rng, cell: CellNumber, call: Call) -> Option<Said> {
        let servers: Vec<Address> = self.servers.read().values().cloned().collect();
        let server = servers.choose(random)?;
        let begin = self.now();
        let said = call.send(agent, server, cell);
        self.records.lock().push(Record { cell, call, said: said.clone(), begin, end: self.now() });
        Some(said)
    }

    /// Reads all ids and checks all groups of the round, each on some server. All nodes must be well.
    pub fn look(&self, seed: u64) {
        let [first, end] = self.cells.each_ref().map(|cell| cell.load(Ordering::Relaxed));
        let next = AtomicU64::new(first);
        thread::scope(|scope| {
            for client in 0..self.clients.min(16) {
                let mut random = ChaCha8Rng::seed_from_u64(seed.wrapping_add(client));
                let next = &next;
                scope.spawn(move || {
                    let agent = agent();
                    let cells = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&cell| cell < end);
                    for cell in std::iter::from_fn(cells) {
                        self.look_at(&agent, &mut random, cell);
                    }
                });
            }
        });
    }

    fn look_at(&self, agent: &Agent, random: &mut impl Rng, cell: CellNumber) {
        let (ids, groups) = shape(cell);
        let checks = |variant| (0..groups).map(move |group| Call::Check(Doc { group, variant }));
        let gets = (0..ids).map(Call::Get);
        // What is stored can be deleted, and then the next document can be stored.
        let changes = [Call::Delete(0), Call::Insert { id: 0, doc: Doc { group: 0, variant: 0 }, replaces: false }];
        for call in checks(0).chain(gets).chain(changes).chain(checks(1)) {
            // A server needs a moment until it knows that all nodes are well, and it waits for a document that a dead
            // server was inserting.
            until_within(AGAIN_MAX, "an answer is certain when all nodes are well", || {
                let said = self.call(agent, random, cell, call);
                !matches!(said, None | Some(Said::Refused { .. } | Said::Uncertain(_)))
            });
        }
    }

    /// Returns the records of the round, and forgets them.
    pub fn take_records(&self) -> Vec<Record> {
        std::mem::take(&mut self.records.lock())
    }
}

/// Returns how many ids and groups a cell has.
fn shape(cell: CellNumber) -> (u8, u8) {
    SHAPES[cell as usize % SHAPES.len()]
}

fn some_call(random: &mut impl Rng, cell: CellNumber) -> Call {
    let (ids, groups) = shape(cell);
    let id: Id = random.random_range(0..ids);
    let doc = Doc { group: random.random_range(0..groups), variant: random.random_range(0..VARIANTS) };
    match random.random_range(0..100) {
        0..60 => Call::Insert { id, doc, replaces: random.random_bool(REPLACES) },
        60..72 => Call::Delete(id),
        _ => Call::Check(doc),
    }
}

/// Ends the clients.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
