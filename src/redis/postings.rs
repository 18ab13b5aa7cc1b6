//! The postings of a band key: how they are stored, the commands on them, and their replies.
//!
//! Most band keys have one posting, so this case costs one short command. The postings of a key are a field in the hash
//! of its group: their numbers, with commas between them. If more come than fit into a short text, the field gets a `+`,
//! and all further postings go to the sorted set of the group. From then on, no posting is added to the field.
//!
//! A posting is written first, and then the others are read. So of two documents that share a band key, at least one
//! finds the other:
//!
//! - `HSETNX` has written the field: there was no other posting.
//! - [`SHARE`] has added the posting to the field. It returns the whole field.
//! - [`SHARE`] has found or set the `+`. So no posting is added to the field after this. The posting is written to the
//!   sorted set, and the sorted set is read after that, on the same connection.
//!
//! Each of these commands writes in any case, so that a `WAIT` behind it counts. A failover may undo the `+` of a field
//! for a moment, but not if a posting in the sorted set counts: both writes were waited for.

use std::sync::LazyLock;

use redis::Value;

use super::cluster::{Call, Cluster, Packed, Request, Script};
use super::failure::Failure;
use super::keys::{Keys, Posting};
use super::protocol::Ref;

/// A field has at most so many bytes. Redis stores hashes whose values are longer (`hash-max-listpack-value` 64) with
/// pointers, and they take several times the memory.
pub(super) const FIELD_BYTES_MAX: usize = 63;
const FIELD_MAX: &[u8] = b"63";

/// Adds a posting to a field, or sets its `+` if there is no room. Returns the field.
static SHARE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua
local held = redis.call('HGET', KEYS[1], ARGV[1])
local field = held
if not held then
  field = ARGV[2]
elseif not string.find(held, '+', 1, true) and not string.find(',' .. held .. ',', ',' .. ARGV[2] .. ',', 1, true) then
  if #held + #ARGV[2] < tonumber(ARGV[3]) then field = held .. ',' .. ARGV[2] else field = '+' .. held end
end
redis.call('HSET', KEYS[1], ARGV[1], field)
return field",
    )
});
/// Removes a posting from a field. Returns whether the sorted set may have it. Works on a full node.
static LEAVE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
local held = redis.call('HGET', KEYS[1], ARGV[1])
if not held then return 0 end
local left = {}
for number in string.gmatch(held, '%d+') do
  if number ~= ARGV[2] then left[#left + 1] = number end
end
local more = string.sub(held, 1, 1) == '+'
local field = (more and '+' or '') .. table.concat(left, ',')
if field == '' then redis.call('HDEL', KEYS[1], ARGV[1])
elseif field ~= held then redis.call('HSET', KEYS[1], ARGV[1], field) end
return more and 1 or 0",
    )
});
/// Writes a posting to a sorted set that may have it, so that replicas get a write in any case.
static POST_AGAIN: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua
redis.call('ZREM', KEYS[1], ARGV[2])
return redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])",
    )
});

/// The postings in a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    pub refs: Vec<Ref>,
    /// Whether the sorted set has, or had, further postings.
    pub has_more: bool,
}

impl Field {
    /// Reads the reply to [`read`] and to [`share`].
    pub(super) fn of(value: Value) -> Result<Self, Failure> {
        let bytes = match value {
            Value::Nil => return Ok(Self::default()),
            Value::BulkString(bytes) => bytes,
            _ => return Err(strange()),
        };
        let (has_more, numbers) = bytes.strip_prefix(b"+").map_or((false, &bytes[..]), |numbers| (true, numbers));
        let numbers = numbers.split(|byte| *byte == b',').filter(|number| !number.is_empty());
        let refs = numbers.map(number).collect::<Option<_>>().ok_or_else(strange)?;
        Ok(Self { refs, has_more })
    }
}

/// Returns the request for a call on the field.
pub(super) fn request(posting: &Posting, call: Call, waits: bool) -> Request {
    Request { slot: posting.slot, calls: vec![call], waits }
}

/// Reads the field.
pub(super) fn read(Posting { key, score, .. }: &Posting) -> Call {
    Call::plain(Packed::new("HGET", 2, key.len()).arg(key).signed(*score))
}

