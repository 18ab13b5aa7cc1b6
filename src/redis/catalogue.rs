//! The list of all collections in the cluster, which all servers share. It is one hash, so each change of it is one
//! command on one key. A field is the name of a collection, and its value has the settings as JSON.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use hapax_core::{Banding, Spec};
use redis::Value;
use serde::{Deserialize, Serialize};

use super::call::{call, call_script, write};
use super::cluster::{Cluster, Script};
use super::scripts::CLAIM;
use crate::types::{CollectionName, Extract, Keep, TimestampMs, Verify};
use crate::verdicts::{CollectionError, Result, Settings};

/// Writes a field again that has the expected value, so that a `WAIT` behind it counts. Works on a full node.
static CONFIRM: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1",
    )
});
/// Renames the field of a dropped collection, if it has the expected value. The second time, it changes nothing, but
/// writes, so that a `WAIT` behind it counts.
static DROP: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
local found = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if found == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1])
elseif redis.call('HGET', KEYS[1], ARGV[3]) ~= ARGV[2] then return found end
redis.call('HSET', KEYS[1], ARGV[3], ARGV[2])
return 1",
    )
});
/// Publishes a copy, if there is no collection with its name, and the note of the copy is still there. The second time,
/// it changes nothing, but writes, so that a `WAIT` behind it counts. Without the note, the copy may have been published and
/// changed since.
static PUBLISH: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua
local found = redis.call('HGET', KEYS[1], ARGV[1])
if found ~= ARGV[2] then
  if not redis.call('HGET', KEYS[1], ARGV[3]) then return 'gone' end
  if found then return 'exists' end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HDEL', KEYS[1], ARGV[3])
return 1",
    )
});
/// Notes that a copy has ended without a collection, so that its data is removed. If the note of the copy is gone, it may
/// have been published.
static ABANDON: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
local gone = redis.call('HDEL', KEYS[1], ARGV[1]) == 0
if gone and not redis.call('HGET', KEYS[1], ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
return 1",
    )
});
/// The beginning of the field of a dropped collection; its number follows. No name has a colon.
const DROPPED: &str = "dropped:";
/// The beginning of the field of a collection that `hapax copy` is filling; its number follows.
const COPYING: &str = "copying:";

/// The list of all collections in the cluster.
#[derive(Clone)]
pub(super) struct Catalogue {
    cluster: Cluster,
    key: Vec<u8>,
    /// The counter of collections.
    numbers: Vec<u8>,
}

/// What became of a copy that was to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Published {
    Done,
    /// There is a collection with its name.
    Exists,
    /// A server has noted that the copy is dead.
    Gone,
}

/// The note of a copy, from which its data can be removed.
#[derive(Serialize)]
struct CopyNote<'a> {
    #[serde(flatten)]
    listed: &'a Listed,
    /// How often the copy has renewed its note.
    renewed: u64,
}

/// A collection in the list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Listed {
    /// The number in the keys of its documents.
    pub number: u64,
    created: i64,
    spec: String,
    pub bands: u32,
    rows: u32,
    banding_by_hand: bool,
    threshold: f64,
    ttl_ms: Option<u64>,
    extract: String,
    /// In format 3, collections kept only signatures.
    #[serde(default = "signature")]
    keep: String,
    #[serde(default = "estimate")]
    verify: String,
    /// Decides the number of groups, and so the keys. All servers use the value with which it was created.
    pub documents_expected: u64,
}

impl Listed {
    pub(super) fn new(number: u64, created: TimestampMs, settings: &Settings, documents_expected: u64) -> Self {
        Self {
            number,
            created: created.0,
            spec: settings.spec.to_string(),
            bands: settings.banding.bands(),
            rows: settings.banding.rows(),
            banding_by_hand: settings.banding_by_hand,
            threshold: settings.threshold,
            ttl_ms: millis(settings.ttl),
            extract: settings.extract.as_str().to_owned(),
            keep: settings.keep.as_str().to_owned(),
            verify: settings.verify.as_str().to_owned(),
            documents_expected,
        }
    }

