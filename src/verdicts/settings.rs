//! The settings of a collection, its description, and the limits for all collections.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Banding, Fingerprint, SecretKey, Spec, tuning};

use super::comparing::Terms;
use super::prepare::gram_size;
use super::settings_asked::{BandingAsked, SettingsAsked};
use super::threshold::check_threshold;
use super::{BackupSettings, CollectionError, Result};
use crate::store::{Changeable, Meta};
use crate::telemetry::memory::Bound;
use crate::tls::ClientSettings;
use crate::types::{CollectionName, Extract, IndexKind, Keep, LabelLimits, Password, TimestampMs, Verify};

/// The allowed range of a `ttl`: up to a hundred years.
const TTL: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(100 * 365 * 86_400);

/// All settings that are needed for the collections of one data directory.
#[derive(Clone, Debug)]
pub struct CollectionsConfig {
    /// The directory of the files.
    pub data_dir: PathBuf,
    /// How long to wait for another process to release the data directory.
    pub lock_wait: Duration,
    /// The largest number of collections, open or not.
    pub collections_max: usize,
    /// The secret of collections with keyed hashing.
    pub secret: Option<SecretKey>,
    /// Settings of the collection `default`. If the collection exists, it must have the same spec, but its banding and
    /// threshold may have been changed.
    pub default_settings: Settings,
    /// Limits of each collection's work.
    pub limits: Limits,
    /// Limits of memory.
    pub memory: MemoryConfig,
    /// The bytes of disk space that are kept free for deletes. 0: none.
    pub reserve_bytes: u64,
    /// Whether documents are kept after the process ends.
    pub medium: Medium,
    /// The cluster that has the documents. `None`: they are in the data directory.
    pub redis: Option<RedisSettings>,
    /// Settings of backups.
    pub backup: BackupSettings,
    /// How fast and how often stored records are read again. `None`: never.
    pub scrub: Option<ScrubConfig>,
}

/// Limits of the memory of all collections together.
#[derive(Clone, Debug)]
pub struct MemoryConfig {
    /// The maximum number of bytes that documents may take in the index. `None`: no limit.
    pub index_bytes_max: Option<u64>,
    /// The maximum number of bytes of the ids that are kept in memory for answers. 0: none are kept.
    pub id_cache_bytes_max: u64,
    /// The memory limit of the whole process. While this limit is reached, the index does not grow.
    pub process: Arc<Bound>,
}

/// Whether documents are kept after the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Documents are kept, so an answer waits for the disk.
    Disk,
    /// Nothing is kept. This is for trials and measurements: the files in the data directory are never synced, and are
    /// removed at the end.
    Memory,
}

/// A Redis or Valkey Cluster that has the documents.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    /// Some of its nodes, each as `host:port`.
    pub nodes: Vec<String>,
    /// `None`: the user `default`.
    pub username: Option<String>,
    pub password: Option<Password>,
    /// `None`: connections without TLS.
    pub tls: Option<ClientSettings>,
    /// How long a request to the cluster may take.
    pub timeout: Duration,
    /// The number of replicas that must have a write before it is acknowledged. `None`: as many as each primary has.
    pub acks: Option<usize>,
    /// The beginning of all keys.
    pub prefix: String,
    /// The number of documents that a new collection will have, approximately.
    pub documents_expected: u64,
    /// The time between two looks whether the cluster is still fit.
    pub check_interval: Duration,
}

/// How fast and how often records are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubConfig {
    /// The bytes read per second over all collections; above 0.
    pub bytes_per_second: u64,
    /// The time from the end of a collection's pass to the beginning of its next pass.
    pub interval: Duration,
}

