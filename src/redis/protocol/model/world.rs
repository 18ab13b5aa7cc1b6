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
    pub id: u8,
    /// Whether the document was changed after it was stored.
    pub changed: bool,
    /// The document that it has replaced.
    pub replaces: Option<Ref>,
}

impl Body for Doc {
    fn is_alike(&self, other: &Self) -> bool {
        self.number == other.number || self.alike & 1 << other.number != 0
    }

    type Id = u8;

    fn id(&self) -> &u8 {
        &self.id
    }

    fn repeats(&self, held: &Self) -> bool {
        self.number == held.number
    }

    fn replaces(&self) -> Option<Ref> {
        self.replaces
    }

    fn tail(&self, _: &[(Ref, &Self)], _: &[(Ref, &Self)], replaced: Option<(Ref, &Self)>) -> Vec<u8> {
        replaced.iter().map(|(at, _)| at.0 as u8).collect()
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
    Band(Postings),
}

/// A set of documents, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Postings(u32);

impl Postings {
    fn of(at: Ref) -> Self {
        Self(1 << at.0)
    }

    fn with(self, at: Ref) -> Self {
        Self(self.0 | Self::of(at).0)
    }

    fn without(self, at: Ref) -> Self {
        Self(self.0 & !Self::of(at).0)
    }

    fn has(self, at: Ref) -> bool {
        self.0 & Self::of(at).0 != 0
    }

