//! Follows a keys file: checks each second whether its content has changed, and then replaces the keys of a ring.
//! Only the content is compared, not the time of the file: Kubernetes swaps symlinks, and a copy may keep an old time.
//! A missing or invalid file changes nothing: the last good keys stay valid, and revoked keys stay revoked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use super::file::{self, KeysError};
use super::key::{Key, KeyDigest};
use super::life::is_soon;
use super::ring::{KeyRing, WeakRing};
use crate::telemetry::names;

/// The time between two checks.
const LOOK: Duration = Duration::from_secs(1);
/// A new content must stay the same for this long before it is used. Some programs do not replace a file at once, but
/// write it piece by piece, and a piece may look like a whole file with fewer keys.
const SETTLE: Duration = Duration::from_millis(250);

/// A keys file that could be read at the start.
#[derive(Clone, Debug)]
pub struct KeysFile {
    path: PathBuf,
    content: Vec<u8>,
    keys: Vec<Key>,
    read_at: Timestamp,
}

impl KeysFile {
    pub fn read(path: &Path) -> Result<Self, KeysError> {
        let content = file::read(path)?;
        let keys = file::parse(&content)?;
        Ok(Self { path: path.to_owned(), content, keys, read_at: Timestamp::now() })
    }

    /// Returns the keys in the file, including expired ones.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    pub fn read_at(&self) -> Timestamp {
        self.read_at
    }
}

/// Returns the ring of a server with these keys, and follows the file on a separate thread until the ring is dropped.
/// Without a key and without a file, the server is open to everyone.
pub fn ring(configured: Option<KeyDigest>, file: Option<KeysFile>) -> std::io::Result<KeyRing> {
    metrics::gauge!(names::KEYS_FILE_BAD).set(0.0);
    metrics::gauge!(names::KEYS_NEXT_EXPIRY).set(f64::NAN);
    let Some(KeysFile { path, content, keys, .. }) = file else {
        let ring = match configured {
            Some(_) => KeyRing::new(configured, Vec::new()),
            None => KeyRing::open(),
        };
        metrics::gauge!(names::KEYS_VALID).set(ring.expire(Timestamp::now()) as f64);
        return Ok(ring);
    };
    let ring = KeyRing::of_file(configured, keys, &path);
    let valid = ring.expire(Timestamp::now());
    metrics::gauge!(names::KEYS_VALID).set(valid as f64);
    if valid == 0 {
        warn_of_no_key(&path);
    }
    let mut watch = Watch { path, seen: Seen::Good(content), unsettled: 0, warned: None };
    let followed = ring.downgrade();
    // It is a separate thread, because revoking must work even if all other threads are busy.
    std::thread::Builder::new().name("hapax-keys".into()).spawn(move || watch.follow(&followed))?;
    Ok(ring)
}

fn warn_of_no_key(path: &Path) {
    let path = path.display();
    tracing::warn!(%path, "no key is valid, so every request is refused; add one with `hapax keys add`");
}

/// After so many checks that found a file that was being changed, the file is used if it is valid.
const UNSETTLED_MAX: u32 = 2;

/// The findings of the last check.
#[derive(PartialEq, Eq)]
enum Seen {
    /// The file can be used. The value is the content from which the keys in use were read.
    Good(Vec<u8>),
    /// The reason why the file cannot be used.
    Bad(String),
}

struct Watch {
    path: PathBuf,
    seen: Seen,
    /// How many checks in a row found a file that was being changed.
    unsettled: u32,
    /// The name whose last key expires soon, and when that key expires, if the log has already warned of it.
    warned: Option<(String, Timestamp)>,
}

impl Watch {
    fn follow(&mut self, ring: &WeakRing) {
        loop {
            std::thread::sleep(LOOK);
            let Some(ring) = ring.get() else { return };
            self.look(&ring);
            let now = Timestamp::now();
            metrics::gauge!(names::KEYS_VALID).set(ring.expire(now) as f64);
            self.tell_end(ring.next_to_end(now), now);
        }
    }

    /// Reports when clients will be without a key: as a metric, and in the log when that is soon.
    fn tell_end(&mut self, next: Option<(String, Timestamp)>, now: Timestamp) {
        let end = next.as_ref().map_or(f64::NAN, |(_, end)| end.as_second() as f64);
        metrics::gauge!(names::KEYS_NEXT_EXPIRY).set(end);
        let soon = next.filter(|(_, end)| is_soon(*end, now));
        if soon == self.warned {
            return;
        }
        if let Some((key, expires)) = &soon {
            tracing::warn!(%key, %expires, "the last key of this name expires soon; add another with `hapax keys add`");
        }
        self.warned = soon;
    }

    /// Checks the file once.
    fn look(&mut self, ring: &KeyRing) {
        let content = file::read(&self.path);
        let changed = !matches!((&self.seen, &content), (Seen::Good(seen), Ok(content)) if seen == content);
        if changed {
            self.changed(ring, content);
        }
        let bad = matches!(self.seen, Seen::Bad(_));
        metrics::gauge!(names::KEYS_FILE_BAD).set(f64::from(u8::from(bad)));
        metrics::counter!(names::KEYS_FILE_ERRORS).increment(bad.into());
    }

    fn changed(&mut self, ring: &KeyRing, first: Result<Vec<u8>, KeysError>) {
        std::thread::sleep(SETTLE);
        let again = file::read(&self.path);
        let settled = match (&first, &again) {
            (Ok(first), Ok(again)) => first == again,
            (Err(_), Err(_)) => true,
            _ => false,
        };
        // The file is being written. The next check comes in a second. If it changes all the time, because many keys are
        // added and revoked, what can be read is used: a revocation must not wait for a quiet moment.
        self.unsettled = if settled { 0 } else { self.unsettled + 1 };
        let is_good = || again.as_ref().is_ok_and(|content| file::parse(content).is_ok());
        if !settled && (self.unsettled < UNSETTLED_MAX || !is_good()) {
            return;
        }
        match again.and_then(|content| Ok((file::parse(&content)?, content))) {
            Ok((keys, content)) => {
                let (path, count) = (self.path.display(), keys.len());
                let ended = ring.replace(keys);
                match (ring.expire(Timestamp::now()), ended) {
                    (0, _) => warn_of_no_key(&self.path),
                    (_, 0) => tracing::info!(%path, keys = count, "read the keys file again"),
                    // This message differs from the one above, because the log leaves out a line that repeats a recent
                    // line.
                    (_, _) => tracing::info!(%path, keys = count, revoked = ended, "keys were revoked"),
                }
                self.seen = Seen::Good(content);
            }
            Err(error) => {
                let bad = Seen::Bad(error.to_string());
                if self.seen != bad {
                    let path = self.path.display();
                    tracing::error!(%path, %error, "the keys file cannot be used; the last good keys stay valid, and changes take effect when it is correct again");
                    self.seen = bad;
                }
            }
        }
    }
}
