//! Content -> what a decision needs of it: signature, content hash, shingle count.
//! The processor's share of a request, done before any lock is taken. Small contents are signed where they are, long
//! ones on the pool; a long text slice by slice, so that others get their turn, and so that it need never be whole.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hapax_core::{
    Collect, ContentHash, IllFormed, Pipeline, ShingleSet, Shingling, SignScratch, Signed, SketchKind, Spec, TextSpec,
};
use parking_lot::Mutex;

use super::kept::Kept;
use super::{CollectionError, Result};
use crate::cpu::{Place, WhenFull};
use crate::engine::Collection;
use crate::types::{Content, Keep, SetElement, Verify, content_prefix};

/// Contents up to this size are signed where they are, in some ten microseconds per 2 KB: handing them to another
/// thread and back costs more. Larger ones must not keep the connections of an async thread waiting.
const HERE_BYTES_MAX: usize = 16 * 1024;
/// Text signed in one go on a thread of the pool: less than a millisecond of most, after which others have their turn. A
/// text of characters that fold to eighteen each takes 20 ms.
const SLICE_BYTES: usize = 64 * 1024;
/// Scratches kept for long texts to come.
const SPARE_SCRATCHES_MAX: usize = 16;

thread_local! {
    static SCRATCH: RefCell<SignScratch> = RefCell::default();
}

/// How a content is prepared.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrepareOptions {
    /// What to do with a long content where too many others wait for a processor.
    pub when_full: WhenFull,
    /// Whether to keep the ranks, which merge as signatures do not.
    pub ranks: bool,
    /// What it is prepared for.
    pub purpose: Purpose,
}

/// What a content is prepared for: what is made of it beside its signature takes time and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To be signed.
    Sign,
    /// To be compared with another document: its shingles are needed, whatever the collection keeps.
    Compare,
    /// To be looked up, and not stored: where something is kept beside signatures, [`Collection::insert`] refuses it.
    Check,
    /// To be looked up, and stored.
    #[default]
    Insert,
}

/// A document, ready to be judged. `made` is absent for an empty one.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) made: Option<Made>,
    pub(crate) shingles: Option<u64>,
    ranks: Option<Vec<u64>>,
    empty_slots: Option<u32>,
}

/// What a document that is not empty was made into.
#[derive(Debug)]
pub(crate) struct Made {
    pub signature: Vec<u8>,
    /// Absent for a given signature.
    pub content: Option<ContentHash>,
    /// Its shingles, where they are kept or compared.
    pub kept: Option<Kept>,
}

impl Made {
    /// The part of the content hash that memory keeps; 0 says there is none.
    pub(crate) fn content_prefix(&self) -> u64 {
        self.content.map_or(0, |content| content_prefix(content).max(1))
    }
}

impl Prepared {
    /// Packed slots; `None` for an empty document.
    pub fn signature(&self) -> Option<&[u8]> {
        self.made.as_ref().map(|made| &made.signature[..])
    }

    /// Shingles, repeats counted; `None` for a given signature.
    pub fn shingles(&self) -> Option<u64> {
        self.shingles
    }

    /// The least rank in each slot, 2^64 - 1 where there is none; `None` where they were not asked for.
    pub fn ranks(&self) -> Option<&[u64]> {
        self.ranks.as_deref()
    }

    /// Slots that no shingle reached; `None` but for texts and sets in a collection with an `oph` sketch.
    pub fn empty_slots(&self) -> Option<u32> {
        self.empty_slots
    }
}

/// A text given in pieces, cut anywhere, of any length. Each is signed on the pool; between two of them the text takes
/// no thread, so a client may take its time.
pub struct TextSigner {
    collection: Arc<Collection>,
    pipeline: Arc<Pipeline>,
    scratch: Lent,
    ill_formed: IllFormed,
    options: PrepareOptions,
    /// Whether a piece has been signed.
    begun: bool,
    /// Bytes signed so far.
    bytes: usize,
    /// Time that signing took, without the waiting.
    spent: Duration,
}

