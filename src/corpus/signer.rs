//! Contents -> what a decision needs of them. Any number of threads may sign at once.

use hapax_core::{SecretKey, tuning};

use crate::cpu::{CpuPool, WhenFull};
use crate::types::{CollectionName, Content};
use crate::verdicts::{CollectionError, Kept, PrepareOptions, Prepared, Preparer, Purpose, Result, Settings};

/// Signs the documents of a corpus.
#[derive(Clone)]
pub struct CorpusSigner {
    preparer: Preparer,
    settings: Settings,
}

/// A document that is ready for a decision.
#[derive(Clone, Debug)]
pub struct SignedDocument(Prepared);

impl CorpusSigner {
    /// Fails if the settings are not possible, or need a secret that is absent.
    pub fn new(settings: Settings, secret: Option<&SecretKey>, cpu: CpuPool) -> Result<Self> {
        let settings = settings.checked()?;
        // No collection is made. Errors name the collection whose settings are the default ones.
        let name = CollectionName::default_collection();
        let (keep, extract) = (settings.keep, settings.extract);
        let preparer = Preparer::new(&name, &settings.spec, secret, keep, extract, cpu)?;
        Ok(Self { preparer, settings })
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns an upper bound on the memory that the shingles of texts of this length take, in bytes.
    pub fn shingle_bytes(&self, text_bytes: usize) -> usize {
        self.preparer.shingle_bytes(Purpose::Check, text_bytes, self.settings.verify)
    }

    /// Returns the memory that a signed document takes here, without its shingles, and then in an index, in bytes.
    pub fn bytes_each(&self) -> usize {
        let shape = self.settings.spec.shape();
        let signature = (shape.k * shape.bits / 8) as usize;
        size_of::<SignedDocument>() + signature + tuning::index_bytes(self.settings.banding, shape) as usize
    }

    /// Signs a document on this thread, however long it is.
    pub fn sign(&self, content: Content) -> Result<SignedDocument> {
        let options =
            PrepareOptions { when_full: WhenFull::Wait, purpose: Purpose::Check, ..PrepareOptions::default() };
        let prepared = self.preparer.prepare_here(content, options, self.settings.verify)?;
        if self.settings.verify.compares_shingles() && prepared.made().is_some_and(|made| made.kept.is_none()) {
            let detail = "cannot be compared by its shingles; send the text or the set".into();
            return Err(CollectionError::Invalid { field: "signature", detail });
        }
        Ok(SignedDocument(prepared))
    }
}

impl SignedDocument {
    pub(super) fn of(prepared: Prepared) -> Self {
        Self(prepared)
    }

    pub(super) fn prepared(&self) -> &Prepared {
        &self.0
    }

    pub(super) fn into_prepared(self) -> Prepared {
        self.0
    }

    /// Returns the packed slots, or `None` for a document without tokens.
    pub fn signature(&self) -> Option<&[u8]> {
        self.0.signature()
    }

    /// Returns the bytes of memory that its shingles take.
    pub fn shingle_bytes(&self) -> usize {
        let kept = self.0.made().and_then(|made| made.kept.as_ref());
        kept.map_or(0, Kept::bytes)
    }

    /// The length of the content as it was given, in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.content_bytes()
    }
}
