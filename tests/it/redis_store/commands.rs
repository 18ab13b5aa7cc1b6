//! The kinds of commands that a server sends to the cluster.

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandKind {
    /// Reserves document numbers.
    Reserve,
    /// Writes a pending record.
    Create,
    /// Claims an id.
    Claim,
    /// Reads the postings of a band.
    Probe,
    /// Writes a posting, if it is the only one.
    Post,
    /// Writes a posting beside others, or again.
    Share,
    /// Writes, reads or removes postings in a sorted set.
    More,
    /// Reads a record.
    Read,
    /// Changes a pending record, so that its server must read again.
    Wound,
    /// Writes the state of a stored document again.
    Confirm,
    /// Changes a pending record to kept.
    Keep,
    /// Waits for the replicas.
    Wait,
    /// Changes a kept record to sealed.
    Seal,
    /// Changes a record to aborted.
    Abort,
    /// Removes a posting.
    Unpost,
    /// Removes an id.
    Release,
    /// Removes a record.
    Remove,
    /// Reads who holds an id.
    Holder,
    /// Changes a record to deleted.
    Delete,
    /// Names the successor of a document.
    Supersede,
    /// Adds to the number of documents.
    Count,
    /// Asks for the slots of the nodes.
    Slots,
    /// Reads the number of documents, which each server does once a second.
    Refresh,
    Other,
}

use CommandKind::*;

/// The commands of which inserts, deletes and checks consist.
pub const OF_DOCUMENTS: [CommandKind; 20] = [
    Reserve, Create, Claim, Probe, Post, Share, More, Read, Wound, Confirm, Keep, Wait, Seal, Abort, Unpost, Release,
    Remove, Holder, Delete, Count,
];

impl CommandKind {
    /// Tells the kind by the words of a command.
    pub fn of(words: &[&[u8]]) -> Self {
        let name = words[0].to_ascii_uppercase();
        let second = words.get(1).copied().unwrap_or_default();
        match (&name[..], part(second)) {
            (b"INCRBY", b'n') => Reserve,
            (b"GET", b'd') => Refresh,
            (b"SET", b'r') => Create,
            (b"GET", b'r') => Read,
            (b"HGET", b'i') => Holder,
            (b"HGET", b'b' | b'c') => Probe,
            (b"HSETNX", b'b' | b'c') => Post,
            (b"ZADD" | b"ZRANGE" | b"ZCOUNT" | b"ZREM", b'b' | b'c') => More,
            (b"WAIT", _) => Wait,
            (b"CLUSTER", _) if second.eq_ignore_ascii_case(b"SLOTS") => Slots,
            (b"EVALSHA", _) => words.get(3).map_or(Other, |key| of_script(part(key), &words[4..])),
            _ => Other,
        }
    }
}

/// Tells the kind of a script by the part of its key and by its arguments.
fn of_script(part: u8, args: &[&[u8]]) -> CommandKind {
    let state = |at: usize| args[at].first().copied().unwrap_or(b' ');
    match (part, args.len()) {
        (b'r', 1) => Remove,
        (b'r', 4) => Keep,
        (b'r', 2) => match (state(0), state(1)) {
            (_, b'p') => Wound,
            (b'd', b'd') | (b'a', b'a') | (b'k', b'k') | (b's', b's') => Confirm,
            (_, b'r') => Supersede,
            (_, b's') => Seal,
            (_, b'a') => Abort,
            (_, b'd') => Delete,
            _ => Other,
        },
        (b'd', 1) => Count,
        (b'i', 2) => Release,
        (b'i', 3) => Claim,
        (b'b' | b'c', 3) => Share,
        (b'b' | b'c', 2) => Unpost,
        _ => Other,
    }
}

/// Returns the first letter behind the prefix and the number of the collection, which names the part of the collection
/// (see "Keys in the cluster" in docs/redis.md).
fn part(key: &[u8]) -> u8 {
    key.splitn(3, |&byte| byte == b':').nth(2).and_then(|part| part.first().copied()).unwrap_or(b' ')
}
