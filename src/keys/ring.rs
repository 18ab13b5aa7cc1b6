//! The keys that are valid now. A key is found by the text that a client shows. Knows nothing of files and requests.
//! The set of keys is replaced as a whole, and requests never wait for a lock.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;

use super::key::{Key, KeyDigest};
use super::life::next_to_end;

/// The result of looking up the text that a client shows.
#[derive(Clone, Debug)]
pub enum Shown {
    /// A key that is valid now.
    Valid(Arc<Key>),
    /// A key that was valid once.
    Expired,
    /// No key, or a key that was revoked.
    Unknown,
}

/// All keys of a server. Cheap to clone.
#[derive(Clone)]
pub struct KeyRing(Arc<Inner>);

struct Inner {
    /// The key of the settings.
    configured: Option<Arc<Key>>,
    /// Whether requests without a key are answered.
    open: bool,
    /// The file from which the keys come.
    file: Option<PathBuf>,
    keys: ArcSwap<Keys>,
}

/// The keys of a file, by the beginning of each key's hash.
#[derive(Default)]
struct Keys(HashMap<u64, Vec<Arc<Key>>>);

impl Keys {
    /// The limits of the newest valid key with a name apply to all keys with this name.
    fn new(keys: Vec<Key>, now: Timestamp) -> Self {
        let (mut all, mut newest) = (Self::default(), HashMap::new());
        for key in keys.iter().filter(|key| !key.is_expired(now)) {
            let of_name = newest.entry(key.name().to_owned()).or_insert((key.created(), *key.own_limits()));
            if key.created() >= of_name.0 {
                *of_name = (key.created(), *key.own_limits());
            }
        }
        for mut key in keys {
            key.limit(newest.get(key.name()).map_or(*key.own_limits(), |(_, limits)| *limits));
            all.0.entry(key.digest().beginning()).or_default().push(Arc::new(key));
        }
        all
    }

    fn get(&self, digest: &KeyDigest) -> Option<&Arc<Key>> {
        self.0.get(&digest.beginning())?.iter().find(|key| key.digest().equals(digest))
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.0.values().flatten()
    }
}

impl KeyRing {
    /// Returns the ring of a server that requires no key.
    pub fn open() -> Self {
        Self(Arc::new(Inner { configured: None, open: true, file: None, keys: ArcSwap::default() }))
    }

    /// Returns the ring of a server that requires a key: the key from the settings, or one of `keys`.
    pub fn new(configured: Option<KeyDigest>, keys: Vec<Key>) -> Self {
        Self::made(configured, keys, None)
    }

    /// Returns the same ring for keys that come from this file.
    pub(super) fn of_file(configured: Option<KeyDigest>, keys: Vec<Key>, file: &Path) -> Self {
        Self::made(configured, keys, Some(file.to_owned()))
    }

    fn made(configured: Option<KeyDigest>, keys: Vec<Key>, file: Option<PathBuf>) -> Self {
        let configured = configured.map(|digest| Arc::new(Key::configured(digest)));
        Self(Arc::new(Inner {
            configured,
            open: false,
            file,
            keys: ArcSwap::from_pointee(Keys::new(keys, Timestamp::now())),
        }))
    }

    /// Whether requests without a key are answered. This never changes while the server runs.
    pub fn is_open(&self) -> bool {
        self.0.open
    }

    /// Returns the file from which the keys come; `None` if there is no such file.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// Finds the key with this text. The time that this takes does not reveal how much of the text is right, because
    /// only hashes are compared, and each is compared as a whole.
    pub fn find(&self, text: &[u8]) -> Shown {
        let digest = KeyDigest::of(text);
        if let Some(key) = self.0.configured.as_ref().filter(|key| key.digest().equals(&digest)) {
            return Shown::Valid(Arc::clone(key));
        }
        match self.0.keys.load().get(&digest) {
            // The clock is read only for a key that can expire, because reading it takes time and most keys never
            // expire.
            Some(key) if key.expires().is_some() && key.is_expired(Timestamp::now()) => Shown::Expired,
            Some(key) => Shown::Valid(Arc::clone(key)),
            None => Shown::Unknown,
        }
    }

