//! The slots of a cluster: which slot a key has, and which node has a slot.
//!
//! A node that is cut off from the others has an old view. Each view says how new it is: the cluster counts *epochs*,
//! and a node that takes over slots gets a new epoch, which is higher than all before. So for each slot the view with
//! the highest epoch is right, in whichever order the views arrive.

use std::collections::{BTreeSet, HashMap, HashSet};

use redis::Value;

use super::address::NodeAddress;

pub(super) const SLOTS: u16 = 16384;

/// Returns the slot of a key. If the key has a hash tag (`{tag}`, not empty), only the tag counts.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// CRC-16/XMODEM, as the specification of Redis Cluster demands.
fn crc16(bytes: &[u8]) -> u16 {
    const TABLE: [u16; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut crc = (byte as u16) << 8;
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
                bit += 1;
            }
            table[byte] = crc;
            byte += 1;
        }
        table
    };
    bytes.iter().fold(0, |crc, byte| crc << 8 ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

/// The node that has a slot.
#[derive(Clone, Debug)]
struct Owner {
    node: NodeAddress,
    epoch: u64,
}

/// The owners of all slots, as far as they are known.
#[derive(Debug)]
pub(super) struct SlotMap {
    owners: Vec<Option<Owner>>,
    /// All primaries and replicas.
    nodes: Vec<NodeAddress>,
}

impl SlotMap {
    pub(super) fn empty() -> Self {
        Self { owners: vec![None; SLOTS.into()], nodes: Vec::new() }
    }

    pub(super) fn owner(&self, slot: u16) -> Option<&NodeAddress> {
        self.owners[usize::from(slot)].as_ref().map(|owner| &owner.node)
    }

    pub(super) fn primaries(&self) -> Vec<NodeAddress> {
        let nodes: BTreeSet<_> = self.owners.iter().flatten().map(|owner| &owner.node).collect();
        nodes.into_iter().cloned().collect()
    }

    pub(super) fn nodes(&self) -> &[NodeAddress] {
        &self.nodes
    }

    /// Takes the new owner that a node has named. The epoch is not known, so the next view with at least the old epoch
    /// replaces it.
    pub(super) fn moved(&mut self, slot: u16, node: NodeAddress) {
        let owner = &mut self.owners[usize::from(slot)];
        let epoch = owner.as_ref().map_or(0, |owner| owner.epoch);
        *owner = Some(Owner { node, epoch });
    }

    /// Takes all that is newer in these views. An owner that none of them knows has left the cluster, or was in another
    /// cluster that had these addresses before: its epoch means nothing.
    pub(super) fn merge(&mut self, views: &[View]) {
        let known: HashSet<_> = views.iter().flat_map(|view| &view.nodes).collect();
        for Range { first, last, owner } in views.iter().flat_map(|view| &view.ranges) {
            for current in &mut self.owners[usize::from(*first)..=usize::from(*last)] {
                if current.as_ref().is_none_or(|old| owner.epoch >= old.epoch || !known.contains(&old.node)) {
                    *current = Some(owner.clone());
                }
            }
        }
        let owners = self.owners.iter().flatten().map(|owner| &owner.node);
        let nodes: BTreeSet<_> = known.into_iter().chain(owners).collect();
        self.nodes = nodes.into_iter().cloned().collect();
    }
}

/// The cluster, as one node sees it.
#[derive(Debug)]
pub(super) struct View {
    ranges: Vec<Range>,
    nodes: HashSet<NodeAddress>,
}

/// Slots that one node has. `last` is the last of them.
#[derive(Debug)]
struct Range {
    first: u16,
    last: u16,
    owner: Owner,
}

impl View {
    /// Reads the answers of the node `asked` to `CLUSTER SLOTS` and `CLUSTER NODES`. The first has the addresses that
    /// clients must use; the second has the epochs. Returns `None` if the node knows of no slots.
    pub(super) fn read(slots: &Value, nodes: &Value, asked: &NodeAddress) -> Option<Self> {
        let epochs = epochs(text(nodes)?);
        let mut view = Self { ranges: Vec::new(), nodes: HashSet::new() };
        for range in array(slots)? {
            let [first, last, primary, replicas @ ..] = array(range)? else { return None };
            view.nodes.extend(replicas.iter().filter_map(|replica| Some(place(replica, asked)?.0)));
            let Some((node, id)) = place(primary, asked) else { continue };
            view.nodes.insert(node.clone());
            let epoch = epochs.get(id).copied().unwrap_or(0);
            let (first, last) = (slot(first)?, slot(last)?);
            if first <= last {
                view.ranges.push(Range { first, last, owner: Owner { node, epoch } });
            }
        }
        (!view.ranges.is_empty()).then_some(view)
    }
}

/// Reads the epochs of all nodes by their ids. A line is `id address flags primary ping pong epoch ...`.
fn epochs(lines: &str) -> HashMap<&str, u64> {
    let epoch = |line: &'_ str| line.split(' ').nth(6)?.parse().ok();
    lines.lines().filter_map(|line| Some((line.split(' ').next()?, epoch(line)?))).collect()
}

/// Reads the address and the id of a node: `[endpoint, port, id, [name, value, ...]]`.
fn place<'a>(node: &'a Value, asked: &NodeAddress) -> Option<(NodeAddress, &'a str)> {
    let [endpoint, Value::Int(port), id, more @ ..] = array(node)? else { return None };
    let port = u16::try_from(*port).ok().filter(|port| *port != 0)?;
    let host = match endpoint {
        // The node does not know its own address, or is set to `cluster-preferred-endpoint-type unknown-endpoint`.
        Value::Nil => asked.host(),
        endpoint => match text(endpoint)? {
            "" => asked.host(),
            // The node prefers names, but this one has none.
            "?" => named(more.first()?, "ip")?,
            host => host,
        },
    };
    Some((NodeAddress::new(host, port), text(id)?))
}

