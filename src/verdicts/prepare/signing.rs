//! Turns content into signature, content hash and shingles, on the calling thread. The frozen settings of a collection
//! decide how. `verify` can change, so each call passes it.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_core::{
    Collect, Fingerprint, Pipeline, SecretKey, ShingleSet, Shingling, SignScratch, SignatureShape, Signed, SketchKind,
    Spec, TextSpec,
};

use super::grams::gram_size;
use super::kept::Kept;
use super::page_meters::PageMeters;
use super::prepared::{Made, PrepareOptions, Prepared, Purpose};
use super::sign_meters::SignMeters;
use crate::extract::{self, Page};
use crate::grams::{GramSize, ItemGrams};
use crate::types::{CollectionName, Content, Extract, Html, Keep, SetElement, SignedText, Verify};
use crate::verdicts::error::{CollectionError, Result};

thread_local! {
    static SCRATCH: RefCell<SignScratch> = RefCell::default();
}

/// The frozen settings of signing for one collection.
pub(super) struct Signing {
    name: CollectionName,
    spec: Spec,
    shape: SignatureShape,
    fingerprint: Fingerprint,
    /// Absent if the collection only takes signatures.
    pipeline: Option<Arc<Pipeline>>,
    keep: Keep,
    /// The n of a containment collection.
    grams: Option<GramSize>,
    /// The part of a page's text that is signed.
    extract: Extract,
    meters: SignMeters,
    page_meters: PageMeters,
}

impl Signing {
    /// Fails if the spec has a key, and `secret` is absent or another key.
    pub(super) fn new(
        name: &CollectionName,
        spec: &Spec,
        secret: Option<&SecretKey>,
        keep: Keep,
        extract: Extract,
    ) -> Result<Self> {
        Ok(Self {
            pipeline: pipeline(name, spec, secret)?.map(Arc::new),
            name: name.clone(),
            spec: spec.clone(),
            shape: spec.shape(),
            fingerprint: spec.fingerprint(),
            keep,
            grams: gram_size(spec),
            extract,
            meters: SignMeters::new(spec),
            page_meters: PageMeters::new(),
        })
    }

    pub(super) fn spec(&self) -> &Spec {
        &self.spec
    }

    pub(super) fn shape(&self) -> SignatureShape {
        self.shape
    }

    pub(super) fn keep(&self) -> Keep {
        self.keep
    }

    /// Returns which text of a page is signed.
    pub(super) fn extracts(&self) -> Extract {
        self.extract
    }

    pub(super) fn pipeline(&self) -> Option<&Pipeline> {
        self.pipeline.as_deref()
    }

    /// Returns the pipeline, or an error that names the field of the content.
    pub(super) fn pipeline_for(&self, field: &'static str) -> Result<&Arc<Pipeline>> {
        self.pipeline.as_ref().ok_or_else(|| CollectionError::Invalid {
            field,
            detail: format!(
                "collection `{}` has the external spec `{}` and accepts only signatures",
                self.name, self.spec
            ),
        })
    }

    /// Returns which data of a text is needed in addition to its signature.
    pub(super) fn collect(&self, purpose: Purpose, verify: Verify) -> Collect {
        match purpose {
            Purpose::Sign => Collect::default(),
            Purpose::Compare => Collect { shingles: true, canonical: false },
            Purpose::Check => Collect { shingles: verify.compares_shingles(), canonical: false },
            Purpose::Insert => Collect { shingles: self.keep != Keep::Signature, canonical: self.keep == Keep::Text },
        }
    }

    /// Returns an upper bound on the memory that the shingles of a text of this length take while the text is prepared,
    /// in bytes. It is 0 if the shingles are not needed.
    pub(super) fn shingle_bytes(&self, purpose: Purpose, text_bytes: usize, verify: Verify) -> usize {
        let Collect { shingles, canonical } = self.collect(purpose, verify);
        // A shingle begins at each character or at each word, and a word takes at least a letter and a space. A shingle
        // has eight bytes. The memory for shingles grows by doubling, and sorting needs room for another half of the
        // shingles.
        let each = match self.pipeline().map(|pipeline| pipeline.spec().shingling) {
            _ if !shingles => 0,
            Some(Shingling::Char(_)) => 20,
            Some(Shingling::Word(_)) | None => 10,
        };
        text_bytes * (each + usize::from(canonical))
    }

    /// Refuses to return ranks if the spec has a key. Ranks are whole hashes, and the way in which they are mixed is
    /// public. From the ranks of a text with one word, anyone could compute the keyed hash of that word, which must
    /// stay secret.
    pub(super) fn check_ranks(&self, asked: bool) -> Result<()> {
        match &self.spec {
            Spec::Text(TextSpec { key: Some(_), .. }) if asked => Err(CollectionError::Invalid {
                field: "ranks",
                detail: format!(
                    "cannot be returned, because they would reveal the keyed hashes of collection `{}`",
                    self.name
                ),
            }),
            _ => Ok(()),
        }
    }

