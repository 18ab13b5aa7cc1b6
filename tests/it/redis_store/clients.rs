//! Clients that insert, delete and check documents of a few groups, under ids that they share, on several servers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use rand::seq::IndexedRandom as _;
use rand::{Rng, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use ureq::Agent;

use super::contents::Content;
use super::http::{Answer, agent, ask};
use super::judge::{Held, judge};
use super::notes::{Asked, Id, Note, Told};
use crate::support::client::{CHECK, DOCUMENTS, encode};
use crate::support::server::{Address, Server};

const VARIANTS: u64 = 40;
/// The groups and the ids that are used at a time. All clients use the same ones.
const GROUPS_AT_ONCE: u64 = 10;
const IDS_AT_ONCE: usize = 60;
/// After this time, another group is the one that most clients choose.
const HOT: Duration = Duration::from_millis(200);
/// The first of the ids that only `insert_pending` uses.
const LATER_IDS: Id = 100_000;
/// How many ids with an unclear insertion `insert_pending` tries, and how many threads do this.
const PENDING_IDS: usize = 200;
const PENDING_THREADS: usize = 32;
/// Ids in one request.
const IDS_ASKED: usize = 100;

/// What clients do.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub clients: u64,
    /// The time that a client waits after each answer.
    pub pause: Duration,
    /// If there are more groups and ids than are used at a time, clients go on from one to the next.
    pub groups: u64,
    pub ids: usize,
}

impl Load {
    /// Returns a load on as many groups and ids as are used at a time.
    pub fn new(clients: u64, pause: Duration) -> Self {
        Self { clients, pause, groups: GROUPS_AT_ONCE, ids: IDS_AT_ONCE }
    }
}

/// The clients and their notes.
pub struct Clients {
    /// The servers that are alive.
    servers: RwLock<BTreeMap<usize, Address>>,
    load: Load,
    begun: Instant,
    ended: AtomicBool,
    notes: Mutex<Vec<Note>>,
    /// How many refusals had each code.
    refusals: Mutex<BTreeMap<String, u64>>,
}

impl Clients {
    pub fn new(servers: &[Server], load: Load) -> Self {
        let servers = servers.iter().map(|server| server.address().clone()).enumerate().collect();
        Self {
            servers: RwLock::new(servers),
            load,
            begun: Instant::now(),
            ended: AtomicBool::new(false),
            notes: Mutex::default(),
            refusals: Mutex::default(),
        }
    }

    /// Runs all clients during `work`.
    pub fn during<T>(&self, seed: u64, work: impl FnOnce() -> T) -> T {
        self.ended.store(false, Ordering::Relaxed);
        thread::scope(|scope| {
            // If `work` panics, the clients must end, too.
            let _end = End(&self.ended);
            for client in 0..self.load.clients {
                let seed = seed.wrapping_mul(self.load.clients).wrapping_add(client);
                scope.spawn(move || self.run(&mut ChaCha8Rng::seed_from_u64(seed)));
            }
            work()
        })
    }

    /// Replaces a server by another one, or by the same one at another address. `None`: it is dead.
    pub fn moved(&self, number: usize, address: Option<&Address>) {
        let mut servers = self.servers.write();
        match address {
            Some(address) => _ = servers.insert(number, address.clone()),
            None => _ = servers.remove(&number),
        }
    }

    fn addresses(&self) -> Vec<Address> {
        self.servers.read().values().cloned().collect()
    }

    fn run(&self, random: &mut ChaCha8Rng) {
        let agent = agent();
        let mut found = None;
        while !self.ended.load(Ordering::Relaxed) {
            let (id, content) = (self.some_id(random), self.some_content(random));
            let asked = match (found, random.random_range(0..20)) {
                // Where a document was just deleted, several clients insert the next one.
                (Some(found), 0..8) => Asked::Delete(found),
                (_, 0..14) => Asked::Insert(id, content),
                (_, 14..16) => Asked::Delete(id),
                _ => Asked::Check(content),
            };
            let Some(server) = self.addresses().choose(random).cloned() else {
                thread::sleep(Duration::from_millis(5));
                continue;
            };
            let told = self.send(&agent, &server, asked);
            found = if let Told::Duplicate(of) = told { Some(of) } else { None };
            thread::sleep(if told == Told::Unclear {
                self.load.pause.max(Duration::from_millis(5))
            } else {
                self.load.pause
            });
        }
    }

