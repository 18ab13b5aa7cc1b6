//! Clients that insert, delete and check documents of a few groups, under ids that they share, on several servers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
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

const CLIENTS: u64 = 32;
const GROUPS: u64 = 10;
const VARIANTS: u64 = 40;
const IDS: usize = 60;
/// Ids that only `finish` uses.
const LATER_IDS: std::ops::Range<Id> = 1000..1000 + GROUPS as usize;

/// The clients and their notes.
pub struct Clients {
    servers: RwLock<Vec<Address>>,
    begun: Instant,
    /// The time that a client waits after each answer.
    pause: Duration,
    ended: AtomicBool,
    notes: Mutex<Vec<Note>>,
    /// How many refusals had each code.
    refusals: Mutex<BTreeMap<String, u64>>,
}

impl Clients {
    pub fn new(servers: &[Server], pause: Duration) -> Self {
        let servers = servers.iter().map(|server| server.address().clone()).collect();
        Self {
            servers: RwLock::new(servers),
            begun: Instant::now(),
            pause,
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
            for client in 0..CLIENTS {
                scope.spawn(move || self.run(&mut ChaCha8Rng::seed_from_u64(seed.wrapping_mul(CLIENTS) + client)));
            }
            work()
        })
    }

    /// Replaces a server by another one, or by the same one at another address.
    pub fn moved(&self, number: usize, address: &Address) {
        self.servers.write()[number] = address.clone();
    }

    fn run(&self, random: &mut ChaCha8Rng) {
        let agent = agent();
        let mut found = None;
        while !self.ended.load(Ordering::Relaxed) {
            let (id, content) = (random.random_range(0..IDS), self.some_content(random));
            let asked = match (found, random.random_range(0..20)) {
                // Where a document was just deleted, several clients insert the next one.
                (Some(found), 0..8) => Asked::Delete(found),
                (_, 0..14) => Asked::Insert(id, content),
                (_, 14..16) => Asked::Delete(id),
                _ => Asked::Check(content),
            };
            let server = random.random_range(0..self.servers.read().len());
            let told = self.send(&agent, server, asked);
            found = if let Told::Duplicate(of) = told { Some(of) } else { None };
            thread::sleep(if told == Told::Unclear { self.pause.max(Duration::from_millis(5)) } else { self.pause });
        }
    }

    /// Returns a content of any group, or of the group that most clients choose at present.
    fn some_content(&self, random: &mut impl Rng) -> Content {
        let hot = self.begun.elapsed().as_millis() as u64 / 200 % GROUPS;
        let group = if random.random_range(0..10) < 7 { hot } else { random.random_range(0..GROUPS) };
        Content { group, variant: random.random_range(0..VARIANTS) }
    }

    /// Sends a request, and notes it.
    pub fn send(&self, agent: &Agent, server: usize, asked: Asked) -> Told {
        let address = self.servers.read()[server].clone();
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
            (Asked::Insert(..), 200, Some("inserted" | "unchanged"), _) => Told::Stored,
            (Asked::Insert(..), 200, Some("skipped"), _) => duplicate(),
            (Asked::Check(_), 200, _, Some("unique")) => Told::Unique,
            (Asked::Check(_), 200, _, Some(_)) => duplicate(),
            _ => panic!("{asked:?}: {status} {body}"),
        }
    }

    /// Returns the time that a document of each group, and each id with an unclear insertion, needs until it is
    /// inserted, or refused because another one is stored. It is the longest of these times.
    pub fn insert_pending(&self) -> Duration {
        let unclear: BTreeMap<Id, Content> = self.notes.lock().iter().fold(BTreeMap::new(), |mut unclear, note| {
            if let (Asked::Insert(id, content), Told::Unclear) = (note.asked, &note.told) {
                unclear.insert(id, content);
            }
            unclear
        });
        let groups = LATER_IDS.zip(0..).map(|(id, group)| (id, Content { group, variant: 0 }));
        let servers = self.servers.read().len();
        let needed = |(id, content): (Id, Content)| {
            let (agent, begun) = (agent(), Instant::now());
            while matches!(self.send(&agent, id % servers, Asked::Insert(id, content)), Told::Unclear | Told::Refused) {
                assert!(begun.elapsed() < Duration::from_secs(60), "id {id}, {content:?} cannot be inserted");
                thread::sleep(Duration::from_millis(20));
            }
            begun.elapsed()
        };
        thread::scope(|scope| {
            let threads: Vec<_> = groups.chain(unclear).map(|pending| scope.spawn(move || needed(pending))).collect();
            threads.into_iter().map(|thread| thread.join().expect("it is inserted")).max().unwrap_or_default()
        })
    }

    /// Judges all answers and all stored documents. No client may send a request now. Returns how often each answer was
    /// given.
    pub fn verify(&self) -> BTreeMap<String, u64> {
        let agent = agent();
        let addresses = self.servers.read().clone();
        let held: Vec<Held> = addresses.iter().map(|address| held(&agent, address)).collect();
        assert!(held.iter().all(|other| *other == held[0]), "the servers show different documents: {held:?}");
        let mut broken = judge(&self.notes.lock(), &held[0]);
        broken.extend(checks_unlike(&agent, &addresses, &held[0]));
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
        held(&agent(), &self.servers.read()[0]).len()
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
            let document = json!({"id": id_text(id), "text": content.text(), "metadata": content.metadata()});
            ("POST", DOCUMENTS.to_owned(), document)
        }
        Asked::Delete(id) => ("DELETE", format!("{DOCUMENTS}?id={}", encode(&id_text(id))), Value::Null),
        Asked::Check(content) => ("POST", format!("{CHECK}?limit=1000"), json!({"text": content.text()})),
    }
}

/// Reads all documents that a server shows by their ids.
fn held(agent: &Agent, address: &Address) -> Held {
    let ids: Vec<String> = (0..IDS).chain(LATER_IDS).map(id_text).collect();
    let answer = ask(agent, "POST", &address.url(&format!("{DOCUMENTS}/get")), &json!({"ids": ids}));
    let body = answer.expect("it answers").body;
    let documents = body["documents"].as_array().unwrap_or_else(|| panic!("{body}"));
    documents.iter().map(|document| (number_of(&document["id"]), Content::of(&document["metadata"]))).collect()
}

/// Checks each group on each server. Returns the answers that are unlike what GET shows.
fn checks_unlike(agent: &Agent, addresses: &[Address], held: &Held) -> Vec<String> {
    let mut unlike = Vec::new();
    for (group, address) in (0..GROUPS).flat_map(|group| addresses.iter().map(move |address| (group, address))) {
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
