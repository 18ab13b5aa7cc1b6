//! When the server behind a proxy is killed: before or after a chosen command.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, Signal, kill_process};

use super::commands::CommandKind;

/// The side of a command on which a server dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// The node gets what the server has sent before the command on the same connection, and not the command.
    Before,
    /// The node executes the command. The server does not get the answer, and the node gets nothing that the server has
    /// sent behind the command on the same connection.
    After,
}

/// A command at which a server dies.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// `None`: a command of any kind.
    pub kind: Option<CommandKind>,
    pub moment: Moment,
    /// How many commands of the kind come first.
    pub skipped: u32,
    /// Whether what the server has sent at the same time on other connections is lost.
    pub cuts: bool,
}

/// What happens at a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Live,
    /// The node does not get it.
    DieBefore,
    /// The server dies when the node has answered.
    DieAfter,
}

/// The processes of one server, one after another.
#[derive(Default)]
pub struct Deaths {
    state: Mutex<State>,
    died: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of processes that have died.
    life: u64,
    process: Option<Pid>,
    plan: Option<Plan>,
    /// The plan that is being carried out.
    chosen: Option<Plan>,
    last: Option<(CommandKind, Moment)>,
}

impl Deaths {
    /// Lets a process die by this plan, unless another plan is being carried out.
    pub fn arm(&self, process: u32, plan: Plan) {
        let mut state = self.state.lock();
        state.process = i32::try_from(process).ok().and_then(Pid::from_raw);
        (state.plan, state.chosen, state.last) = (Some(plan), None, None);
    }

    /// Lets the process live.
    pub fn disarm(&self) {
        self.state.lock().process = None;
    }

    /// Waits until the process has died by its plan. Returns the command and the side of it.
    pub fn wait(&self, patience: Duration) -> Option<(CommandKind, Moment)> {
        let until = Instant::now() + patience;
        let mut state = self.state.lock();
        while state.last.is_none() && !self.died.wait_until(&mut state, until).timed_out() {}
        state.last
    }

    /// Returns the number of the process that opens a connection now.
    pub fn life(&self) -> u64 {
        self.state.lock().life
    }

    /// Returns whether a process is dead.
    pub fn is_over(&self, life: u64) -> bool {
        self.life() != life
    }

    /// Decides what happens at a command of a process.
    pub fn fate(&self, life: u64, kind: CommandKind) -> Fate {
        let mut state = self.state.lock();
        if life != state.life {
            return if state.chosen.is_some_and(|plan| plan.cuts) { Fate::DieBefore } else { Fate::Live };
        }
        let Some(plan) = state.plan.as_mut().filter(|plan| plan.kind.is_none_or(|wanted| wanted == kind)) else {
            return Fate::Live;
        };
        if plan.skipped > 0 {
            plan.skipped -= 1;
            return Fate::Live;
        }
        let moment = plan.moment;
        state.chosen = state.plan.take();
        match moment {
            Moment::Before => {
                self.kill(&mut state, kind, moment);
                Fate::DieBefore
            }
            Moment::After => Fate::DieAfter,
        }
    }

    /// Kills the process after the answer to a command.
    pub fn die(&self, kind: CommandKind) {
        self.kill(&mut self.state.lock(), kind, Moment::After);
    }

    fn kill(&self, state: &mut State, kind: CommandKind, moment: Moment) {
        if let Some(process) = state.process.take() {
            kill_process(process, Signal::KILL).expect("the process has not been waited for");
            state.life += 1;
            state.last = Some((kind, moment));
            self.died.notify_all();
        }
    }
}
