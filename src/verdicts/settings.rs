//! What a collection is made with, how it describes itself, and the bounds that all collections work within.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use hapax_core::{Banding, Fingerprint, SecretKey, Spec, tuning};

use super::comparing::matching_min;
use super::settings_asked::{BandingAsked, SettingsAsked};
use super::threshold::check_threshold;
use super::{BackupSettings, CollectionError, Result};
use crate::store::{Changeable, Meta};
use crate::types::{CollectionName, Keep, TimestampMs, Verify};

/// How long a document may be asked to stay: up to a hundred years.
const TTL: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(100 * 365 * 86_400);

/// All that the collections of one data directory need to know.
#[derive(Clone, Debug)]
pub struct CollectionsConfig {
    /// Where the files are.
    pub data_dir: PathBuf,
    /// How long to wait for another process to give up the data directory.
    pub lock_wait: Duration,
    /// Most collections, open or not.
    pub collections_max: usize,
    /// The secret of collections with keyed hashing.
    pub secret: Option<SecretKey>,
    /// How `default` is made. Its spec must agree where it exists; banding and threshold may have been changed since.
    pub default_settings: Settings,
    /// Bounds of each collection's work.
    pub limits: Limits,
    /// Memory that the documents of all collections may take in the index; `None`: as much as there is.
    pub memory_max_bytes: Option<u64>,
    /// What outlives the process.
    pub medium: Medium,
    /// Where backups go, and how they are made.
    pub backup: BackupSettings,
    /// How stored records are read again; `None`: they are not.
    pub scrub: Option<ScrubConfig>,
}

/// Whether documents outlive the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// They do: an answer waits for the disk.
    Disk,
    /// Nothing does, for trials and measurements: files in the data directory are written, but never synced, and removed
    /// at the end.
    Memory,
}

/// How fast and how often records are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubConfig {
    /// Bytes a second, over all collections; over 0.
    pub bytes_per_second: u64,
    /// From the end of a collection's pass to the beginning of its next.
    pub interval: Duration,
}

/// Bounds of one collection's work.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Postings read per band key in one probe.
    pub bucket_read_max: usize,
    /// Distinct documents verified in one lookup.
    pub candidates_max: usize,
    /// Survivors of the estimate whose shingles are compared in one lookup that verifies exactly.
    pub exact_reads_max: usize,
    /// Bytes of shingles or texts read from disk for that; one document is read whatever its length.
    pub exact_bytes_max: u64,
    /// Decisions waiting for the disk.
    pub commit_queue_max: usize,
    /// Decisions in one transaction.
    pub commit_batch_max: usize,
    /// Least time between the beginnings of two transactions.
    pub commit_window: Duration,
    /// Bytes of what is kept beside signatures, shingles in memory included, of decisions waiting for the disk.
    pub commit_payload_bytes_max: usize,
    /// How long a write may wait for a place in the queue before it is refused as overloaded.
    pub commit_queue_wait: Duration,
    /// Bits of an id's fingerprint that memory tells ids apart by: 64. Tests take fewer, so that ids often collide.
    pub id_fingerprint_bits: u32,
}

/// What a collection is made with. Its spec and what it keeps are frozen; the rest can be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub spec: Spec,
    /// What is kept beside signatures.
    pub keep: Keep,
    pub banding: Banding,
    /// Whether a client or the configuration gave the banding; else it follows the threshold.
    pub banding_by_hand: bool,
    /// Similarity from which two documents are near-duplicates.
    pub threshold: f64,
    /// How matches are confirmed.
    pub verify: Verify,
    /// How long a document stays after it was last seen; absent: for ever.
    pub ttl: Option<Duration>,
    /// Whether a document counts as seen when a duplicate of it is inserted.
    pub touch: bool,
}

/// New settings; what is absent stays, except that an automatic banding follows the threshold.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub banding: Option<BandingAsked>,
    /// Similarity from which two documents are near-duplicates.
    pub threshold: Option<f64>,
    /// How matches are confirmed.
    pub verify: Option<Verify>,
    /// How long a document stays; `Some(None)`: for ever.
    pub ttl: Option<Option<Duration>>,
    /// Whether a document counts as seen when a duplicate of it is inserted.
    pub touch: Option<bool>,
}