    /// Signs a content. If the content is a signature, only checks it.
    pub(super) fn prepare(&self, content: Content, options: PrepareOptions, verify: Verify) -> Result<Prepared> {
        let bytes = content.bytes();
        let prepared = match content {
            Content::Text(text) => self.text("text", &text, options, verify)?,
            Content::Html(html) => self.html(&html, options, verify)?,
            Content::Set(elements) => self.set(&elements, options, verify)?,
            Content::Signature { bytes, fingerprint, text } => {
                self.refuse_unworded("signature")?;
                self.check_given(options, verify)?;
                self.check_made_here(fingerprint)?;
                if text.is_some() {
                    self.pipeline_for("content_hash")?;
                }
                return self.given(bytes, text);
            }
        };
        Ok(prepared.with_content_bytes(bytes))
    }

    /// Extracts the text of a page.
    pub(super) fn extract(&self, html: &Html, extract: Extract) -> Page {
        let started = Instant::now();
        let page = extract::extract(html, extract);
        self.page_meters.page(extract, page.facts.extracted, html.markup.len(), started.elapsed());
        page
    }

    fn html(&self, html: &Html, options: PrepareOptions, verify: Verify) -> Result<Prepared> {
        self.pipeline_for("html")?;
        let Page { text, facts } = self.extract(html, self.extract);
        Ok(self.text("html", &text, options, verify)?.with_page(extract::mark(html), facts))
    }

    /// Signs a text. `field` is the field of the document that the text came from.
    fn text(&self, field: &'static str, text: &str, options: PrepareOptions, verify: Verify) -> Result<Prepared> {
        let pipeline = self.pipeline_for(field)?;
        Ok(SCRATCH.with_borrow_mut(|scratch| {
            let started = Instant::now();
            let mut signer = pipeline.signer(scratch);
            signer.collect(self.collect(options.purpose, verify));
            signer.push(text);
            let signed = signer.finish();
            self.signed(pipeline, signed, started.elapsed(), scratch, options)
        }))
    }

    fn set(&self, elements: &[SetElement], options: PrepareOptions, verify: Verify) -> Result<Prepared> {
        let pipeline = self.pipeline_for("set")?;
        self.refuse_unworded("set")?;
        let mut hashes = element_hashes(pipeline, elements);
        Ok(SCRATCH.with_borrow_mut(|scratch| {
            let signed = pipeline.sign_set(scratch, &mut hashes);
            let kept = self.collect(options.purpose, verify).shingles.then(|| ShingleSet::new(hashes));
            let kept = kept.map(|set| Kept::of_shingles(set, self.keep_for(options.purpose)));
            self.prepared(pipeline, signed, kept, scratch, options.ranks)
        }))
    }

    /// Returns the document for the text that was signed last on `scratch`. Signing it took `took`.
    pub(super) fn signed(
        &self,
        pipeline: &Pipeline,
        signed: Option<Signed>,
        took: Duration,
        scratch: &mut SignScratch,
        PrepareOptions { ranks, purpose, .. }: PrepareOptions,
    ) -> Prepared {
        self.meters.text(took);
        let collected = signed.is_some().then(|| pipeline.collected(scratch));
        let collected = collected.filter(|collected| !collected.shingles.is_empty());
        if let (Some(size), Some(collected), Purpose::Insert) = (self.grams, &collected, purpose) {
            let item = match &collected.short[..] {
                [] => Ok(ItemGrams::of_windows(size, collected.shingles.clone())),
                short => ItemGrams::new(size, short),
            };
            return match item {
                Ok(item) => self.prepared(pipeline, signed, Some(Kept::of_grams(&item)), scratch, ranks),
                Err(_) => Prepared::too_short(),
            };
        }
        let kept = collected.map(|collected| Kept::of_text(collected, self.keep_for(purpose)));
        self.prepared(pipeline, signed, kept, scratch, ranks)
    }

    /// Returns the document that was signed last on `scratch`.
    fn prepared(
        &self,
        pipeline: &Pipeline,
        signed: Option<Signed>,
        kept: Option<Kept>,
        scratch: &SignScratch,
        ranks: bool,
    ) -> Prepared {
        let k = self.shape.k;
        let oph = pipeline.spec().sketch == SketchKind::Oph;
        let Some(Signed { signature, content, shingles, empty_slots }) = signed else {
            // The ranks of an empty document. A merge with them changes nothing.
            let ranks = ranks.then(|| vec![u64::MAX; k as usize]);
            return Prepared::new(None, Some(0)).with_ranks(ranks).with_empty_slots(oph.then_some(k));
        };
        self.meters.empty_slots(empty_slots, k);
        let made = Made { signature, content: Some(content), kept, page: None };
        Prepared::new(Some(made), Some(shingles))
            .with_ranks(ranks.then(|| pipeline.ranks(scratch).as_slice().to_vec()))
            .with_empty_slots(oph.then_some(empty_slots))
    }

