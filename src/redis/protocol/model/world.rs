//! The cluster of the model: keys on shards. A shard may fail over once: then its keys have the values that its replica
//! had, and the primary that was replaced still answers whoever asks it.

use std::collections::BTreeMap;

use super::super::faults::{Fault, has};
use super::super::terms::{Body, Command, Found, Head, Ref, Reply, State};

/// A document of the model: its number, and the numbers of the documents that it is alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Doc {
    pub number: u8,
    pub alike: u8,
}

impl Body for Doc {
    fn is_alike(&self, other: &Self) -> bool {
        self.number == other.number || self.alike & 1 << other.number != 0
    }

    fn tail(&self, _: &[(Ref, &Self)], _: &[(Ref, &Self)]) -> Vec<u8> {
        Vec::new()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    Record(Ref),
    Id(u8),
    Band(u8),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Value {
    Record(Option<Found<Doc>>),
    Id(Option<Ref>),
    Band(Vec<Ref>),
}

impl Value {
    fn absent(key: Key) -> Self {
        match key {
            Key::Record(_) => Self::Record(None),
            Key::Id(_) => Self::Id(None),
            Key::Band(_) => Self::Band(Vec::new()),
        }
    }
}

type Values = BTreeMap<Key, Value>;

/// Which keys a shard has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Layout {
    /// Each key is on a shard of its own.
    Apart,
    /// All keys are on one shard.
    Together,
}

/// Which shard may fail over. As there is at most one failover, a search for each shard covers all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Failover {
    None,
    /// The shard of this key.
    Of(Key),
}

/// A shard that has not failed over remembers which values its replica may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Shard {
    /// The values that writes have replaced since the replica last had everything, the oldest first.
    replaced: Vec<(Key, Value)>,
    /// The values of the primary that was replaced.
    old: Option<Values>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    layout: Layout,
    values: Values,
    shards: BTreeMap<u16, Shard>,
    failover: Failover,
}

/// The primary that a command was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// The first primary of the shard.
    First,
    /// The replica that was promoted.
    Promoted,
}

impl World {
    pub(super) fn new(layout: Layout, failover: Failover) -> Self {
        Self { layout, values: Values::new(), shards: BTreeMap::new(), failover }
    }

    fn shard_of(&self, key: Key) -> u16 {
        match (self.layout, key) {
            (Layout::Together, _) => 0,
            (Layout::Apart, Key::Record(at)) => at.0 as u16,
            (Layout::Apart, Key::Id(id)) => 1000 + u16::from(id),
            (Layout::Apart, Key::Band(band)) => 2000 + u16::from(band),
        }
    }