fn named<'a>(pairs: &'a Value, name: &str) -> Option<&'a str> {
    array(pairs)?.chunks_exact(2).find(|pair| text(&pair[0]) == Some(name)).and_then(|pair| text(&pair[1]))
}

fn array(value: &Value) -> Option<&[Value]> {
    if let Value::Array(values) = value { Some(values) } else { None }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text),
        _ => None,
    }
}

fn slot(value: &Value) -> Option<u16> {
    let Value::Int(slot) = value else { return None };
    u16::try_from(*slot).ok().filter(|slot| *slot < SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn node(host: &str, port: i64, id: &str) -> Value {
        Value::Array(vec![bulk(host), Value::Int(port), bulk(id), Value::Array(vec![])])
    }

    fn asked() -> NodeAddress {
        NodeAddress::new("asked", 1)
    }

    /// A view in which each of these nodes has a range of slots: first, last, host, epoch.
    fn view(ranges: &[(i64, i64, &str, u64)]) -> View {
        let slots = ranges.iter().map(|(first, last, host, _)| {
            Value::Array(vec![Value::Int(*first), Value::Int(*last), node(host, 7000, &format!("id-{host}"))])
        });
        let lines =
            ranges.iter().map(|(_, _, host, epoch)| format!("id-{host} x:1@2 master - 0 0 {epoch} connected 1\n"));
        View::read(&Value::Array(slots.collect()), &bulk(&lines.collect::<String>()), &asked()).unwrap()
    }

    fn host(map: &SlotMap, slot: u16) -> &str {
        map.owner(slot).unwrap().host()
    }

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        for (key, slot) in [("foo", 12182), ("bar", 5061), ("hello", 866), ("", 0), ("foo{}{bar}", 8363)] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
        for (key, same) in [
            ("{user1000}.following", "user1000"),
            ("{user1000}.followers", "user1000"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
        ] {
            assert_eq!(slot_of(key.as_bytes()), crc16(same.as_bytes()) % SLOTS, "{key}");
        }
        // No tag: it is empty, or not closed.
        for key in ["foo{}{bar}", "{}", "foo{bar", "foo}bar{"] {
            assert_eq!(slot_of(key.as_bytes()), crc16(key.as_bytes()) % SLOTS, "{key}");
        }
    }

    #[test]
    fn places_are_read_in_all_the_forms_of_redis() {
        let ip = Value::Array(vec![bulk("hostname"), bulk(""), bulk("ip"), bulk("10.0.0.4")]);
        let unnamed = Value::Array(vec![bulk("?"), Value::Int(7004), bulk("d"), ip]);
        let unknown = Value::Array(vec![Value::Nil, Value::Int(7003), bulk("c")]);
        for (node, expected) in [
            (node("10.0.0.1", 7001, "a"), "10.0.0.1:7001"),
            (node("", 7002, "b"), "asked:7002"),
            (unknown, "asked:7003"),
            (unnamed, "10.0.0.4:7004"),
        ] {
            assert_eq!(place(&node, &asked()).unwrap().0.to_string(), expected);
        }
        assert_eq!(place(&node("10.0.0.1", 0, "a"), &asked()), None);
    }

    #[test]
    fn a_view_has_all_nodes_and_a_view_without_slots_is_none() {
        let range = vec![Value::Int(0), Value::Int(9), node("a", 1, "a"), node("b", 2, "b"), node("c", 3, "c")];
        let slots = Value::Array(vec![Value::Array(range)]);
        let view = View::read(&slots, &bulk("a a:1@2 myself,master - 0 0 7 connected 0-9\n"), &asked()).unwrap();
        let mut map = SlotMap::empty();
        map.merge(&[view]);
        assert_eq!(map.nodes().iter().map(ToString::to_string).collect::<Vec<_>>(), ["a:1", "b:2", "c:3"]);
        assert_eq!(map.primaries(), [NodeAddress::new("a", 1)]);
        assert_eq!((host(&map, 9), map.owner(10)), ("a", None));
        assert!(View::read(&Value::Array(vec![]), &bulk(""), &asked()).is_none());
        assert!(View::read(&Value::Nil, &bulk(""), &asked()).is_none());
    }

    #[test]
    fn an_old_view_does_not_replace_a_newer_one() {
        let old = || view(&[(0, 99, "a", 1), (100, 199, "b", 2)]);
        let new = || view(&[(0, 99, "c", 3), (100, 199, "b", 2), (200, 201, "a", 1)]);
        for views in [vec![old(), new()], vec![new(), old()]] {
            let mut map = SlotMap::empty();
            for view in views {
                map.merge(&[view, self::view(&[(300, 300, "a", 1), (301, 301, "c", 3)])]);
            }
            assert_eq!((host(&map, 50), host(&map, 150)), ("c", "b"));
        }
    }

    #[test]
    fn a_redirect_counts_until_a_view_that_is_as_new() {
        let mut map = SlotMap::empty();
        map.merge(&[view(&[(0, 9, "a", 5), (10, 19, "b", 2)])]);
        map.moved(3, NodeAddress::new("b", 7000));
        assert_eq!((host(&map, 2), host(&map, 3)), ("a", "b"));
        map.merge(&[view(&[(0, 9, "a", 4), (10, 19, "b", 2)])]);
        assert_eq!(host(&map, 3), "b");
        map.merge(&[view(&[(0, 9, "a", 5), (10, 19, "b", 2)])]);
        assert_eq!(host(&map, 3), "a");
    }

    #[test]
    fn the_epochs_of_a_cluster_that_is_gone_mean_nothing() {
        let mut map = SlotMap::empty();
        map.merge(&[view(&[(0, 16383, "a", 100)])]);
        map.merge(&[view(&[(0, 16383, "b", 1)])]);
        assert_eq!(host(&map, 3), "b");
        assert_eq!(map.nodes(), [NodeAddress::new("b", 7000)]);
    }
}