    /// Returns the data to store on disk for a document with this purpose.
    fn keep_for(&self, purpose: Purpose) -> Keep {
        if purpose == Purpose::Insert { self.keep } else { Keep::Signature }
    }

    /// Refuses a signature that the client sent, if ranks or shingles are needed too.
    fn check_given(&self, options: PrepareOptions, verify: Verify) -> Result<()> {
        let refuse = |field, detail: String| Err(CollectionError::Invalid { field, detail });
        if options.ranks {
            let detail =
                "cannot be computed from a signature, which has only some bits of each rank; send the text or the set";
            return refuse("ranks", detail.into());
        }
        if options.purpose != Purpose::Compare && self.collect(options.purpose, verify).shingles {
            let detail = format!(
                "collection `{}` compares or stores shingles, and a signature has none; send the text or the set",
                self.name
            );
            return refuse("signature", detail);
        }
        Ok(())
    }

    /// Refuses a signature that was made with another spec.
    fn check_made_here(&self, fingerprint: Option<Fingerprint>) -> Result<()> {
        let ours = self.fingerprint;
        match fingerprint.or(matches!(self.spec, Spec::External { .. }).then_some(ours)) {
            Some(given) if given == ours => Ok(()),
            Some(given) => Err(CollectionError::SpecMismatch {
                name: self.name.clone(),
                held: format!("the spec with fingerprint {ours} (`{}`)", self.spec),
                asked: format!("this signature has fingerprint {given}"),
            }),
            None => Err(CollectionError::Invalid {
                field: "fingerprint",
                detail: format!(
                    "is required with a signature, to tell which spec made it; the fingerprint of this collection is \
                     {ours}"
                ),
            }),
        }
    }

    /// Refuses a content without words, if the collection finds documents by their n-grams of words.
    fn refuse_unworded(&self, field: &'static str) -> Result<()> {
        if self.grams.is_none() {
            return Ok(());
        }
        let detail = format!(
            "cannot be stored in collection `{}`, which finds items by their n-grams; send `text` or `html`",
            self.name
        );
        Err(CollectionError::Invalid { field, detail })
    }

    /// Accepts a signature if it has the collection's shape.
    fn given(&self, signature: Vec<u8>, text: Option<SignedText>) -> Result<Prepared> {
        let (SignatureShape { k, bits }, bytes) = (self.shape, self.shape.bytes());
        if signature.len() != bytes {
            let given_bytes = signature.len();
            let detail =
                format!("must have {k} slots of {bits} bits, which is {bytes} bytes; it has {given_bytes} bytes");
            return Err(CollectionError::Invalid { field: "signature", detail });
        }
        let empty = is_of_nothing(&signature, self.shape);
        let content = text.map(|text| text.content);
        let made = (!empty).then_some(Made { signature, content, kept: None, page: None });
        Ok(Prepared::new(made, text.map(|text| text.shingles)))
    }
}

/// Whether all slots of a signature are equal, as in the signature of an empty set. If such a signature were stored,
/// all empty documents would be duplicates of each other.
pub(crate) fn is_of_nothing(signature: &[u8], shape: SignatureShape) -> bool {
    let slot_bytes = (shape.bits / 8) as usize;
    signature.chunks(slot_bytes).all(|slot| slot == &signature[..slot_bytes])
}

/// Returns the pipeline of a spec, or `None` for a spec that only takes signatures.
fn pipeline(name: &CollectionName, spec: &Spec, secret: Option<&SecretKey>) -> Result<Option<Pipeline>> {
    let Spec::Text(text) = spec else { return Ok(None) };
    let asked = secret.map(SecretKey::fingerprint);
    if text.key.is_some() && text.key != asked {
        let asked = match asked {
            None => "the configuration has no `hashing.secret`".to_owned(),
            Some(asked) => format!("the configuration has a `hashing.secret` of fingerprint {asked:016x}"),
        };
        return Err(CollectionError::SpecMismatch { name: name.clone(), held: format!("spec `{spec}`"), asked });
    }
    let secret = secret.filter(|_| text.key.is_some());
    let pipeline = Pipeline::new(text, secret).map_err(|error| CollectionError::Store(error.to_string()))?;
    Ok(Some(pipeline))
}

/// Returns the shingle hash of each element of a set.
pub fn element_hashes(pipeline: &Pipeline, elements: &[SetElement]) -> Vec<u64> {
    elements
        .iter()
        .map(|element| match element {
            SetElement::Text(text) => pipeline.element_text(text),
            SetElement::Integer(integer) => pipeline.element_integer(*integer),
        })
        .collect()
}