    /// Returns a content of the group that most clients choose at present, or of one of the groups before it.
    fn some_content(&self, random: &mut impl Rng) -> Content {
        let before = if random.random_range(0..10) < 7 { 0 } else { random.random_range(0..GROUPS_AT_ONCE) };
        let group = (self.step() + self.load.groups - before) % self.load.groups;
        Content { group, variant: random.random_range(0..VARIANTS) }
    }

    fn some_id(&self, random: &mut impl Rng) -> Id {
        let last = self.step() as usize * (IDS_AT_ONCE / 5);
        (last + self.load.ids - random.random_range(0..IDS_AT_ONCE)) % self.load.ids
    }

    fn step(&self) -> u64 {
        (self.begun.elapsed().as_millis() / HOT.as_millis()) as u64
    }

    /// Sends a request, and notes it.
    fn send(&self, agent: &Agent, address: &Address, asked: Asked) -> Told {
        let (method, path, body) = request(asked);
        let sent = self.begun.elapsed();
        let answer = ask(agent, method, &address.url(&path), &body);
        let told = match &answer {
            None => Told::Unclear,
            Some(answer) => self.told(asked, answer),
        };
        self.notes.lock().push(Note { sent, ended: self.begun.elapsed(), asked, told: told.clone() });
        told
    }

    fn told(&self, asked: Asked, answer: &Answer) -> Told {
        let Answer { status, body, has_retry_after } = answer;
        if *status == 503 {
            *self.refusals.lock().entry(answer.code().to_owned()).or_default() += 1;
            assert!(has_retry_after, "no Retry-After: {body}");
            return match answer.code() {
                "store_unavailable" => Told::Refused,
                "uncertain" if !matches!(asked, Asked::Check(_)) => Told::Unclear,
                _ => panic!("{asked:?}: {body}"),
            };
        }
        let duplicate = || Told::Duplicate(number_of(&body["duplicate_of"]));
        match (asked, status, body["outcome"].as_str(), body["verdict"].as_str()) {
            (Asked::Delete(_), 200, ..) => Told::Deleted(body["deleted"].as_u64().expect("a number") > 0),
            (Asked::Insert(..), 409, ..) if answer.code() == "id_conflict" => Told::Conflict,
            (Asked::Insert(..), 200, Some("inserted" | "updated"), _) => Told::Stored,
            (Asked::Insert(..), 200, Some("skipped"), _) => duplicate(),
            (Asked::Check(_), 200, _, Some("unique")) => Told::Unique,
            (Asked::Check(_), 200, _, Some(_)) => duplicate(),
            _ => panic!("{asked:?}: {status} {body}"),
        }
    }

