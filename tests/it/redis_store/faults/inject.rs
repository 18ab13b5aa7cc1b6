//! The faults of nodes. Each of them is over when its function returns, except that the nodes may need a moment until they
//! are well.

use std::thread;
use std::time::Duration;

use rand::RngExt as _;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process_group};

use super::nodes::{Index, Shard};
use super::slots::{migrate, some_slots};
use super::world::{NODE_TIMEOUT, World};
use crate::support::until::until;

/// Slots that are moved and moved back.
const SLOTS: u16 = 4000;
/// Less than a node needs at its start.
const FULL: &str = "1mb";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// SIGKILL of a primary, whose replica takes over before it starts again.
    KillPrimary,
    KillReplica,
    /// SIGKILL of a primary, which starts again within the node timeout.
    RestartPrimary,
    /// SIGSTOP of a primary, whose replica takes over before SIGCONT.
    PausePrimary,
    PauseReplica,
    /// SIGSTOP of a primary, and SIGCONT within the node timeout.
    PauseShortly,
    /// `CLUSTER FAILOVER`.
    Failover,
    /// A primary is cut off from its replica for longer than the node timeout. Nothing takes over.
    CutFromReplica,
    /// A primary is cut off from all other nodes for longer than the node timeout, and its replica takes over. hapax still
    /// talks to both.
    CutFromAll,
    /// 4,000 slots move to another primary, and then back. No node may fail meanwhile.
    MoveSlots,
    /// `SCRIPT FLUSH` on all nodes.
    FlushScripts,
    /// A primary has no memory left (`maxmemory`), and then it has.
    FillNode,
}

impl Fault {
    pub const ALL: [Self; 12] = [
        Self::KillPrimary,
        Self::KillReplica,
        Self::RestartPrimary,
        Self::PausePrimary,
        Self::PauseReplica,
        Self::PauseShortly,
        Self::Failover,
        Self::CutFromReplica,
        Self::CutFromAll,
        Self::MoveSlots,
        Self::FlushScripts,
        Self::FillNode,
    ];

    /// Returns whether a primary may answer with old data after its replica has taken over.
    pub fn leaves_a_stale_primary(self) -> bool {
        matches!(self, Self::PausePrimary | Self::PauseShortly | Self::CutFromReplica | Self::CutFromAll)
    }
}

impl World {
    /// Lets a fault happen to a shard of a cluster that is well. Returns its name, and whether the replica has taken over.
    pub fn happen(&self, fault: Fault, random: &mut ChaCha8Rng) -> String {
        let before = self.until_well();
        self.inject(fault, random);
        let took_over = self.until_well() != before;
        format!("{fault:?}{}", if took_over { " with failover" } else { "" })
    }

    fn inject(&self, fault: Fault, random: &mut ChaCha8Rng) {
        let shards = self.until_well();
        let Shard { primary, replica } = *shards.choose(random).expect("a cluster has shards");
        let later = Duration::from_millis(random.random_range(200..2000));
        match fault {
            Fault::KillPrimary => self.kill(primary, || self.until_takes_over(replica, later)),
            Fault::KillReplica => self.kill(replica, || thread::sleep(NODE_TIMEOUT + later)),
            Fault::RestartPrimary => self.kill(primary, || {}),
            Fault::PausePrimary => self.pause(primary, || self.until_takes_over(replica, later)),
            Fault::PauseReplica => self.pause(replica, || thread::sleep(NODE_TIMEOUT + later)),
            Fault::PauseShortly => self.pause(primary, || thread::sleep(later / 2)),
            Fault::Failover => {
                self.nodes.tell(replica, "CLUSTER FAILOVER");
                self.until_takes_over(replica, later);
            }
            Fault::CutFromReplica => {
                self.links.cut(primary, [replica], random.random());
                thread::sleep(NODE_TIMEOUT + later);
                self.links.heal();
            }
            Fault::CutFromAll => {
                self.links.cut(primary, self.others(primary), random.random());
                self.until_takes_over(replica, later);
                self.links.heal();
            }
            Fault::MoveSlots => {
                let targets: Vec<Index> =
                    shards.iter().map(|shard| shard.primary).filter(|&other| other != primary).collect();
                self.move_slots(primary, *targets.choose(random).expect("a cluster has several primaries"));
            }
            Fault::FlushScripts => self.nodes.all().for_each(|node| _ = self.nodes.tell(node, "SCRIPT FLUSH")),
            Fault::FillNode => {
                self.nodes.tell(primary, &format!("CONFIG SET maxmemory {FULL}"));
                thread::sleep(Duration::from_millis(random.random_range(500..2500)));
                self.nodes.tell(primary, "CONFIG SET maxmemory 0");
            }
        }
    }

    /// Waits until a replica has become a primary, and so long after that.
    fn until_takes_over(&self, replica: Index, later: Duration) {
        until("a replica takes over", || self.nodes.tell(replica, "ROLE").starts_with("master"));
        thread::sleep(later);
    }

    /// Kills a node, and starts it again after `meanwhile`.
    fn kill(&self, node: Index, meanwhile: impl FnOnce()) {
        self.signal(node, Signal::KILL, "ZX");
        meanwhile();
        self.cluster.start(node);
    }

    /// Pauses a node, and lets it continue after `meanwhile`.
    fn pause(&self, node: Index, meanwhile: impl FnOnce()) {
        let process = self.signal(node, Signal::STOP, "T");
        meanwhile();
        kill_process_group(process, Signal::CONT).expect("a paused node is there");
    }

    /// Sends a signal to a node, without the script of the cluster: on a busy machine that takes longer than the node
    /// timeout. A node leads the processes that it starts. Waits until it has one of these states, or none.
    fn signal(&self, node: Index, signal: Signal, states: &str) -> Pid {
        let info = self.nodes.tell(node, "INFO server");
        let number = info.lines().find_map(|line| line.trim().strip_prefix("process_id:")).expect("a pid");
        let process = number.parse().ok().and_then(Pid::from_raw).expect("a pid");
        kill_process_group(process, signal).expect("the node is there");
        until("a signal has an effect", || {
            let found = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            let state = found.rsplit(") ").next().and_then(|rest| rest.chars().next());
            state.is_none_or(|state| states.contains(state))
        });
        process
    }

    /// Moves slots while no node is replaced, however busy the machine is.
    fn move_slots(&self, from: Index, to: Index) {
        let set_timeout = |timeout: Duration| {
            let command = format!("CONFIG SET cluster-node-timeout {}", timeout.as_millis());
            self.nodes.all().for_each(|node| _ = self.nodes.tell(node, &command));
        };
        set_timeout(NODE_TIMEOUT * 60);
        // Slots may be in several pieces after they were moved back.
        let slots = some_slots(&self.nodes, from, SLOTS).expect("4,000 slots one after another");
        for (from, to) in [(from, to), (to, from)] {
            let moved = migrate(&self.nodes, slots.clone(), from, to);
            moved.unwrap_or_else(|error| panic!("slots move from node {from} to node {to}: {error}"));
            self.until_well();
        }
        set_timeout(NODE_TIMEOUT);
    }
}