impl Changes {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        let Self { banding, threshold, verify, ttl, touch } = self;
        banding.is_none() && threshold.is_none() && verify.is_none() && ttl.is_none() && touch.is_none()
    }

    /// The settings with these in place of their own.
    pub(crate) fn applied_to(self, settings: Settings) -> Settings {
        let threshold = self.threshold.unwrap_or(settings.threshold);
        let asked = self.banding.or({
            // A threshold that stays keeps its banding, even if today's default is another than when it was chosen.
            let follows = !settings.banding_by_hand && threshold != settings.threshold;
            follows.then_some(BandingAsked::Automatic)
        });
        let (banding, banding_by_hand) = match asked {
            None => (settings.banding, settings.banding_by_hand),
            Some(BandingAsked::Kept) => (settings.banding, true),
            Some(BandingAsked::ByHand(banding)) => (banding, true),
            Some(BandingAsked::Automatic) => (tuning::default_banding(settings.spec.shape(), threshold), false),
        };
        Settings {
            banding,
            banding_by_hand,
            threshold,
            verify: self.verify.unwrap_or(settings.verify),
            ttl: self.ttl.unwrap_or(settings.ttl),
            touch: self.touch.unwrap_or(settings.touch),
            ..settings
        }
    }
}

impl Settings {
    /// With everything that may be left out left out, and a banding given by hand.
    pub fn new(spec: Spec, banding: Banding, threshold: f64) -> Self {
        Self {
            spec,
            keep: Keep::default(),
            banding,
            banding_by_hand: true,
            threshold,
            verify: Verify::default(),
            ttl: None,
            touch: false,
        }
    }

    /// What a new collection is made with: what was asked for, and `default` where nothing was. The default banding serves
    /// the default shape and threshold alone. Exact verification needs something to compare, so that shingles are kept
    /// if nothing else is said; an external spec has nothing to keep. What is impossible is refused by
    /// [`checked`](Self::checked).
    pub fn asked(asked: SettingsAsked, default: &Self) -> Self {
        let SettingsAsked { spec, keep, banding, threshold, verify, ttl, touch } = asked;
        let threshold = threshold.unwrap_or(default.threshold);
        let verify = verify.unwrap_or(default.verify);
        let keep = keep.unwrap_or(match default.keep {
            _ if matches!(spec, Spec::External { .. }) => Keep::Signature,
            Keep::Signature if verify == Verify::Exact => Keep::Shingles,
            keep => keep,
        });
        let automatic = tuning::default_banding(spec.shape(), threshold);
        let same = spec.shape() == default.spec.shape() && threshold == default.threshold;
        let (present, by_hand) = if same { (default.banding, default.banding_by_hand) } else { (automatic, false) };
        let (banding, banding_by_hand) = match banding {
            None => (present, by_hand),
            Some(BandingAsked::ByHand(banding)) => (banding, true),
            Some(BandingAsked::Kept) => (present, true),
            Some(BandingAsked::Automatic) => (automatic, false),
        };
        let (ttl, touch) = (ttl.unwrap_or(default.ttl), touch.unwrap_or(default.touch));
        Self { spec, keep, banding, banding_by_hand, threshold, verify, ttl, touch }
    }

    /// Whether a collection made with these settings is what `asked` asks for. Two automatic bandings are the same
    /// wish, even if a version between them changed the default. A banding by hand is the same as an equal automatic
    /// one: collections of format 2 and earlier did not note which it is.
    pub fn answers(&self, asked: &Self) -> bool {
        let both_automatic = !self.banding_by_hand && !asked.banding_by_hand;
        let banding = if both_automatic { self.banding } else { asked.banding };
        *self == Self { banding, banding_by_hand: self.banding_by_hand, ..asked.clone() }
    }

