//! Content -> a document ready to be judged. Small contents are signed on the thread that asks, long ones on the pool.
//! Only text and sets are signed; a content of another kind, such as HTML, is to be made into text here first.

use std::sync::Arc;

use bytes::Bytes;
use hapax_core::{IllFormed, Pipeline, SecretKey, SignatureShape, Spec};

use super::prepared::{PrepareOptions, Prepared, Purpose};
use super::signing::Signing;
use super::text_signer::TextSigner;
use crate::cpu::{CpuPool, WhenFull};
use crate::types::{CollectionName, Content, Keep, Verify};
use crate::verdicts::error::Result;

/// Contents up to this size are signed where they are, in some ten microseconds per 2 KB: handing them to another
/// thread and back costs more. Larger ones must not keep the connections of an async thread waiting.
const HERE_BYTES_MAX: usize = 16 * 1024;

/// Prepares the documents of one collection. Cheap to clone. It has what is frozen when a collection is made; `verify`,
/// which can change, comes with each call.
#[derive(Clone)]
pub(crate) struct Preparer {
    signing: Arc<Signing>,
    cpu: CpuPool,
}

impl Preparer {
    /// Refuses a spec with a key that `secret` is not.
    pub(crate) fn new(
        name: &CollectionName,
        spec: &Spec,
        secret: Option<&SecretKey>,
        keep: Keep,
        cpu: CpuPool,
    ) -> Result<Self> {
        Ok(Self { signing: Arc::new(Signing::new(name, spec, secret, keep)?), cpu })
    }

    /// How texts are signed.
    pub(crate) fn spec(&self) -> &Spec {
        self.signing.spec()
    }

    /// The shape of its signatures.
    pub(crate) fn shape(&self) -> SignatureShape {
        self.signing.shape()
    }

    /// What is kept beside signatures.
    pub(crate) fn keep(&self) -> Keep {
        self.signing.keep()
    }

    /// `None` where only signatures are taken.
    pub(crate) fn pipeline(&self) -> Option<&Pipeline> {
        self.signing.pipeline()
    }

    /// Makes a document ready to be judged.
    pub(crate) async fn prepare(&self, content: Content, options: PrepareOptions, verify: Verify) -> Result<Prepared> {
        self.signing.check_ranks(options.ranks)?;
        let bytes = content.bytes();
        match content {
            content if bytes <= HERE_BYTES_MAX => self.signing.prepare(content, options, verify),
            Content::Text(text) => {
                self.text_signer(IllFormed::Refuse, options, verify)?.finish(Bytes::from(text)).await
            }
            content => {
                let signing = Arc::clone(&self.signing);
                self.compute(bytes, options.when_full, move || signing.prepare(content, options, verify)).await
            }
        }
    }

    /// Begins a text that will be given in pieces.
    pub(crate) fn text_signer(
        &self,
        ill_formed: IllFormed,
        options: PrepareOptions,
        verify: Verify,
    ) -> Result<TextSigner> {
        TextSigner::new(&self.signing, &self.cpu, ill_formed, options, verify)
    }

    /// Bytes that a text of so many takes at the most beside itself while it is prepared: its shingles, where they are
    /// kept or compared.
    pub(crate) fn shingle_bytes(&self, purpose: Purpose, text_bytes: usize, verify: Verify) -> usize {
        self.signing.shingle_bytes(purpose, text_bytes, verify)
    }

    /// Works on contents of so many bytes: on this thread where they are few, else on the pool.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        bytes: usize,
        when_full: WhenFull,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if bytes <= HERE_BYTES_MAX {
            return work();
        }
        self.cpu.place(when_full).await?.run_uncut(bytes, work).await
    }
}
