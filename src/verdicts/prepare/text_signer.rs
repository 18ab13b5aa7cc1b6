//! Prepares a text that comes in pieces. A long text is signed slice by slice, so that other work gets its turn and the
//! whole text is never in memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hapax_core::{Collect, IllFormed, Pipeline, SignScratch};
use parking_lot::Mutex;

use super::prepared::{PrepareOptions, Prepared};
use super::signing::Signing;
use crate::cpu::{CpuPool, QueuePlace, WhenFull};
use crate::types::Verify;
use crate::verdicts::error::Result;

/// The bytes of text that are signed on a thread of the pool before other work gets its turn. Most slices take less
/// than a millisecond. If each character of the text folds to eighteen characters, a slice takes 20 ms.
const SLICE_BYTES: usize = 64 * 1024;
/// The largest number of unused scratches that are kept for later texts.
const SPARE_SCRATCHES_MAX: usize = 16;

/// A text of any length that is given in pieces. A piece may begin or end anywhere, even inside a character. Each piece
/// is signed on the pool. Between pieces the text occupies no thread, so a client may be slow.
pub struct TextSigner {
    signing: Arc<Signing>,
    pipeline: Arc<Pipeline>,
    cpu: CpuPool,
    scratch: Lent,
    ill_formed: IllFormed,
    options: PrepareOptions,
    collect: Collect,
    /// Whether a piece has been signed.
    begun: bool,
    /// The number of bytes signed so far.
    bytes: usize,
    /// Time spent signing, without waiting.
    spent: Duration,
}

impl TextSigner {
    pub(super) fn new(
        signing: &Arc<Signing>,
        cpu: &CpuPool,
        ill_formed: IllFormed,
        options: PrepareOptions,
        verify: Verify,
    ) -> Result<Self> {
        signing.check_ranks(options.ranks)?;
        let (pipeline, collect) = (Arc::clone(signing.pipeline_for("text")?), signing.collect(options.purpose, verify));
        let mut scratch = Lent::new();
        // Begins the text in the scratch. Each piece resumes it.
        pipeline.signer(scratch.scratch()).collect(collect);
        Ok(Self {
            signing: Arc::clone(signing),
            pipeline,
            cpu: cpu.clone(),
            scratch,
            ill_formed,
            options,
            collect,
            begun: false,
            bytes: 0,
            spent: Duration::ZERO,
        })
    }

    /// Signs the next piece, in slices.
    pub async fn push(mut self, mut piece: Bytes) -> Result<Self> {
        while !piece.is_empty() {
            let slice = piece.split_to(piece.len().min(SLICE_BYTES));
            self = self.place().await?.run(move || self.push_now(&slice)).await??;
        }
        Ok(self)
    }

    /// Signs the last piece, which may be empty, and returns the document.
    pub async fn finish(mut self, mut piece: Bytes) -> Result<Prepared> {
        let rest = piece.split_off(piece.len().saturating_sub(SLICE_BYTES));
        self = self.push(piece).await?;
        let (place, bytes) = (self.place().await?, self.uncut_bytes() + rest.len());
        place.run_uncut(bytes, move || self.push_now(&rest)?.finish_now()).await?
    }

    /// Returns the size of the last step in bytes: sorting the shingles, which cannot be divided.
    fn uncut_bytes(&self) -> usize {
        if self.collect.shingles { self.bytes } else { 0 }
    }

    async fn place(&self) -> Result<QueuePlace> {
        // After a part of a text was signed, the text is not refused, because this work would be lost.
        let when_full = match self.options.when_full {
            WhenFull::Refuse if self.begun => WhenFull::Wait,
            when_full => when_full,
        };
        Ok(self.cpu.place(when_full).await?)
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
        let spent = self.spent + started.elapsed();
        let prepared = self.signing.signed(&self.pipeline, signed, spent, self.scratch.scratch(), self.options);
        Ok(prepared.with_content_bytes(self.bytes))
    }
}

/// A scratch that moves between threads, so it cannot be thread-local. When this value is dropped, the scratch is kept
/// for a later text.
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
        // If the signing stopped before the end of the text, the scratch still holds data of that text, and this memory
        // counts toward no limit.
        self.scratch().forget();
        let mut spare = SPARE_SCRATCHES.lock();
        if spare.len() < SPARE_SCRATCHES_MAX {
            spare.extend(self.0.take());
        }
    }
}