impl TextSigner {
    /// Signs the next piece, in slices.
    pub async fn push(mut self, mut piece: Bytes) -> Result<Self> {
        while !piece.is_empty() {
            let slice = piece.split_to(piece.len().min(SLICE_BYTES));
            self = self.place().await?.run(move || self.push_now(&slice)).await?;
        }
        Ok(self)
    }

    /// Signs the last piece, which may be empty.
    pub async fn finish(mut self, mut piece: Bytes) -> Result<Prepared> {
        let rest = piece.split_off(piece.len().saturating_sub(SLICE_BYTES));
        self = self.push(piece).await?;
        let (place, bytes) = (self.place().await?, self.uncut_bytes() + rest.len());
        place.run_uncut(bytes, move || self.push_now(&rest)?.finish_now()).await
    }

    /// What is done in one go at the end: its shingles are sorted.
    fn uncut_bytes(&self) -> usize {
        if self.collection.collect(self.options.purpose).shingles { self.bytes } else { 0 }
    }

    async fn place(&self) -> Result<Place> {
        // Refusing a text halfway would throw away what was done for it.
        let when_full = if self.begun { WhenFull::Wait } else { self.options.when_full };
        Ok(self.collection.cpu.place(when_full).await?)
    }

    fn push_now(mut self, piece: &[u8]) -> Result<Self> {
        let started = Instant::now();
        self.pipeline.resume(self.scratch.scratch()).push_bytes(piece, self.ill_formed)?;
        self.begun = true;
        self.bytes += piece.len();
        self.spent += started.elapsed();
        Ok(self)
    }

    fn finish_now(mut self) -> Result<Prepared> {
        let started = Instant::now();
        let signed = self.pipeline.resume(self.scratch.scratch()).finish_bytes(self.ill_formed)?;
        self.collection.meters.sign_seconds.record(self.spent + started.elapsed());
        Ok(self.collection.prepared(&self.pipeline, signed, self.scratch.scratch(), self.options))
    }
}

/// A scratch that changes threads, and so cannot be a thread's own; kept for the next text when dropped.
struct Lent(Option<SignScratch>);

static SPARE_SCRATCHES: Mutex<Vec<SignScratch>> = Mutex::new(Vec::new());

impl Lent {
    fn new() -> Self {
        Self(Some(SPARE_SCRATCHES.lock().pop().unwrap_or_default()))
    }

    fn scratch(&mut self) -> &mut SignScratch {
        self.0.as_mut().expect("it is there until this is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut spare = SPARE_SCRATCHES.lock();
        if spare.len() < SPARE_SCRATCHES_MAX {
            spare.extend(self.0.take());
        }
    }
}

impl Collection {
    /// Makes a document ready to be judged.
    pub async fn prepare(self: &Arc<Self>, content: Content) -> Result<Prepared> {
        self.prepare_with(content, PrepareOptions::default()).await
    }

    /// Makes a document ready to be judged, or for other uses.
    pub async fn prepare_with(self: &Arc<Self>, content: Content, options: PrepareOptions) -> Result<Prepared> {
        self.check_ranks(options.ranks)?;
        match content {
            Content::Text(text) if text.len() > HERE_BYTES_MAX => {
                self.text_signer(IllFormed::Refuse, options)?.finish(Bytes::from(text)).await
            }
            content => {
                let bytes = content.bytes();
                self.compute(bytes, options.when_full, move |collection| collection.prepare_now(content, options)).await
            }
        }
    }

    /// Begins a text that will be given in pieces.
    pub fn text_signer(self: &Arc<Self>, ill_formed: IllFormed, options: PrepareOptions) -> Result<TextSigner> {
        self.check_ranks(options.ranks)?;
        let pipeline = Arc::clone(self.pipeline_for("text")?);
        let mut scratch = Lent::new();
        // Begins the text in the scratch; each piece resumes it.
        pipeline.signer(scratch.scratch()).collect(self.collect(options.purpose));
        let collection = Arc::clone(self);
        Ok(TextSigner {
            collection,
            pipeline,
            scratch,
            ill_formed,
            options,
            begun: false,
            bytes: 0,
            spent: Duration::ZERO,
        })
    }