    /// Reads an entry of the collection `name`.
    pub(super) fn read(name: &CollectionName, text: &str) -> Result<(Self, Settings)> {
        let unusable = |detail: String| CollectionError::Store(format!("collection `{name}` in the cluster: {detail}"));
        let listed: Self = serde_json::from_str(text).map_err(|error| unusable(error.to_string()))?;
        let spec = Spec::parse(&listed.spec).map_err(|error| unusable(error.to_string()))?;
        let banding =
            Banding::new(listed.bands, listed.rows, spec.shape()).map_err(|error| unusable(error.to_string()))?;
        let extract = Extract::parse(&listed.extract).ok_or_else(|| unusable("another extractor".into()))?;
        let settings = Settings {
            extract,
            keep: Keep::parse(&listed.keep).ok_or_else(|| unusable("another `keep`".into()))?,
            verify: Verify::parse(&listed.verify).ok_or_else(|| unusable("another `verify`".into()))?,
            banding_by_hand: listed.banding_by_hand,
            ttl: listed.ttl_ms.map(Duration::from_millis),
            ..Settings::new(spec, banding, listed.threshold)
        };
        Ok((listed, settings))
    }

    /// Returns the entry with the settings that can be changed.
    pub(super) fn with(&self, settings: &Settings) -> Self {
        let Settings { threshold, banding_by_hand, ttl, verify, .. } = *settings;
        Self { threshold, banding_by_hand, ttl_ms: millis(ttl), verify: verify.as_str().to_owned(), ..self.clone() }
    }

    pub(super) fn created(&self) -> TimestampMs {
        TimestampMs(self.created)
    }

    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts are JSON")
    }

    /// Returns the note of a copy that has renewed it so many times.
    pub(super) fn to_copy_note(&self, renewed: u64) -> String {
        serde_json::to_string(&CopyNote { listed: self, renewed }).expect("numbers and texts are JSON")
    }
}

fn signature() -> String {
    Keep::Signature.as_str().to_owned()
}

fn estimate() -> String {
    Verify::Estimate.as_str().to_owned()
}

fn millis(ttl: Option<Duration>) -> Option<u64> {
    ttl.map(|ttl| ttl.as_millis() as u64)
}

impl Catalogue {
    pub(super) fn new(cluster: Cluster, prefix: &str) -> Self {
        let [key, numbers] = ["collections", "numbers"].map(|name| format!("{prefix}:{name}").into_bytes());
        Self { cluster, key, numbers }
    }

    /// Returns a number that no collection has.
    pub(super) async fn number(&self) -> Result<u64> {
        match write(&self.cluster, &self.numbers, redis::cmd("INCR").arg(&self.numbers).to_owned()).await? {
            Value::Int(number) => Ok(number as u64),
            _ => Err(CollectionError::Store("the counter of collections in the cluster is not a number".into())),
        }
    }

    /// Returns all fields.
    pub(super) async fn all(&self) -> Result<HashMap<String, String>> {
        let found = call(&self.cluster, &self.key, redis::cmd("HGETALL").arg(&self.key).to_owned()).await?;
        redis::from_redis_value(found)
            .map_err(|_| CollectionError::Store("the list of collections in the cluster is not a hash".into()))
    }

    /// Returns the entry of a collection.
    pub(super) async fn find(&self, name: &CollectionName) -> Result<Option<String>> {
        let get = redis::cmd("HGET").arg(&self.key).arg(name.as_str()).to_owned();
        let found = call(&self.cluster, &self.key, get).await?;
        Ok(redis::from_redis_value(found).unwrap_or(None))
    }

    /// Adds a collection, unless there is one with this name.
    pub(super) async fn add(&self, name: &CollectionName, text: &str) -> Result<bool> {
        let set = redis::cmd("HSETNX").arg(&self.key).arg(name.as_str()).arg(text).to_owned();
        Ok(matches!(write(&self.cluster, &self.key, set).await?, Value::Int(1)))
    }

