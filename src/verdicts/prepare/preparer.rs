//! Prepares documents. Small contents are signed on the calling thread, long ones on the pool. The text of a page is
//! extracted before it is signed, on the pool except for tiny pages. A signature that a client sends is only checked.

use std::sync::Arc;

use bytes::Bytes;
use hapax_core::{IllFormed, Pipeline, SecretKey, SignatureShape, Spec};

use super::prepared::{PrepareOptions, Prepared, Purpose};
use super::signing::Signing;
use super::text_signer::TextSigner;
use crate::cpu::{CpuPool, WhenFull};
use crate::extract::Page;
use crate::types::{CollectionName, Content, Extract, Html, Keep, Verify};
use crate::verdicts::error::Result;

/// Contents up to this size are signed on the calling thread. Signing 2 KB takes about ten microseconds. Passing such a
/// content to another thread and back would take longer. While a larger content is signed on an async thread, the other
/// connections of that thread would have to wait.
const HERE_BYTES_MAX: usize = 16 * 1024;
/// The largest page that is signed on the calling thread. The limit is lower than for texts, because extracting a text
/// takes ten times as long as signing it.
const PAGE_HERE_BYTES_MAX: usize = 1024;

/// Prepares the documents of one collection. Cloning is cheap. It contains the settings that are frozen when a
/// collection is created. `verify` can change, so each call passes it.
#[derive(Clone)]
pub(crate) struct Preparer {
    signing: Arc<Signing>,
    cpu: CpuPool,
}

impl Preparer {
    /// Fails if the spec has a key, and `secret` is absent or another key.
    pub(crate) fn new(
        name: &CollectionName,
        spec: &Spec,
        secret: Option<&SecretKey>,
        keep: Keep,
        extract: Extract,
        cpu: CpuPool,
    ) -> Result<Self> {
        Ok(Self { signing: Arc::new(Signing::new(name, spec, secret, keep, extract)?), cpu })
    }

    /// The spec that texts are signed with.
    pub(crate) fn spec(&self) -> &Spec {
        self.signing.spec()
    }

    /// The shape of its signatures.
    pub(crate) fn shape(&self) -> SignatureShape {
        self.signing.shape()
    }

    /// The data that is stored with signatures.
    pub(crate) fn keep(&self) -> Keep {
        self.signing.keep()
    }

    /// `None` if the collection only takes signatures.
    pub(crate) fn pipeline(&self) -> Option<&Pipeline> {
        self.signing.pipeline()
    }

    /// Prepares a document on this thread, however long it is.
    pub(crate) fn prepare_here(&self, content: Content, options: PrepareOptions, verify: Verify) -> Result<Prepared> {
        self.signing.prepare(content, options, verify)
    }

    /// Prepares a document.
    pub(crate) async fn prepare(&self, content: Content, options: PrepareOptions, verify: Verify) -> Result<Prepared> {
        self.signing.check_ranks(options.ranks)?;
        let here_bytes_max = if let Content::Html(_) = content { PAGE_HERE_BYTES_MAX } else { HERE_BYTES_MAX };
        if content.bytes() <= here_bytes_max {
            return self.signing.prepare(content, options, verify);
        }
        // This future is boxed, so that the future of a short content stays small.
        Box::pin(self.prepare_long(content, options, verify)).await
    }

    async fn prepare_long(&self, content: Content, options: PrepareOptions, verify: Verify) -> Result<Prepared> {
        let bytes = content.bytes();
        match content {
            Content::Text(text) => {
                self.text_signer(IllFormed::Refuse, options, verify)?.finish(Bytes::from(text)).await
            }
            content => {
                let signing = Arc::clone(&self.signing);
                self.on_pool(bytes, options.when_full, move || signing.prepare(content, options, verify)).await
            }
        }
    }

    /// Extracts the text of a page, on the pool. `extract` overrides the setting of the collection.
    pub(crate) async fn extract(&self, html: Html, extract: Option<Extract>, when_full: WhenFull) -> Result<Page> {
        let signing = Arc::clone(&self.signing);
        let (bytes, extract) = (html.markup.len(), extract.unwrap_or(signing.extracts()));
        self.on_pool(bytes, when_full, move || Ok(signing.extract(&html, extract))).await
    }

    /// Begins a text that is given in pieces.
    pub(crate) fn text_signer(
        &self,
        ill_formed: IllFormed,
        options: PrepareOptions,
        verify: Verify,
    ) -> Result<TextSigner> {
        TextSigner::new(&self.signing, &self.cpu, ill_formed, options, verify)
    }

    /// Returns an upper bound on the memory that the shingles of a text of this length take while the text is prepared,
    /// in bytes. It is 0 if the shingles are not needed.
    pub(crate) fn shingle_bytes(&self, purpose: Purpose, text_bytes: usize, verify: Verify) -> usize {
        self.signing.shingle_bytes(purpose, text_bytes, verify)
    }

    /// Does work on a content of this length: on this thread if it is short, else on the pool.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        bytes: usize,
        when_full: WhenFull,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if bytes <= HERE_BYTES_MAX {
            return work();
        }
        self.on_pool(bytes, when_full, work).await
    }

    async fn on_pool<T: Send + 'static>(
        &self,
        bytes: usize,
        when_full: WhenFull,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.cpu.place(when_full).await?.run_uncut(bytes, work).await?
    }
}