    /// Ranks are whole hashes, and mixing is no secret: from those of a text of one word anyone could compute what the
    /// secret makes of the word, which is what it is there to hide.
    fn check_ranks(&self, asked: bool) -> Result<()> {
        match &self.spec {
            Spec::Text(TextSpec { key: Some(_), .. }) if asked => Err(CollectionError::Invalid {
                field: "ranks",
                detail: format!("would give away what the secret of collection `{}` makes of texts", self.name),
            }),
            _ => Ok(()),
        }
    }

    /// Works on contents of so many bytes: on this thread where they are few, else on the pool.
    pub(crate) async fn compute<T: Send + 'static>(
        self: &Arc<Self>,
        bytes: usize,
        when_full: WhenFull,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if bytes <= HERE_BYTES_MAX {
            return work(self);
        }
        let collection = Arc::clone(self);
        self.cpu.place(when_full).await?.run_uncut(bytes, move || work(&collection)).await
    }

    /// Bytes that a text of so many takes at the most beside itself while it is prepared: its shingles, in a collection
    /// where they are kept or compared.
    pub fn shingle_bytes(&self, purpose: Purpose, text_bytes: usize) -> usize {
        let Collect { shingles, canonical } = self.collect(purpose);
        // Each character begins one, or each word, which is a letter and a space at the least. Memory for them grows by
        // doubling, and sorting takes half as much.
        let each = match self.pipeline.as_ref().map(|pipeline| pipeline.spec().shingling) {
            _ if !shingles => 0,
            Some(Shingling::Char(_)) => 20,
            Some(Shingling::Word(_)) | None => 10,
        };
        text_bytes * (each + usize::from(canonical))
    }

    /// Whether contents that are looked up are compared by their shingles.
    pub fn compares_shingles(&self) -> bool {
        self.live.read().settings.verify == Verify::Exact
    }

    /// What is wanted of a text beside its signature.
    fn collect(&self, purpose: Purpose) -> Collect {
        match purpose {
            Purpose::Sign => Collect::default(),
            Purpose::Compare => Collect { shingles: true, canonical: false },
            Purpose::Check => Collect { shingles: self.compares_shingles(), canonical: false },
            Purpose::Insert => Collect { shingles: self.keep != Keep::Signature, canonical: self.keep == Keep::Text },
        }
    }