    /// Returns the time that a document of each group, and some ids with unclear insertions, need until they are
    /// inserted, or refused because another document is stored. It is the longest of these times.
    pub fn insert_pending(&self) -> Duration {
        let unclear: BTreeMap<Id, Content> = self.notes.lock().iter().fold(BTreeMap::new(), |mut unclear, note| {
            if let (Asked::Insert(id, content), Told::Unclear) = (note.asked, &note.told) {
                unclear.insert(id, content);
            }
            unclear
        });
        let groups = (0..self.load.groups).map(|group| (LATER_IDS + group as Id, Content { group, variant: 0 }));
        let each = unclear.len().div_ceil(PENDING_IDS).max(1);
        let pending = Mutex::new(groups.chain(unclear.into_iter().step_by(each)));
        let (servers, agent) = (self.addresses(), agent());
        let needed = |(id, content): (Id, Content)| {
            let begun = Instant::now();
            let server = &servers[id % servers.len()];
            while matches!(self.send(&agent, server, Asked::Insert(id, content)), Told::Unclear | Told::Refused) {
                assert!(begun.elapsed() < Duration::from_secs(60), "id {id}, {content:?} cannot be inserted");
                thread::sleep(Duration::from_millis(20));
            }
            begun.elapsed()
        };
        let next = || pending.lock().next();
        let work = || std::iter::from_fn(next).map(needed).max().unwrap_or_default();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..PENDING_THREADS).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it is inserted")).max().unwrap_or_default()
        })
    }

    /// Judges all answers and all stored documents. No client may send a request now. Returns how often each answer was
    /// given.
    pub fn verify(&self) -> BTreeMap<String, u64> {
        let agent = agent();
        let addresses = self.addresses();
        let held: Vec<Held> = addresses.iter().map(|address| self.held_by(&agent, address)).collect();
        assert!(held.iter().all(|other| *other == held[0]), "the servers show different documents: {held:?}");
        let mut broken = judge(&self.notes.lock(), &held[0]);
        broken.extend(self.checks_unlike(&agent, &addresses, &held[0]));
        assert_eq!(broken, Vec::<String>::new());
        let mut counts = self.refusals.lock().clone();
        for note in &*self.notes.lock() {
            let asked = format!("{:?}", note.asked);
            let told =
                if matches!(note.told, Told::Duplicate(_)) { "Duplicate".into() } else { format!("{:?}", note.told) };
            *counts.entry(format!("{} {told}", asked.split('(').next().unwrap_or_default())).or_default() += 1;
        }
        counts
    }

    /// Returns how many documents are stored.
    pub fn held(&self) -> usize {
        self.held_by(&agent(), &self.addresses()[0]).len()
    }

    /// Reads all documents that a server shows by their ids.
    fn held_by(&self, agent: &Agent, address: &Address) -> Held {
        let later = LATER_IDS..LATER_IDS + self.load.groups as Id;
        let ids: Vec<String> = (0..self.load.ids).chain(later).map(id_text).collect();
        let mut held = Held::new();
        for ids in ids.chunks(IDS_ASKED) {
            let answer = ask(agent, "POST", &address.url(&format!("{DOCUMENTS}/get")), &json!({"ids": ids}));
            let body = answer.expect("it answers").body;
            let documents = body["documents"].as_array().unwrap_or_else(|| panic!("{body}"));
            let content = |document: &Value| (number_of(&document["id"]), Content::of(&document["metadata"]));
            held.extend(documents.iter().map(content));
        }
        held
    }

    /// Checks each group on each server. Returns the answers that are unlike what GET shows.
    fn checks_unlike(&self, agent: &Agent, addresses: &[Address], held: &Held) -> Vec<String> {
        let mut unlike = Vec::new();
        let groups = 0..self.load.groups;
        for (group, address) in groups.flat_map(|group| addresses.iter().map(move |address| (group, address))) {
            let content = Content { group, variant: group % VARIANTS };
            let (method, path, body) = request(Asked::Check(content));
            let answer = ask(agent, method, &address.url(&path), &body).expect("it answers").body;
            let matches = answer["matches"].as_array().unwrap_or_else(|| panic!("{answer}"));
            let mut found: Vec<Id> = matches.iter().map(|found| number_of(&found["id"])).collect();
            found.sort_unstable();
            let stored = held.iter().filter(|(_, content)| content.group == group).map(|(&id, _)| id);
            if found != stored.collect::<Vec<_>>() {
                unlike.push(format!("a check of group {group} finds {found:?}, but GET shows {held:?}"));
            }
        }
        unlike
    }
}

/// Ends the clients.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn id_text(id: Id) -> String {
    format!("https://a.example/{id}")
}

fn number_of(id: &Value) -> Id {
    let number = id.as_str().and_then(|id| id.rsplit('/').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("not an id that was sent: {id}"))
}

fn request(asked: Asked) -> (&'static str, String, Value) {
    match asked {
        Asked::Insert(id, content) => {
            // A document that is sent again has other metadata.
            let mut metadata = content.metadata();
            metadata["sent"] = json!(rand::random::<u64>());
            let document = json!({"id": id_text(id), "text": content.text(), "metadata": metadata});
            ("POST", DOCUMENTS.to_owned(), document)
        }
        Asked::Delete(id) => ("DELETE", format!("{DOCUMENTS}?id={}", encode(&id_text(id))), Value::Null),
        Asked::Check(content) => ("POST", format!("{CHECK}?limit=10"), json!({"text": content.text()})),
    }
}