    /// Refuses what is impossible or contradicts itself.
    pub fn checked(self) -> Result<Self> {
        check_threshold(self.threshold)?;
        let refuse = |field, detail: String| Err(CollectionError::Invalid { field, detail });
        if let Err(error) = Banding::new(self.banding.bands(), self.banding.rows(), self.spec.shape()) {
            return refuse("banding", error.to_string());
        }
        if self.keep != Keep::Signature && matches!(self.spec, Spec::External { .. }) {
            return refuse("keep", "an external spec takes signatures, so there is nothing else to keep".into());
        }
        if self.verify == Verify::Exact && self.keep == Keep::Signature {
            let detail = "exact verification needs what it compares: `keep` must be shingles or text".into();
            return refuse("verify", detail);
        }
        if self.ttl.is_some_and(|ttl| !TTL.contains(&ttl)) {
            let (least, most) = (TTL.start().as_secs(), TTL.end().as_secs());
            return refuse("ttl", format!("a document stays between {least} and {most} seconds"));
        }
        Ok(self)
    }

    /// As kept in a file.
    pub(crate) fn of(meta: &Meta, spec: Spec) -> std::result::Result<Self, hapax_core::BandingError> {
        let Changeable { bands, rows, banding_by_hand, threshold, verify, ttl_ms, touch } = meta.changeable;
        let banding = Banding::new(bands, rows, spec.shape())?;
        let (keep, ttl) = (meta.keep, ttl_ms.map(Duration::from_millis));
        Ok(Self { spec, keep, banding, banding_by_hand, threshold, verify, ttl, touch })
    }

    /// The part that can change, as a file keeps it.
    pub(crate) fn changeable(&self) -> Changeable {
        Changeable {
            bands: self.banding.bands(),
            rows: self.banding.rows(),
            banding_by_hand: self.banding_by_hand,
            threshold: self.threshold,
            verify: self.verify,
            ttl_ms: self.ttl.map(|ttl| ttl.as_millis() as u64),
            touch: self.touch,
        }
    }
}

impl std::fmt::Display for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { spec, keep, banding, banding_by_hand, threshold, verify, ttl, touch } = self;
        let chosen = if *banding_by_hand { "by hand" } else { "automatic" };
        write!(f, "spec `{spec}`, banding {}x{} ({chosen}), ", banding.bands(), banding.rows())?;
        write!(f, "threshold {threshold}, ")?;
        write!(f, "keep {}, verify {}, ", keep.as_str(), verify.as_str())?;
        match ttl {
            Some(ttl) => write!(f, "ttl {} s, touch {touch}", ttl.as_secs_f64()),
            None => write!(f, "no ttl, touch {touch}"),
        }
    }
}

/// A collection at one moment.
#[derive(Clone, Debug)]
pub struct Description {
    pub name: CollectionName,
    pub settings: Settings,
    /// Fingerprint of the spec.
    pub fingerprint: Fingerprint,
    /// When it was made.
    pub created: TimestampMs,
    /// Durable documents, links included.
    pub documents: u64,
    /// Links among them; absent where the collection is not open.
    pub linked: Option<u64>,
    /// Chance that a document exactly at the threshold is proposed.
    pub candidate_recall_at_threshold: f64,
    /// Chance that a document exactly at the threshold is also judged so; about one half by the estimate's spread, and
    /// nearly that of being proposed where matches are verified exactly.
    pub verdict_recall_at_threshold: f64,
}

impl Description {
    /// From what a file or a collection in memory knows of itself.
    pub(crate) fn new(
        name: CollectionName,
        settings: Settings,
        created: TimestampMs,
        documents: u64,
        linked: Option<u64>,
    ) -> Self {
        let Settings { ref spec, banding, threshold, verify, .. } = settings;
        let shape = spec.shape();
        let least = matching_min(verify, threshold, spec);
        Self {
            fingerprint: spec.fingerprint(),
            candidate_recall_at_threshold: tuning::candidate_probability(threshold, banding, shape),
            verdict_recall_at_threshold: tuning::matching_probability(threshold, banding, shape, least),
            name,
            settings,
            created,
            documents,
            linked,
        }
    }
}