    /// Signs a content, or takes its signature.
    pub(crate) fn prepare_now(&self, content: Content, options: PrepareOptions) -> Result<Prepared> {
        let ranks = options.ranks;
        match content {
            Content::Text(text) => {
                let pipeline = self.pipeline_for("text")?;
                Ok(SCRATCH.with_borrow_mut(|scratch| {
                    let started = Instant::now();
                    let mut signer = pipeline.signer(scratch);
                    signer.collect(self.collect(options.purpose));
                    signer.push(&text);
                    let signed = signer.finish();
                    self.meters.sign_seconds.record(started.elapsed());
                    self.prepared(pipeline, signed, scratch, options)
                }))
            }
            Content::Set(elements) => {
                let pipeline = self.pipeline_for("set")?;
                let mut hashes = element_hashes(pipeline, &elements);
                Ok(SCRATCH.with_borrow_mut(|scratch| {
                    let signed = pipeline.sign_set(scratch, &mut hashes);
                    let mut prepared = self.prepared(pipeline, signed, scratch, options);
                    if let Some(made) = prepared.made.as_mut().filter(|_| self.collect(options.purpose).shingles) {
                        made.kept = Some(Kept::of_shingles(ShingleSet::new(hashes), self.keep_for(options.purpose)));
                    }
                    prepared
                }))
            }
            Content::Signature { .. } if ranks => Err(CollectionError::Invalid {
                field: "ranks",
                detail: "cannot be had of a signature, which keeps but some bits of each; give the text or the set"
                    .into(),
            }),
            Content::Signature { .. }
                if options.purpose != Purpose::Compare && self.collect(options.purpose).shingles =>
            {
                Err(CollectionError::Invalid {
                    field: "signature",
                    detail: format!(
                        "collection `{}` compares or keeps shingles, which cannot be had of a signature; give the text or the set",
                        self.name
                    ),
                })
            }
            Content::Signature { bytes, fingerprint } => {
                let given = fingerprint.or(matches!(self.spec, Spec::External { .. }).then_some(self.fingerprint));
                let Some(given) = given else {
                    return Err(CollectionError::Invalid {
                        field: "fingerprint",
                        detail: format!(
                            "a signature needs the fingerprint of the spec it was made with; this collection's is {}",
                            self.fingerprint
                        ),
                    });
                };
                if given != self.fingerprint {
                    return Err(CollectionError::SpecMismatch {
                        name: self.name.clone(),
                        held: format!("the spec with fingerprint {} (`{}`)", self.fingerprint, self.spec),
                        asked: format!("this signature has fingerprint {given}"),
                    });
                }
                if bytes.len() != self.shape.bytes() {
                    let (k, bits) = (self.shape.k, self.shape.bits);
                    return Err(CollectionError::Invalid {
                        field: "signature",
                        detail: format!(
                            "a signature here has {k} slots of {bits} bits, {} bytes; this one has {} bytes",
                            self.shape.bytes(),
                            bytes.len()
                        ),
                    });
                }
                // A sketch of nothing has all its slots alike; were it taken, all empty documents would be duplicates.
                let slot_bytes = (self.shape.bits / 8) as usize;
                let empty = bytes.chunks(slot_bytes).all(|slot| slot == &bytes[..slot_bytes]);
                let made = (!empty).then_some(Made { signature: bytes, content: None, kept: None });
                Ok(Prepared { made, shingles: None, ranks: None, empty_slots: None })
            }
        }
    }

    /// What is to be kept on disk of a document that was prepared for this.
    fn keep_for(&self, purpose: Purpose) -> Keep {
        if purpose == Purpose::Insert { self.keep } else { Keep::Signature }
    }

    fn pipeline_for(&self, field: &'static str) -> Result<&Arc<Pipeline>> {
        self.pipeline.as_ref().ok_or_else(|| CollectionError::Invalid {
            field,
            detail: format!("collection `{}` is `{}` and takes only given signatures", self.name, self.spec),
        })
    }

    /// What was signed last on `scratch`.
    fn prepared(
        &self,
        pipeline: &Pipeline,
        signed: Option<Signed>,
        scratch: &mut SignScratch,
        PrepareOptions { ranks, purpose, .. }: PrepareOptions,
    ) -> Prepared {
        let k = self.shape.k;
        let oph = pipeline.spec().sketch == SketchKind::Oph;
        let Some(Signed { signature, content, shingles, empty_slots }) = signed else {
            // The ranks of nothing: merged with others they change none.
            let ranks = ranks.then(|| vec![u64::MAX; k as usize]);
            return Prepared { made: None, shingles: Some(0), ranks, empty_slots: oph.then_some(k) };
        };
        if let Some(empty_slots_ratio) = &self.meters.empty_slots_ratio {
            empty_slots_ratio.record(f64::from(empty_slots) / f64::from(k));
        }
        let collected = pipeline.collected(scratch);
        let kept = (!collected.shingles.is_empty()).then(|| Kept::of_text(collected, self.keep_for(purpose)));
        Prepared {
            made: Some(Made { signature, content: Some(content), kept }),
            shingles: Some(shingles),
            ranks: ranks.then(|| pipeline.ranks(scratch).as_slice().to_vec()),
            empty_slots: oph.then_some(empty_slots),
        }
    }
}

fn element_hashes(pipeline: &Pipeline, elements: &[SetElement]) -> Vec<u64> {
    elements
        .iter()
        .map(|element| match element {
            SetElement::Text(text) => pipeline.element_text(text),
            SetElement::Integer(integer) => pipeline.element_integer(*integer),
        })
        .collect()
}
