//! A server that is killed before or after chosen commands, again and again.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rand::seq::SliceRandom as _;
use rand::{Rng, RngExt as _};

use super::commands::{CommandKind, OF_DOCUMENTS};
use super::deaths::{Moment, Plan};
use super::proxy::Proxy;
use super::{settings, start_with};
use crate::support::server::{Address, Server};

/// How long a server may live before it sends the chosen command. Then it dies at the next command of any kind.
const PATIENCE: Duration = Duration::from_secs(3);

/// Is told the number of a server and its address. `None`: the server is dead.
pub type Moved<'a> = dyn Fn(usize, Option<&Address>) + Sync + 'a;

/// One of several servers. It is started again whenever it is killed.
pub struct Killed<'a> {
    pub number: usize,
    pub proxy: Proxy,
    pub dir: &'a Path,
    pub moved: &'a Moved<'a>,
    /// More lines of the section `[redis]`.
    pub more: &'a str,
}

impl Killed<'_> {
    fn start(&self, plan: Option<Plan>) -> Option<Server> {
        let settings = settings(self.proxy.addresses(), self.more);
        let starting = start_with(&settings, self.dir, &format!("server{}", self.number));
        if let Some(plan) = plan {
            self.proxy.deaths().arm(starting.pid(), plan);
        }
        // A server does not start while a primary is down, or if it is killed before.
        let server = starting.ready_or_ended().ok();
        if let Some(server) = &server {
            (self.moved)(self.number, Some(server.address()));
        }
        server
    }

    /// Starts the server, and lets it die by the plan.
    pub fn die(&self, mut plan: Plan) -> (CommandKind, Moment) {
        loop {
            let server = self.start(Some(plan));
            let deaths = self.proxy.deaths();
            let died = match &server {
                None => deaths.wait(Duration::ZERO),
                Some(server) => deaths.wait(PATIENCE).or_else(|| {
                    deaths.arm(server.pid(), Plan { kind: None, moment: Moment::Before, ..plan });
                    deaths.wait(PATIENCE)
                }),
            };
            (self.moved)(self.number, None);
            deaths.disarm();
            drop(server);
            if let Some(died) = died {
                return died;
            }
            plan.skipped = 0;
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn start_for_good(&self) -> Server {
        let begun = Instant::now();
        loop {
            if let Some(server) = self.start(None) {
                return server;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "server {} does not start", self.number);
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Returns how many commands of a kind each server sends soon.
fn sent_soon(kind: Option<CommandKind>) -> u32 {
    match kind {
        None => 40,
        // A server reserves many numbers at a time.
        Some(CommandKind::Reserve) => 1,
        Some(_) => 5,
    }
}

/// Plans for so many kills. All kinds are in them equally often.
pub fn plans(random: &mut impl Rng, kills: u64) -> Vec<Plan> {
    let moments = [Moment::Before, Moment::After];
    let kinds = OF_DOCUMENTS.map(Some).into_iter().chain([None]);
    let all: Vec<_> = kinds.flat_map(|kind| moments.map(|moment| (kind, moment))).collect();
    let chosen = (0..kills).map(|number| all[number as usize % all.len()]);
    let mut plans: Vec<_> = chosen
        .map(|(kind, moment)| Plan {
            kind,
            moment,
            // The first commands of any kind are those of the start of a server.
            skipped: random.random_range(0..sent_soon(kind)),
            cuts: random.random(),
        })
        .collect();
    plans.shuffle(random);
    plans
}
