//! The scripts on records and ids. Each works on one key, and is one step for all other clients of the node.

use std::sync::LazyLock;

use super::cluster::Script;

/// Replaces the first bytes of a record, if they are the expected ones. No bytes: there must be no record. Works on a
/// full node, because it must be possible to end what has begun.
pub(super) static SWAP: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
local head = redis.call('GETRANGE', KEYS[1], 0, 8)
if head ~= ARGV[1] then return head end
redis.call('SETRANGE', KEYS[1], 0, ARGV[2])
return 1",
    )
});
/// Does the same as [`SWAP`], and writes the last part of the record, from the byte `ARGV[3]` on. A record whose length
/// changes is written as a whole: if bytes were appended, the server would reserve twice the memory.
pub(super) static KEEP: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
local head = redis.call('GETRANGE', KEYS[1], 0, 8)
if head ~= ARGV[1] then return head end
if redis.call('STRLEN', KEYS[1]) == ARGV[3] + #ARGV[4] then
  redis.call('SETRANGE', KEYS[1], 0, ARGV[2])
  redis.call('SETRANGE', KEYS[1], ARGV[3], ARGV[4])
else
  redis.call('SET', KEYS[1], ARGV[2] .. redis.call('GETRANGE', KEYS[1], 9, ARGV[3] - 1) .. ARGV[4])
end
return 1",
    )
});
/// Replaces a record, if its first bytes are the expected ones.
pub(super) static REWRITE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua
local head = redis.call('GETRANGE', KEYS[1], 0, 8)
if head ~= ARGV[1] then return head end
redis.call('SET', KEYS[1], ARGV[2])
return 1",
    )
});
/// Removes a record, if its first bytes are the expected ones.
pub(super) static REMOVE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
if redis.call('GETRANGE', KEYS[1], 0, 8) == ARGV[1] then return redis.call('UNLINK', KEYS[1]) end
return 0",
    )
});
/// Removes everything but the first bytes of a record, if these are the expected ones.
pub(super) static STRIP: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
if redis.call('GETRANGE', KEYS[1], 0, 8) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1",
    )
});
/// Reads a record without its set of shingles. Its place and its length are in the record.
pub(super) static PEEK: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=no-writes,allow-oom
local head = redis.call('GETRANGE', KEYS[1], 0, 17)
if #head < 18 or bit.band(string.byte(head, 10), 16) == 0 then return redis.call('GET', KEYS[1]) end
local at, length = struct.unpack('>I4I4', head, 11)
return redis.call('GETRANGE', KEYS[1], 0, at - 1) .. redis.call('GETRANGE', KEYS[1], at + length, -1)",
    )
});
/// Sets a field of a hash, if it has the expected value. No bytes: the field must be absent.
pub(super) static CLAIM: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua
local holder = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if holder ~= ARGV[2] then return holder end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1",
    )
});
/// Removes a field of a hash, if it has the expected value.
pub(super) static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
local holder = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if holder ~= ARGV[2] then return holder end
redis.call('HDEL', KEYS[1], ARGV[1])
return 1",
    )
});