/// Writes a posting, if there is no other one.
pub(super) fn post_alone(Posting { key, score, .. }: &Posting, at: Ref) -> Call {
    Call::plain(Packed::new("HSETNX", 3, key.len()).arg(key).signed(*score).number(at.0))
}

/// Writes a posting beside others, and returns the field.
pub(super) fn share(Posting { key, score, .. }: &Posting, at: Ref) -> Call {
    let (score, at) = (score.to_string(), at.0.to_string());
    Call::script_on(&SHARE, key, &[score.as_bytes(), at.as_bytes(), FIELD_MAX])
}

/// Removes a posting from the field. The reply is 1 if it may be in the sorted set.
pub(super) fn leave(Posting { key, score, .. }: &Posting, at: Ref) -> Call {
    leave_field(key, score.to_string().as_bytes(), at)
}

/// Does the same for a field that was read.
pub(super) fn leave_field(group: &[u8], field: &[u8], at: Ref) -> Call {
    Call::script_on(&LEAVE, group, &[field, at.0.to_string().as_bytes()])
}

/// The sorted set of a group, for the postings that are in no field.
pub(super) struct More {
    key: Vec<u8>,
    score: i32,
}

impl More {
    pub(super) fn of(Posting { key, score, .. }: &Posting) -> Self {
        Self { key: Keys::more(key), score: *score }
    }

    /// Returns the request for these calls.
    pub(super) fn request(&self, calls: Vec<Call>, waits: bool) -> Request {
        Request { slot: Cluster::slot_of(&self.key), calls, waits }
    }

    /// Writes a posting. `again`: it may exist.
    pub(super) fn post(&self, at: Ref, again: bool) -> Call {
        if again {
            let (score, at) = (self.score.to_string(), at.0.to_string());
            return Call::script_on(&POST_AGAIN, &self.key, &[score.as_bytes(), at.as_bytes()]);
        }
        Call::plain(Packed::new("ZADD", 3, self.key.len()).arg(&self.key).signed(self.score).number(at.0))
    }

    pub(super) fn remove(&self, at: Ref) -> Call {
        Call::plain(Packed::new("ZREM", 2, self.key.len()).arg(&self.key).number(at.0))
    }

    /// Reads the oldest or the newest postings.
    pub(super) fn read(&self, newest: bool, limit: usize) -> Call {
        let range = Packed::new("ZRANGE", 7 + usize::from(newest), self.key.len()).arg(&self.key);
        let range = range.signed(self.score).signed(self.score).arg(b"BYSCORE");
        let range = if newest { range.arg(b"REV") } else { range };
        Call::plain(range.arg(b"LIMIT").number(0).number(limit as u64))
    }

    /// Counts the postings.
    pub(super) fn count(&self) -> Call {
        let count = Packed::new("ZCOUNT", 3, self.key.len()).arg(&self.key);
        Call::plain(count.signed(self.score).signed(self.score))
    }
}

/// Reads the reply to [`More::read`].
pub(super) fn refs(value: Value) -> Result<Vec<Ref>, Failure> {
    let Value::Array(values) = value else { return Err(strange()) };
    let numbers = values.into_iter().map(|value| match value {
        Value::BulkString(bytes) => number(&bytes).ok_or_else(strange),
        _ => Err(strange()),
    });
    numbers.collect()
}

/// Reads a document number.
pub(super) fn number(bytes: &[u8]) -> Option<Ref> {
    std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).map(Ref)
}

fn strange() -> Failure {
    Failure::Strange("postings that are not those of hapax".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_numbers_and_perhaps_a_plus() {
        let field = |text: &str| Field::of(Value::BulkString(text.as_bytes().to_vec())).ok();
        let of = |refs: &[u64], has_more| Some(Field { refs: refs.iter().copied().map(Ref).collect(), has_more });
        assert_eq!(Field::of(Value::Nil).ok(), of(&[], false));
        assert_eq!(field("7"), of(&[7], false));
        assert_eq!(field("7,8"), of(&[7, 8], false));
        assert_eq!(field("+7,8"), of(&[7, 8], true));
        assert_eq!(field("+"), of(&[], true));
        for strange in ["x", "7;8", "-1"] {
            assert_eq!(field(strange), None, "{strange}");
        }
    }
}
