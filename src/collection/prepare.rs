//! Content -> what a decision needs of it: signature, content hash, shingle count.
//! The processor's share of a request, done before any lock is taken.

use std::cell::RefCell;
use std::time::Instant;

use hapax_core::{ContentHash, Pipeline, Scratch, Signed, Spec};

use super::{Collection, CollectionError, Result};
use crate::store;
use crate::types::{Content, SetElement};

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// A document, ready to be judged. `made` is absent for an empty one.
#[derive(Debug)]
pub struct Prepared {
    pub(super) made: Option<Made>,
    pub(super) shingles: Option<u64>,
}

/// What a document that is not empty was made into.
#[derive(Debug)]
pub(super) struct Made {
    pub signature: Vec<u8>,
    /// Absent for a given signature.
    pub content: Option<ContentHash>,
}

impl Made {
    /// The part of the content hash that memory keeps; 0 says there is none.
    pub(super) fn content_prefix(&self) -> u64 {
        self.content.map_or(0, |content| store::content_prefix(content).max(1))
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
}

impl Collection {
    /// Signs a content, or takes its signature.
    pub(super) fn prepare_now(&self, content: Content) -> Result<Prepared> {
        match content {
            Content::Text(text) => {
                let pipeline = self.pipeline_for("text")?;
                let started = Instant::now();
                let signed = SCRATCH.with_borrow_mut(|scratch| pipeline.sign(scratch, &text));
                self.meters.sign_seconds.record(started.elapsed());
                Ok(Prepared::from_signed(signed))
            }
            Content::Set(elements) => {
                let pipeline = self.pipeline_for("set")?;
                let mut hashes = element_hashes(pipeline, &elements);
                let signed = SCRATCH.with_borrow_mut(|scratch| pipeline.sign_set(scratch, &mut hashes));
                Ok(Prepared::from_signed(signed))
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
                let made = (!empty).then_some(Made { signature: bytes, content: None });
                Ok(Prepared { made, shingles: None })
            }
        }
    }

    /// The sorted distinct shingle hashes of a text or set; `None` for a given signature.
    pub(super) fn shingle_set(&self, content: &Content) -> Result<Option<Vec<u64>>> {
        Ok(match content {
            Content::Text(text) => {
                let pipeline = self.pipeline_for("text")?;
                Some(SCRATCH.with_borrow_mut(|scratch| pipeline.shingle_set(scratch, text)))
            }
            Content::Set(elements) => {
                let mut hashes = element_hashes(self.pipeline_for("set")?, elements);
                hashes.sort_unstable();
                hashes.dedup();
                Some(hashes)
            }
            Content::Signature { .. } => None,
        })
    }

    fn pipeline_for(&self, field: &'static str) -> Result<&Pipeline> {
        self.pipeline.as_ref().ok_or_else(|| CollectionError::Invalid {
            field,
            detail: format!("collection `{}` is `{}` and takes only given signatures", self.name, self.spec),
        })
    }
}

impl Prepared {
    fn from_signed(signed: Option<Signed>) -> Self {
        match signed {
            None => Self { made: None, shingles: Some(0) },
            Some(Signed { signature, content, shingles, .. }) => {
                Self { made: Some(Made { signature, content: Some(content) }), shingles: Some(shingles) }
            }
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