    /// Returns whether a field still has this value, and enough replicas have it.
    pub(super) async fn confirm(&self, field: &str, text: &str) -> Result<bool> {
        Ok(matches!(self.run(&CONFIRM, &[field, text]).await?, Value::Int(1)))
    }

    /// Replaces an entry. False: it has changed meanwhile.
    pub(super) async fn replace(&self, name: &CollectionName, from: &str, to: &str) -> Result<bool> {
        self.change(name.as_str(), from, to).await
    }

    async fn change(&self, field: &str, from: &str, to: &str) -> Result<bool> {
        match self.run(&CLAIM, &[field, from, to]).await? {
            Value::Int(_) => Ok(true),
            // The command was sent twice, and the first one has done it. A `WAIT` counts only behind a write.
            Value::BulkString(found) if found == to.as_bytes() => self.confirm(field, to).await,
            _ => Ok(false),
        }
    }

    /// Removes a collection, and notes that it was dropped. False: its entry has changed meanwhile.
    pub(super) async fn drop_entry(&self, name: &CollectionName, number: u64, text: &str) -> Result<bool> {
        self.note_drop(name.as_str(), number, text).await
    }

    async fn note_drop(&self, field: &str, number: u64, text: &str) -> Result<bool> {
        let note = format!("{DROPPED}{number}");
        Ok(matches!(self.run(&DROP, &[field, text, &note]).await?, Value::Int(_)))
    }

    /// Writes the note of a copy, or renews it: `from` is its value. False: the note is gone, because a server has
    /// counted the copy as dead.
    pub(super) async fn note_copy(&self, number: u64, from: &str, to: &str) -> Result<bool> {
        self.change(&format!("{COPYING}{number}"), from, to).await
    }

    /// Turns the note of a copy into that of a dropped collection. False: the copy has renewed it meanwhile.
    pub(super) async fn drop_copy(&self, field: &str, text: &str) -> Result<bool> {
        let number = field.strip_prefix(COPYING).and_then(|number| number.parse().ok());
        match number {
            Some(number) => self.note_drop(field, number, text).await,
            None => Ok(false),
        }
    }

    /// Adds a collection that was filled by a copy, and removes the note of the copy, in one step.
    pub(super) async fn publish(&self, name: &CollectionName, number: u64, text: &str) -> Result<Published> {
        let note = format!("{COPYING}{number}");
        match self.run(&PUBLISH, &[name.as_str(), text, &note]).await? {
            Value::Int(_) => Ok(Published::Done),
            Value::BulkString(why) if why == b"exists" => Ok(Published::Exists),
            _ => Ok(Published::Gone),
        }
    }

    /// Notes that a copy has ended without a collection.
    pub(super) async fn abandon_copy(&self, number: u64, text: &str) -> Result<()> {
        let [copying, dropped] = [COPYING, DROPPED].map(|begin| format!("{begin}{number}"));
        self.run(&ABANDON, &[&copying, &dropped, text]).await.map(drop)
    }

    /// Returns the notes of dropped collections whose data is not removed yet, and the notes of copies, by their fields.
    pub(super) async fn notes(&self) -> Result<(HashMap<String, String>, HashMap<String, String>)> {
        let all = self.all().await?.into_iter().filter(|(field, _)| field.contains(':'));
        Ok(all.partition(|(field, _)| field.starts_with(DROPPED)))
    }

    /// Removes the note that a collection was dropped.
    pub(super) async fn forget(&self, field: &str) -> Result<()> {
        let remove = redis::cmd("HDEL").arg(&self.key).arg(field).to_owned();
        write(&self.cluster, &self.key, remove).await.map(drop)
    }

    async fn run(&self, script: &'static Script, args: &[&str]) -> Result<Value> {
        call_script(&self.cluster, &self.key, script, args).await
    }
}
