//! Counts the round trips of an operation, and its commands. A round trip is a step in which a server sends to one or
//! several nodes and waits for answers. The proxy holds all answers until the server has sent nothing for a while: what
//! it sends after them is the next round.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::commands::CommandKind;

/// A server that has sent nothing for so long waits for answers. On a busy machine it may need longer, and then one
/// round counts as two; or a client may read its answer only when what follows in the background has been sent.
const QUIET: Duration = Duration::from_millis(20);
/// The time without commands after which nothing happens in the background.
const IDLE: Duration = Duration::from_millis(100);

/// The commands of one round, and the nodes to which they were sent.
pub type Round = Vec<(String, CommandKind)>;

/// The rounds of one server.
#[derive(Default)]
pub struct Rounds {
    state: Mutex<State>,
    ended: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    counts: bool,
    rounds: Vec<Round>,
    current: Round,
    unanswered: usize,
    last: Option<Instant>,
}

/// What an operation has sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The rounds before its answer.
    pub rounds: Vec<Round>,
    /// What followed in the background.
    pub later: Round,
}

impl Rounds {
    /// Holds answers from here on, and ends rounds. Never returns.
    pub async fn count(self: Arc<Self>) {
        self.state.lock().counts = true;
        loop {
            tokio::time::sleep(Duration::from_millis(2)).await;
            let mut state = self.state.lock();
            if state.unanswered == 0 && !state.current.is_empty() && state.is_quiet(QUIET) {
                let round = std::mem::take(&mut state.current);
                state.rounds.push(round);
                self.ended.send_replace(state.rounds.len());
            }
        }
    }

    pub fn sent(&self, node: &str, kind: CommandKind) {
        let mut state = self.state.lock();
        state.unanswered += 1;
        state.last = Some(Instant::now());
        if state.counts {
            state.current.push((node.to_owned(), kind));
        }
    }

    /// Takes an answer. Returns the number of rounds after which it may be delivered.
    pub fn answered(&self) -> usize {
        let mut state = self.state.lock();
        state.unanswered -= 1;
        if state.counts { state.rounds.len() + 1 } else { 0 }
    }

    /// Takes the end of a connection that has left commands without answers.
    pub fn lost(&self, commands: usize) {
        self.state.lock().unanswered -= commands;
    }

    /// Waits until this number of rounds have ended.
    pub async fn ended(&self, rounds: usize) {
        _ = self.ended.subscribe().wait_for(|ended| *ended >= rounds).await;
    }

    /// Returns what an operation sends. Nothing else may use the server.
    pub fn during(&self, operation: impl FnOnce()) -> Sent {
        let before = self.idle();
        operation();
        let answered = self.state.lock().rounds.len();
        self.idle();
        let is_own = |(_, kind): &(String, CommandKind)| *kind != CommandKind::Refresh;
        let own = |round: &Round| round.iter().filter(|sent| is_own(sent)).cloned().collect::<Round>();
        let rounds = &self.state.lock().rounds;
        let later = rounds[answered..].iter().flat_map(own).collect();
        Sent { rounds: rounds[before..answered].iter().map(own).filter(|round| !round.is_empty()).collect(), later }
    }

    /// Waits until nothing happens. Returns the number of rounds until now.
    fn idle(&self) -> usize {
        loop {
            std::thread::sleep(Duration::from_millis(2));
            let state = self.state.lock();
            if state.current.is_empty() && state.is_quiet(IDLE) {
                return state.rounds.len();
            }
        }
    }
}

impl State {
    fn is_quiet(&self, time: Duration) -> bool {
        self.last.is_none_or(|last| last.elapsed() >= time)
    }
}

impl Sent {
    /// Counts the commands of each kind, without those in the background.
    pub fn commands(&self) -> BTreeMap<CommandKind, usize> {
        counted(self.rounds.iter().flatten())
    }

    pub fn later(&self) -> BTreeMap<CommandKind, usize> {
        counted(&self.later)
    }
}

fn counted<'a>(round: impl IntoIterator<Item = &'a (String, CommandKind)>) -> BTreeMap<CommandKind, usize> {
    let mut counts = BTreeMap::new();
    round.into_iter().for_each(|(_, kind)| *counts.entry(*kind).or_default() += 1);
    counts
}