    /// Replaces the keys that came from the keys file. Ends the open requests of clients whose keys were revoked or
    /// lost a right, and returns the number of these keys.
    pub(super) fn replace(&self, keys: Vec<Key>) -> usize {
        let old = self.0.keys.load_full();
        // A key that keeps its rights also keeps its token, so the open requests of its clients continue.
        let kept = |key: Key| match old.get(key.digest()) {
            Some(before) if key.covers(before) => key.continuing(before),
            _ => key,
        };
        let new = Arc::new(Keys::new(keys.into_iter().map(kept).collect(), Timestamp::now()));
        self.0.keys.store(Arc::clone(&new));
        // Keys that were revoked or lost a right are cancelled after the new keys are in use, so that a client that
        // tries again at once is refused.
        let stays = |key: &Key| new.get(key.digest()).is_some_and(|new| new.covers(key));
        let lost: Vec<_> = old.all().filter(|key| !stays(key)).collect();
        lost.iter().for_each(|key| key.revoked().cancel());
        lost.len()
    }

    /// Ends the open requests of clients whose keys have expired. Returns how many keys are valid now.
    pub(super) fn expire(&self, now: Timestamp) -> usize {
        let keys = self.0.keys.load();
        let (expired, valid): (Vec<_>, Vec<_>) = keys.all().partition(|key| key.is_expired(now));
        if expired.iter().any(|key| !key.revoked().is_cancelled()) {
            // From now on, the limits of another key with the same name may apply.
            self.0.keys.store(Arc::new(Keys::new(keys.all().map(|key| Key::clone(key)).collect(), now)));
        }
        expired.iter().for_each(|key| key.revoked().cancel());
        valid.len() + usize::from(self.0.configured.is_some())
    }

    /// Returns the name whose last valid key expires first, and when it expires. The key from the settings never
    /// expires.
    pub(super) fn next_to_end(&self, now: Timestamp) -> Option<(String, Timestamp)> {
        let keys = self.0.keys.load();
        next_to_end(keys.all().map(|key| &**key), now).map(|(name, end)| (name.to_owned(), end))
    }

    /// Returns the valid keys, in no particular order.
    pub fn valid(&self) -> Vec<Arc<Key>> {
        let now = Timestamp::now();
        let keys = self.0.keys.load();
        keys.all().filter(|key| !key.is_expired(now)).chain(&self.0.configured).map(Arc::clone).collect()
    }

    pub(super) fn downgrade(&self) -> WeakRing {
        WeakRing(Arc::downgrade(&self.0))
    }
}

/// A reference to a ring. It does not keep the ring alive.
pub(super) struct WeakRing(std::sync::Weak<Inner>);