/// Limits on the work of one collection.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest number of postings read for a band key in one probe.
    pub bucket_read_max: usize,
    /// The largest number of postings read for a band key if a check has a scope.
    pub scoped_reads_max: usize,
    /// The largest number of labels, and of documents from the same source.
    pub labels: LabelLimits,
    /// The largest number of distinct documents verified in one lookup.
    pub candidates_max: usize,
    /// The largest number of candidates whose shingles are compared in one lookup, if matches are verified exactly.
    pub exact_reads_max: usize,
    /// The largest number of bytes of shingles or texts that one lookup reads from disk to compare shingles. One
    /// document is always read, whatever its length.
    pub exact_bytes_max: u64,
    /// The largest number of decisions that may wait for the disk.
    pub commit_queue_max: usize,
    /// The largest number of decisions in one transaction.
    pub commit_batch_max: usize,
    /// The least time between the beginnings of two transactions.
    pub commit_window: Duration,
    /// The maximum number of bytes in memory, for all collections together, of the payloads, shingles and metadata of
    /// decisions that wait for the disk.
    pub commit_payload_bytes_max: usize,
    /// How long a write may wait for a place in the queue before it is refused as overloaded.
    pub commit_queue_wait: Duration,
    /// The number of bits of the fingerprints by which the index distinguishes ids: 64. Tests use fewer, so that ids
    /// often collide.
    pub id_fingerprint_bits: u32,
}

/// The settings of a collection. Its spec, `keep` and `extract` are frozen; the rest can be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub spec: Spec,
    /// The data that is stored with signatures.
    pub keep: Keep,
    /// The part of a page's text that is compared.
    pub extract: Extract,
    pub banding: Banding,
    /// Whether a client or the configuration set the banding. If not, it follows the threshold.
    pub banding_by_hand: bool,
    /// The least similarity of two documents that count as near duplicates.
    pub threshold: f64,
    /// How a candidate is confirmed as a match.
    pub verify: Verify,
    /// How long a document stays after it was last seen. If it is absent, documents never expire.
    pub ttl: Option<Duration>,
    /// Whether a document counts as seen when a duplicate of it is inserted.
    pub touch: bool,
}

/// New settings. An absent setting stays as it is, except that an automatic banding follows the threshold.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub banding: Option<BandingAsked>,
    /// The least similarity of two documents that count as near duplicates.
    pub threshold: Option<f64>,
    /// How a candidate is confirmed as a match.
    pub verify: Option<Verify>,
    /// How long a document stays after it was last seen. `Some(None)`: for ever.
    pub ttl: Option<Option<Duration>>,
    /// Whether a document counts as seen when a duplicate of it is inserted.
    pub touch: Option<bool>,
}

impl Changes {
    /// Whether no setting changes.
    pub fn is_empty(&self) -> bool {
        let Self { banding, threshold, verify, ttl, touch } = self;
        banding.is_none() && threshold.is_none() && verify.is_none() && ttl.is_none() && touch.is_none()
    }