    /// Returns the nodes that answer for a key.
    pub(super) fn nodes(&self, key: Key) -> &'static [Node] {
        let failed = self.shards.get(&self.shard_of(key)).is_some_and(|shard| shard.old.is_some());
        if failed { &[Node::Promoted, Node::First] } else { &[Node::First] }
    }

    /// Returns the worlds after each possible failover, with the number of writes that it keeps.
    pub(super) fn after_failover(&self) -> Vec<(usize, Self)> {
        let Failover::Of(key) = self.failover else { return Vec::new() };
        let number = self.shard_of(key);
        let replaced = self.shards.get(&number).map_or(&[][..], |shard| &shard.replaced);
        let after = |kept: usize| {
            let mut world = self.clone();
            world.failover = Failover::None;
            let mut old = world.values.clone();
            old.retain(|&key, _| self.shard_of(key) == number);
            for (key, value) in replaced[kept..].iter().rev() {
                world.values.insert(*key, value.clone());
            }
            world.shards = BTreeMap::from([(number, Shard { replaced: Vec::new(), old: Some(old) })]);
            (kept, world)
        };
        (0..=replaced.len()).map(after).collect()
    }

    fn value(&self, key: Key, node: Node) -> Value {
        let shard = self.shards.get(&self.shard_of(key));
        let values = match (node, shard.and_then(|shard| shard.old.as_ref())) {
            (Node::First, Some(old)) => old,
            _ => &self.values,
        };
        values.get(&key).cloned().unwrap_or_else(|| Value::absent(key))
    }

    fn put(&mut self, key: Key, node: Node, value: Value) {
        let before = self.value(key, node);
        let may_fail = self.may_fail(self.shard_of(key));
        let shard = self.shards.entry(self.shard_of(key)).or_default();
        match (node, &mut shard.old) {
            (Node::First, Some(old)) => drop(old.insert(key, value)),
            _ => {
                if may_fail {
                    shard.replaced.push((key, before));
                }
                self.values.insert(key, value);
            }
        }
    }

    fn may_fail(&self, shard: u16) -> bool {
        match self.failover {
            Failover::None => false,
            Failover::Of(key) => self.shard_of(key) == shard,
        }
    }

    /// Returns whether the shard of a key may fail over later.
    pub(super) fn may_fail_over(&self, key: Key) -> bool {
        self.may_fail(self.shard_of(key))
    }

    /// Waits until the replica of a node has everything. Returns false if the node has been replaced.
    pub(super) fn wait(&mut self, key: Key, node: Node) -> bool {
        let shard = self.shards.entry(self.shard_of(key)).or_default();
        if has(Fault::NoWait) {
            return true;
        }
        let is_current = shard.old.is_none() || node == Node::Promoted;
        if is_current {
            shard.replaced.clear();
        }
        is_current
    }

    /// Runs a command, without the second command of a `Post`. Returns whether it has changed anything.
    pub(super) fn run(&mut self, command: &Command<Doc>, key: Key, node: Node) -> (Option<Reply<Doc>>, bool) {
        match (command, self.value(key, node)) {
            (Command::Create { head, body, .. }, Value::Record(record)) => {
                if record.is_none() {
                    self.put(key, node, Value::Record(Some(Found { head: *head, body: Some(*body) })));
                }
                (Some(Reply::Created(record.is_none())), record.is_none())
            }
            (Command::Swap { from, to, .. }, Value::Record(record)) => self.swap((key, node), record, *from, *to),
            (Command::Keep { from, to, .. }, Value::Record(record)) => self.swap((key, node), record, Some(*from), *to),
            (Command::Read { .. }, Value::Record(record)) => (Some(Reply::Record(record)), false),
            (Command::Remove { head, .. }, Value::Record(record)) => {
                let is_it = record.is_some_and(|found| found.head == *head);
                if is_it {
                    self.put(key, node, Value::Record(None));
                }
                (Some(Reply::Removed), is_it)
            }
            (Command::Claim { from, to }, Value::Id(holder)) => {
                if holder != *from {
                    return (Some(Reply::Claimed(Err(holder))), false);
                }
                self.put(key, node, Value::Id(*to));
                (Some(Reply::Claimed(Ok(()))), true)
            }
            (Command::Holder, Value::Id(holder)) => (Some(Reply::Holder(holder)), false),
            (Command::Probe { .. }, Value::Band(found)) => (Some(Reply::Postings(found)), false),
            (Command::Post { at, again, .. }, Value::Band(mut found)) => {
                let is_new = !found.contains(at);
                if is_new {
                    found.push(*at);
                    found.sort_unstable();
                }
                let changed = is_new || *again;
                if changed {
                    self.put(key, node, Value::Band(found));
                }
                (None, changed)
            }
            (Command::Unpost { at, .. }, Value::Band(mut found)) => {
                found.retain(|other| other != at);
                self.put(key, node, Value::Band(found));
                (Some(Reply::Removed), true)
            }
            (command, value) => unreachable!("{command:?} on {value:?}"),
        }
    }

    fn swap(
        &mut self,
        (key, node): (Key, Node),
        record: Option<Found<Doc>>,
        from: Option<Head>,
        to: Head,
    ) -> (Option<Reply<Doc>>, bool) {
        let head = record.as_ref().map(|found| found.head);
        if head != from {
            return (Some(Reply::Swapped(Err(head))), false);
        }
        let body = record.and_then(|found| found.body);
        self.put(key, node, Value::Record(Some(Found { head: to, body })));
        (Some(Reply::Swapped(Ok(()))), true)
    }

    /// Returns whether a band has, or had, a posting of a document.
    pub(super) fn has_posting(&self, at: Ref) -> bool {
        let bands = self
            .values
            .values()
            .chain(self.shards.values().flat_map(|shard| shard.old.iter().flatten()).map(|(_, value)| value));
        bands.into_iter().any(|value| matches!(value, Value::Band(found) if found.contains(&at)))
    }

    pub(super) fn postings(&self, key: Key, node: Node) -> Vec<Ref> {
        match self.value(key, node) {
            Value::Band(found) => found,
            other => unreachable!("{other:?}"),
        }
    }

    /// Returns the record of a document on the present primary.
    pub(super) fn record(&self, at: Ref) -> Option<Found<Doc>> {
        self.record_at(at, *self.nodes(Key::Record(at)).first().expect("a node"))
    }

    fn record_at(&self, at: Ref, node: Node) -> Option<Found<Doc>> {
        match self.value(Key::Record(at), node) {
            Value::Record(record) => record,
            other => unreachable!("{other:?}"),
        }
    }

    /// Returns whether a node would answer with another head than this one.
    pub(super) fn differs(&self, at: Ref, head: Head) -> bool {
        let nodes = self.nodes(Key::Record(at));
        nodes.iter().any(|&node| self.record_at(at, node).map(|found| found.head) != Some(head))
    }

    /// Returns the documents that are stored according to the present primaries.
    pub(super) fn stored(&self) -> Vec<(Ref, Doc)> {
        let stored = |(key, value): (&Key, &Value)| match (key, value) {
            (Key::Record(at), Value::Record(Some(Found { head, body: Some(body) }))) if head.state.is_stored() => {
                Some((*at, *body))
            }
            _ => None,
        };
        self.values.iter().filter_map(stored).collect()
    }

    /// Returns whether the present primary says that a document is stored, or that it was deleted. The record of a
    /// deleted document may have been removed, and then written again without a body.
    pub(super) fn was_stored(&self, at: Ref, may_be_deleted: bool) -> bool {
        match self.record(at) {
            Some(Found { head, body }) => {
                head.state.is_stored() || may_be_deleted && (head.state == State::Deleted || body.is_none())
            }
            None => may_be_deleted,
        }
    }
}