impl WeakRing {
    pub(super) fn get(&self) -> Option<KeyRing> {
        self.0.upgrade().map(KeyRing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::file::parse;

    /// Returns keys for a test. Each entry has the text of a key, its scopes, and more lines.
    fn keys(all: &[(&str, &str, &str)]) -> Vec<Key> {
        let mut text = String::from("version = 1\n");
        for (at, (shown, scopes, more)) in all.iter().enumerate() {
            let hash = KeyDigest::of(shown.as_bytes()).to_hex();
            text += &format!("[[key]]\nname = \"n\"\nid = \"i{at}\"\nsha256 = \"{hash}\"\nscopes = {scopes}\n{more}\n");
        }
        parse(text.as_bytes()).unwrap()
    }

    fn found(ring: &KeyRing, text: &str) -> Option<Arc<Key>> {
        match ring.find(text.as_bytes()) {
            Shown::Valid(key) => Some(key),
            Shown::Expired | Shown::Unknown => None,
        }
    }

    #[test]
    fn a_key_is_found_by_its_whole_text() {
        let ring =
            KeyRing::new(Some(KeyDigest::of(b"the-one")), keys(&[("a", "[\"check\"]", ""), ("b", "[\"read\"]", "")]));
        assert_eq!(found(&ring, "a").unwrap().id(), "i0");
        assert_eq!(found(&ring, "b").unwrap().id(), "i1");
        assert_eq!(found(&ring, "the-one").unwrap().name(), "api_key");
        for other in ["", "A", "aa", "the-on", "the-onee"] {
            assert!(found(&ring, other).is_none(), "{other}");
        }
        assert!(!ring.is_open() && ring.valid().len() == 3);
        assert!(KeyRing::open().is_open() && found(&KeyRing::open(), "").is_none());
    }

    #[test]
    fn only_a_key_that_loses_something_is_cut_off() {
        let all = "[\"check\", \"read\"]";
        let ring = KeyRing::new(None, keys(&[("a", all, ""), ("b", all, ""), ("c", all, ""), ("d", all, "")]));
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|text| found(&ring, text).unwrap());
        let next = keys(&[
            ("a", all, "expires = \"2999-01-01T00:00:00Z\""),
            ("b", "[\"check\"]", ""),
            ("c", all, "collections = [\"x\"]"),
        ]);
        assert_eq!(ring.replace(next), 3);
        assert!(!a.revoked().is_cancelled() && b.revoked().is_cancelled());
        assert!(c.revoked().is_cancelled() && d.revoked().is_cancelled());
        assert!(found(&ring, "d").is_none());
        // A key with the same text but fewer rights gets a new token.
        assert!(!found(&ring, "b").unwrap().revoked().is_cancelled());
        // A key that was kept can still be revoked later.
        assert_eq!(ring.replace(Vec::new()), 3);
        assert!(a.revoked().is_cancelled() && found(&ring, "a").is_none());
    }

    #[test]
    fn the_limits_of_an_expired_key_hold_for_no_other() {
        let limits =
            |number| format!("created = \"2026-01-0{number}T00:00:00Z\"\nlimits.requests_per_second = {number}");
        let expires = format!("{}\nexpires = \"2999-01-01T00:00:00Z\"", limits(2));
        let ring = KeyRing::new(None, keys(&[("old", "[\"check\"]", &limits(1)), ("new", "[\"check\"]", &expires)]));
        let limit = |text| found(&ring, text).unwrap().limits().requests_per_second;
        assert_eq!((limit("old"), limit("new")), (Some(2), Some(2)), "the newest");
        let old = found(&ring, "old").unwrap();
        assert_eq!(ring.expire("3000-01-01T00:00:00Z".parse().unwrap()), 1);
        assert_eq!(limit("old"), Some(1));
        assert!(!old.revoked().is_cancelled(), "what its clients have open goes on");
    }

    #[test]
    fn an_expired_key_is_refused_and_stays_so() {
        let ring = KeyRing::new(
            None,
            keys(&[
                ("old", "[\"check\"]", "expires = \"2020-01-01T00:00:00Z\""),
                ("new", "[\"check\"]", "expires = \"2999-01-01T00:00:00Z\""),
            ]),
        );
        assert!(matches!(ring.find(b"old"), Shown::Expired));
        let new = found(&ring, "new").unwrap();
        assert_eq!(ring.expire(Timestamp::now()), 1);
        assert!(!new.revoked().is_cancelled());
        assert_eq!(ring.expire("3000-01-01T00:00:00Z".parse().unwrap()), 0);
        assert!(new.revoked().is_cancelled() && matches!(ring.find(b"new"), Shown::Expired), "the clock was set back");
        // A later expiry in the file gives the key a new token.
        ring.replace(keys(&[("new", "[\"check\"]", "expires = \"2999-02-01T00:00:00Z\"")]));
        assert!(found(&ring, "new").is_some_and(|key| !key.revoked().is_cancelled()));
    }
}