    /// Returns `settings` with these changes.
    pub(crate) fn applied_to(self, settings: Settings) -> Settings {
        let threshold = self.threshold.unwrap_or(settings.threshold);
        let asked = self.banding.or({
            // If the threshold stays, the banding stays too, even if a newer version would choose another banding.
            let follows = !settings.banding_by_hand && threshold != settings.threshold;
            follows.then_some(BandingAsked::Automatic)
        });
        let (banding, banding_by_hand) = match asked {
            None => (settings.banding, settings.banding_by_hand),
            Some(BandingAsked::Kept) => (settings.banding, true),
            Some(BandingAsked::ByHand(banding)) => (banding, true),
            Some(BandingAsked::Automatic) => (automatic_banding(&settings.spec, threshold), false),
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
    /// Returns settings with a banding that was given by hand, and defaults for all optional settings.
    pub fn new(spec: Spec, banding: Banding, threshold: f64) -> Self {
        Self {
            spec,
            keep: Keep::default(),
            extract: Extract::default(),
            banding,
            banding_by_hand: true,
            threshold,
            verify: Verify::default(),
            ttl: None,
            touch: false,
        }
    }

    /// Returns the settings of a new collection: the requested ones, and those of `default` in place of absent ones.
    /// The banding of `default` is used only if shape and threshold are also those of `default`. If `keep` is absent,
    /// an external spec stores only signatures. Any other spec stores at least the shingles if `verify` compares them.
    /// [`checked`](Self::checked) refuses settings that are not possible.
    pub fn asked(asked: SettingsAsked, default: &Self) -> Self {
        let SettingsAsked { spec, keep, extract, banding, threshold, verify, ttl, touch } = asked;
        let containment = IndexKind::of(&spec) == IndexKind::Containment;
        let (threshold, verify) = match containment {
            true => (threshold.or(Some(1.0)), verify.or(Some(Verify::Estimate))),
            false => (threshold, verify),
        };
        let threshold = threshold.unwrap_or(default.threshold);
        let verify = verify.unwrap_or(default.verify);
        let keep = keep.unwrap_or(match default.keep {
            _ if matches!(spec, Spec::External { .. }) => Keep::Signature,
            _ if containment => Keep::Shingles,
            Keep::Signature if verify.compares_shingles() => Keep::Shingles,
            keep => keep,
        });
        let automatic = automatic_banding(&spec, threshold);
        let same = spec.shape() == default.spec.shape() && threshold == default.threshold;
        let (present, by_hand) = if same { (default.banding, default.banding_by_hand) } else { (automatic, false) };
        let (banding, banding_by_hand) = match banding {
            None => (present, by_hand),
            Some(BandingAsked::ByHand(banding)) => (banding, true),
            Some(BandingAsked::Kept) => (present, true),
            Some(BandingAsked::Automatic) => (automatic, false),
        };
        let (ttl, touch) = (ttl.unwrap_or(default.ttl), touch.unwrap_or(default.touch));
        let extract = extract.unwrap_or(default.extract);
        Self { spec, keep, extract, banding, banding_by_hand, threshold, verify, ttl, touch }
    }

    /// Whether a collection with these settings satisfies the request `asked`. Two automatic bandings count as equal,
    /// even if the default changed between two versions. A banding by hand equals an automatic one with the same
    /// values, because collections of format 2 and earlier do not say which of the two they have.
    pub fn answers(&self, asked: &Self) -> bool {
        let both_automatic = !self.banding_by_hand && !asked.banding_by_hand;
        let banding = if both_automatic { self.banding } else { asked.banding };
        *self == Self { banding, banding_by_hand: self.banding_by_hand, ..asked.clone() }
    }

    /// Fails if a collection with the settings `other` cannot be merged into one with these settings, because `spec`,
    /// `keep` or `extract` differ.
    pub fn takes_from(&self, other: &Self, (into, from): (&CollectionName, &CollectionName)) -> Result<()> {
        let (spec, keep, extract) = (&self.spec, self.keep, self.extract);
        let differing = [
            ("spec", *spec != other.spec, spec.to_string(), other.spec.to_string()),
            ("keep", keep != other.keep, keep.as_str().to_owned(), other.keep.as_str().to_owned()),
            ("extract", extract != other.extract, extract.as_str().to_owned(), other.extract.as_str().to_owned()),
        ];
        match differing.into_iter().find(|(_, differs, ..)| *differs) {
            None => Ok(()),
            Some((setting, _, own, other)) => {
                Err(CollectionError::NotMergeable { into: into.clone(), from: from.clone(), setting, own, other })
            }
        }
    }

    /// Refuses settings that are not possible or contradict each other.
    pub fn checked(self) -> Result<Self> {
        check_threshold(self.threshold)?;
        let refuse = |field, detail: String| Err(CollectionError::Invalid { field, detail });
        if self.index() == IndexKind::Containment {
            self.check_containment()?;
        }
        if let Err(error) = Banding::new(self.banding.bands(), self.banding.rows(), self.spec.shape()) {
            return refuse("banding", error.to_string());
        }
        if self.keep != Keep::Signature && matches!(self.spec, Spec::External { .. }) {
            return refuse(
                "keep",
                "must be `signature` with an external spec, because there is nothing else to store".into(),
            );
        }
        if self.verify.compares_shingles() && self.keep == Keep::Signature {
            let verify = self.verify.as_str();
            return refuse("verify", format!("`{verify}` compares shingles, so `keep` must be shingles or text"));
        }
        if self.ttl.is_some_and(|ttl| !TTL.contains(&ttl)) {
            let (least, most) = (TTL.start().as_secs(), TTL.end().as_secs());
            return refuse("ttl", format!("must be between {least} and {most} seconds, or 0 for ever"));
        }
        Ok(self)
    }

    /// Returns how the documents of the collection are found.
    pub fn index(&self) -> IndexKind {
        IndexKind::of(&self.spec)
    }

    /// Refuses settings that a containment collection cannot have.
    fn check_containment(&self) -> Result<()> {
        const NOT_COMPARED: &str =
            "cannot be set if `index` is `containment`, because nothing is compared by similarity";
        let by_hand = self.banding_by_hand || self.banding != automatic_banding(&self.spec, self.threshold);
        if gram_size(&self.spec).is_none() {
            let shingle = match &self.spec {
                Spec::Text(text) => text.shingling.to_string(),
                Spec::External { .. } => String::new(),
            };
            let detail =
                format!("must be word8 to word32 if `index` is `containment` or `sketch` is `none`; it is `{shingle}`");
            return Err(CollectionError::Invalid { field: "shingle", detail });
        }
        let wrong = [
            (
                self.keep != Keep::Shingles,
                "keep",
                "must be `shingles` if `index` is `containment`, because the n-grams are stored",
            ),
            (self.threshold != 1.0, "threshold", NOT_COMPARED),
            (self.verify != Verify::Estimate, "verify", NOT_COMPARED),
            (by_hand, "banding", NOT_COMPARED),
        ];
        match wrong.into_iter().find(|(is_wrong, ..)| *is_wrong) {
            Some((_, field, detail)) => Err(CollectionError::Invalid { field, detail: detail.to_owned() }),
            None => Ok(()),
        }
    }

    /// Returns the settings that a file contains.
    pub(crate) fn of(meta: &Meta, spec: Spec) -> std::result::Result<Self, hapax_core::BandingError> {
        let Changeable { bands, rows, banding_by_hand, threshold, verify, ttl_ms, touch } = meta.changeable;
        let banding = Banding::new(bands, rows, spec.shape())?;
        let (keep, extract, ttl) = (meta.keep, meta.extract, ttl_ms.map(Duration::from_millis));
        Ok(Self { spec, keep, extract, banding, banding_by_hand, threshold, verify, ttl, touch })
    }

    /// Returns the settings that can change, in the form of a file.
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
        let Self { spec, keep, extract, banding, banding_by_hand, threshold, verify, ttl, touch } = self;
        let chosen = if *banding_by_hand { "by hand" } else { "automatic" };
        write!(f, "spec `{spec}`, banding {}x{} ({chosen}), ", banding.bands(), banding.rows())?;
        write!(f, "threshold {threshold}, ")?;
        write!(f, "keep {}, extract {}, verify {}, ", keep.as_str(), extract.as_str(), verify.as_str())?;
        match ttl {
            Some(ttl) => write!(f, "ttl {} s, touch {touch}", ttl.as_secs_f64()),
            None => write!(f, "no ttl, touch {touch}"),
        }
    }
}

/// Returns the banding of a spec unless another is set by hand. Without a sketch, only equal contents become candidates.
fn automatic_banding(spec: &Spec, threshold: f64) -> Banding {
    let shape = spec.shape();
    match IndexKind::of(spec) {
        IndexKind::Similarity => tuning::default_banding(shape, threshold),
        IndexKind::Containment => Banding::new(1, shape.k, shape).expect("one band of all slots is valid"),
    }
}

/// The state of a collection at one moment.
#[derive(Clone, Debug)]
pub struct Description {
    pub name: CollectionName,
    pub settings: Settings,
    /// Fingerprint of the spec.
    pub fingerprint: Fingerprint,
    /// The time when it was made.
    pub created: TimestampMs,
    /// Durable documents, including links.
    pub documents: u64,
    /// The number of links among them. It is absent if the collection is not open.
    pub linked: Option<u64>,
    /// The probability that a document exactly at the threshold is proposed.
    pub candidate_recall_at_threshold: f64,
    /// The probability that a document exactly at the threshold is reported. It is about one half, because of the
    /// spread of the estimate. If matches are verified exactly, it is nearly the probability that the document is
    /// proposed.
    pub verdict_recall_at_threshold: f64,
}

impl Description {
    /// Describes a collection with these values, which come from its file or from memory.
    pub(crate) fn new(
        name: CollectionName,
        settings: Settings,
        created: TimestampMs,
        documents: u64,
        linked: Option<u64>,
    ) -> Self {
        let Settings { ref spec, banding, threshold, verify, .. } = settings;
        let shape = spec.shape();
        let least = Terms::new(verify, threshold, spec).matching_min;
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
