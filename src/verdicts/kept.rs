//! Shingles and canonical text of a document <-> what is kept of it beside its signature.
//! Knows nothing of who compares what, or when.

use std::cell::RefCell;
use std::sync::Arc;

use hapax_core::{Collected, Pipeline, ShingleSet, SignScratch};
use tokio::sync::OwnedSemaphorePermit;
use zstd::bulk::{Compressor, Decompressor};

use super::{CollectionError, Result};
use crate::engine::Collection;
use crate::store::Flaw;
use crate::types::{Keep, Payload, PayloadKind};

/// Level of zstd for texts: more halves no text and costs more than all of signing.
const ZSTD_LEVEL: i32 = 3;
/// Bytes that a permit for payloads on their way to the disk stands for.
const ROOM_BYTES: usize = 4096;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    static SCRATCH: RefCell<SignScratch> = RefCell::default();
}

/// What there is of a document beside its signature. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Its distinct shingles.
    pub set: Arc<ShingleSet>,
    /// What goes to the disk; absent for a document that is only looked up.
    pub payload: Option<Arc<Payload>>,
    /// Its share of what may wait for the disk, where it is to be written.
    pub room: Option<Arc<OwnedSemaphorePermit>>,
}

impl Kept {
    /// Of a document whose shingles alone are known: a set, or a text that is only looked up.
    pub(crate) fn of_shingles(set: ShingleSet, keep: Keep) -> Self {
        let payload = (keep != Keep::Signature).then(|| Payload {
            kind: PayloadKind::Shingles,
            shingles: set.len(),
            bytes: set.to_bytes(),
        });
        Self { set: Arc::new(set), payload: payload.map(Arc::new), room: None }
    }

    /// Of a text.
    pub(crate) fn of_text(collected: Collected, keep: Keep) -> Self {
        let Collected { shingles, canonical, .. } = collected;
        let set = ShingleSet::new(shingles);
        if keep != Keep::Text {
            return Self::of_shingles(set, keep);
        }
        let payload = Payload { kind: PayloadKind::Text, shingles: set.len(), bytes: compressed(&canonical) };
        Self { set: Arc::new(set), payload: Some(Arc::new(payload)), room: None }
    }

    /// Bytes of memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.set.bytes() + self.payload.as_ref().map_or(0, |payload| payload.bytes.len())
    }
}

fn compressed(text: &[u8]) -> Vec<u8> {
    COMPRESSOR.with_borrow_mut(|compressor| {
        let compressor = compressor.get_or_insert_with(|| Compressor::new(ZSTD_LEVEL).expect("a level of zstd's"));
        let mut bytes = compressor.compress(text).expect("there is room for what cannot be compressed");
        bytes.shrink_to_fit();
        bytes
    })
}

fn text_bytes(compressed: &[u8]) -> Option<u64> {
    zstd::zstd_safe::get_frame_content_size(compressed).ok()?
}

fn decompressed(bytes: &[u8]) -> Option<String> {
    let len = text_bytes(bytes)?;
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        let decompressor = decompressor.get_or_insert_with(|| Decompressor::new().expect("it has nothing to refuse"));
        String::from_utf8(decompressor.decompress(bytes, usize::try_from(len).ok()?).ok()?).ok()
    })
}

/// The shingles that a payload was made of; a pipeline makes them of a text.
pub(crate) fn set_of(pipeline: Option<&Pipeline>, payload: &Payload) -> std::result::Result<ShingleSet, Flaw> {
    let set = match payload.kind {
        PayloadKind::Shingles => ShingleSet::from_bytes(&payload.bytes, payload.shingles),
        PayloadKind::Text => pipeline.and_then(|pipeline| {
            let text = decompressed(&payload.bytes)?;
            let hashes = SCRATCH.with_borrow_mut(|scratch| pipeline.shingle_set_of_canonical(scratch, &text));
            Some(ShingleSet::new(hashes)).filter(|set| set.len() == payload.shingles)
        }),
    };
    set.ok_or("its payload cannot be read")
}

/// Bytes that a payload is made of; a text that repeats itself is much longer than what is kept of it.
pub(crate) fn unpacked_bytes(payload: &Payload) -> u64 {
    match payload.kind {
        PayloadKind::Shingles => payload.bytes.len() as u64,
        PayloadKind::Text => text_bytes(&payload.bytes).unwrap_or(0),
    }
}

impl Collection {
    /// The shingles that a payload was made of.
    pub(crate) fn set_of(&self, payload: &Payload) -> std::result::Result<ShingleSet, Flaw> {
        set_of(self.pipeline.as_deref(), payload)
    }

    /// Waits until there is room for a payload on its way to the disk.
    pub(crate) async fn payload_room(&self, kept: &Kept) -> Result<Arc<OwnedSemaphorePermit>> {
        let wait = self.limits.commit_queue_wait;
        let units = kept.bytes().div_ceil(ROOM_BYTES).min(room_units(self.limits.commit_payload_bytes_max)) as u32;
        match tokio::time::timeout(wait, Arc::clone(&self.payload_room).acquire_many_owned(units)).await {
            Ok(room) => Ok(Arc::new(room.expect("the room is never closed"))),
            Err(_) => Err(CollectionError::Overloaded {
                detail: "what is to be kept of other documents waits for the disk; nothing was written".into(),
                retry_after: wait.max(std::time::Duration::from_secs(1)),
            }),
        }
    }

    /// Bytes of payloads that wait for the disk.
    pub(crate) fn payload_bytes_waiting(&self) -> usize {
        let free = self.payload_room.available_permits();
        room_units(self.limits.commit_payload_bytes_max).saturating_sub(free) * ROOM_BYTES
    }
}

/// Permits for so many bytes.
pub(crate) fn room_units(bytes: usize) -> usize {
    (bytes / ROOM_BYTES).clamp(1, u32::MAX as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back() {
        for text in ["", "a", &"the same again and again ".repeat(5000)] {
            let bytes = compressed(text.as_bytes());
            assert_eq!(decompressed(&bytes).as_deref(), Some(text));
            assert_eq!(decompressed(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(decompressed(b"no such thing"), None);
    }
}