    fn refs(self) -> Vec<Ref> {
        (0..u64::from(u32::BITS)).map(Ref).filter(|&at| self.has(at)).collect()
    }
}

impl Value {
    fn absent(key: Key) -> Self {
        match key {
            Key::Record(_) => Self::Record(None),
            Key::Id(_) => Self::Id(None),
            Key::Band(_) => Self::Band(Postings::default()),
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

/// Writes a value. A map never contains an absent value, so maps with equal contents are equal.
fn write(values: &mut Values, key: Key, value: Value) {
    if value == Value::absent(key) {
        values.remove(&key);
    } else {
        values.insert(key, value);
    }
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
                write(&mut world.values, *key, value.clone());
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
        if let (Node::First, Some(old)) = (node, self.old_mut(key)) {
            write(old, key, value);
            return;
        }
        // A second way to the same values adds nothing.
        let is_alone = self.layout == Layout::Apart;
        if may_fail && value != before {
            let Shard { replaced, .. } = self.shards.entry(self.shard_of(key)).or_default();
            let before = (key, before);
            if !is_alone || !replaced.contains(&before) {
                replaced.push(before);
            }
        }
        write(&mut self.values, key, value);
    }

    fn old_mut(&mut self, key: Key) -> Option<&mut Values> {
        let number = self.shard_of(key);
        self.shards.get_mut(&number)?.old.as_mut()
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

    /// Waits until the replica of a node has everything. Returns false if the node has been replaced, and the world
    /// after it if it differs.
    pub(super) fn wait(&self, key: Key, node: Node) -> (bool, Option<Self>) {
        let number = self.shard_of(key);
        match self.shards.get(&number) {
            Some(Shard { old: None, .. }) if !has(Fault::NoWait) => {
                let mut after = self.clone();
                after.shards.remove(&number);
                (true, Some(after))
            }
            Some(Shard { old: Some(_), .. }) if !has(Fault::NoWait) => (node == Node::Promoted, None),
            _ => (true, None),
        }
    }

    /// Runs a command, without the second command of a `Post`. Returns the world after it, if the command has written.
    pub(super) fn run(&self, command: &Command<Doc>, key: Key, node: Node) -> (Option<Reply<Doc>>, Option<Self>) {
        let wrote = |value| {
            let mut after = self.clone();
            after.put(key, node, value);
            Some(after)
        };
        match (command, self.value(key, node)) {
            (Command::Create { head, body, .. }, Value::Record(None)) => {
                let after = wrote(Value::Record(Some(Found { head: *head, body: Some(*body), expired: false })));
                (Some(Reply::Created(true)), after)
            }
            // The command may have been executed before.
            (Command::Create { head, .. }, Value::Record(Some(found))) => {
                (Some(Reply::Created(found.head == *head)), None)
            }
            (Command::Swap { from, to, .. }, Value::Record(record)) => swap(record, *from, *to, wrote),
            (Command::Keep { from, to, tail, .. }, Value::Record(record)) => {
                let replaces = tail.first().map(|&at| Ref(at.into()));
                let kept = |found: Found<Doc>| Found { body: found.body.map(|body| Doc { replaces, ..body }), ..found };
                swap(record.map(kept), Some(*from), *to, wrote)
            }
            (Command::Rewrite { from, to, body, .. }, Value::Record(record)) => {
                let record = record.map(|found| Found { body: Some(*body), ..found });
                swap(record, Some(*from), *to, wrote)
            }
            (Command::Read { .. }, Value::Record(record)) => (Some(Reply::Record(record)), None),
            (Command::Remove { head, .. }, Value::Record(record)) => {
                let is_it = record.is_some_and(|found| found.head == *head);
                (Some(Reply::Removed), if is_it { wrote(Value::Record(None)) } else { None })
            }
            (Command::Strip { head, .. }, Value::Record(record)) => {
                let is_it = record.is_some_and(|found| found.head == *head && found.body.is_some());
                let bare = Value::Record(Some(Found { head: *head, body: None, expired: false }));
                (Some(Reply::Removed), if is_it { wrote(bare) } else { None })
            }
            (Command::Claim { from, to }, Value::Id(holder)) => {
                if holder != *from {
                    return (Some(Reply::Claimed(Err(holder))), None);
                }
                (Some(Reply::Claimed(Ok(()))), wrote(Value::Id(*to)))
            }
            (Command::Holder, Value::Id(holder)) => (Some(Reply::Holder(holder)), None),
            (Command::Probe { .. }, Value::Band(found)) => (Some(Reply::Postings(found.refs())), None),
            (Command::Post { at, again, .. }, Value::Band(found)) => {
                (None, if !found.has(*at) || *again { wrote(Value::Band(found.with(*at))) } else { None })
            }
            (Command::Unpost { at, .. }, Value::Band(found)) => {
                (Some(Reply::Removed), if found.has(*at) { wrote(Value::Band(found.without(*at))) } else { None })
            }
            (command, value) => unreachable!("{command:?} on {value:?}"),
        }
    }

    /// Returns the keys that have, or had, the number of a document in their values.
    pub(super) fn keys_that_name(&self, at: Ref) -> impl Iterator<Item = Key> {
        let olds = self.shards.values().flat_map(|shard| shard.old.iter().flatten());
        let replaced = self.shards.values().flat_map(|shard| shard.replaced.iter().map(|(key, value)| (key, value)));
        let all = self.values.iter().chain(olds).chain(replaced);
        all.filter_map(move |(&key, value)| match value {
            Value::Band(found) => found.has(at).then_some(key),
            Value::Id(holder) => (*holder == Some(at)).then_some(key),
            Value::Record(found) => {
                let successor = found.as_ref().and_then(|found| found.head.successor());
                (successor == Some(at)).then_some(key)
            }
        })
    }

    /// Forgets a replaced primary that no actor asks any more.
    pub(super) fn forget_old(&mut self) {
        self.shards.retain(|_, shard| shard.old.is_none());
    }

    /// Returns whether a primary that was replaced still answers.
    pub(super) fn has_old(&self) -> bool {
        self.shards.values().any(|shard| shard.old.is_some())
    }

    /// Forgets the values of keys that no actor uses any more.
    pub(super) fn forget(&mut self, is_used: impl Fn(Key) -> bool) {
        let is_kept = |key: &Key| matches!(key, Key::Record(_)) || is_used(*key);
        self.values.retain(|key, _| is_kept(key));
        for shard in self.shards.values_mut() {
            shard.replaced.retain(|(key, _)| is_kept(key));
            if let Some(old) = &mut shard.old {
                old.retain(|key, _| is_kept(key));
            }
        }
    }

    pub(super) fn postings(&self, key: Key, node: Node) -> Vec<Ref> {
        match self.value(key, node) {
            Value::Band(found) => found.refs(),
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

    /// Returns whether a node would answer that another document holds an id.
    pub(super) fn has_other_holder(&self, id: u8, at: Ref) -> bool {
        let key = Key::Id(id);
        self.nodes(key).iter().any(|&node| self.value(key, node) != Value::Id(Some(at)))
    }

    /// Returns the heads of all records on the present primaries.
    pub(super) fn heads(&self) -> impl Iterator<Item = Head> {
        self.values.values().filter_map(|value| match value {
            Value::Record(found) => found.as_ref().map(|found| found.head),
            _ => None,
        })
    }

    /// Returns the documents that are stored according to the present primaries.
    pub(super) fn stored(&self) -> Vec<(Ref, Doc)> {
        let stored = |(key, value): (&Key, &Value)| match (key, value) {
            (Key::Record(at), Value::Record(Some(Found { head, body: Some(body), .. }))) if self.is_stored(*head) => {
                Some((*at, *body))
            }
            _ => None,
        };
        self.values.iter().filter_map(stored).collect()
    }

    /// Returns whether a document with this head is stored. If it names a successor, that must not be, nor have been.
    pub(super) fn is_stored(&self, head: Head) -> bool {
        let never_was =
            |by: Ref| self.record(by).is_none_or(|found| matches!(found.head.state, State::Pending | State::Aborted));
        head.state.is_stored() || head.successor().is_some_and(never_was)
    }

    /// Returns whether the present primary says that a document is stored, or that it was deleted. The record of a
    /// deleted document may have been removed, and then written again: without a body, or by its first command, which is
    /// executed once more. Then it is pending without a posting, until another server aborts it.
    pub(super) fn was_stored(&self, at: Ref, may_be_deleted: bool, may_be_copied: bool) -> bool {
        match self.record(at) {
            Some(Found { head, body, .. }) => {
                let is_begun_again = may_be_copied && matches!(head.state, State::Pending | State::Aborted);
                head.state.is_stored()
                    || head.state == State::Superseded
                    || may_be_deleted && (head.state == State::Deleted || body.is_none() || is_begun_again)
            }
            None => may_be_deleted,
        }
    }
}

/// Replaces the head of a record, if it is `from`.
fn swap(
    record: Option<Found<Doc>>,
    from: Option<Head>,
    to: Head,
    wrote: impl FnOnce(Value) -> Option<World>,
) -> (Option<Reply<Doc>>, Option<World>) {
    let head = record.as_ref().map(|found| found.head);
    if head != from {
        return (Some(Reply::Swapped(Err(head))), None);
    }
    let body = record.and_then(|found| found.body);
    (Some(Reply::Swapped(Ok(()))), wrote(Value::Record(Some(Found { head: to, body, expired: false }))))
}
