//! Turns the shingles and the canonical text of a document into the payload that is stored with its signature, and
//! back. It knows nothing of which documents are compared, or when.

use std::cell::RefCell;
use std::io::Read;
use std::sync::Arc;

use hapax_core::{Collected, Pipeline, ShingleSet, SignScratch};
use zstd::bulk::{Compressor, Decompressor};

use super::grams::{gram_hashes, packed_grams};
use crate::grams::ItemGrams;
use crate::types::{Keep, Payload, PayloadKind, StoredText, json_bytes};

/// The level of zstd for texts. Higher levels would save less than half of the bytes, and would take longer than all of
/// signing.
const ZSTD_LEVEL: i32 = 3;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    static SCRATCH: RefCell<SignScratch> = RefCell::default();
}

/// The data of a document other than its signature. Cloning is cheap.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub set: Arc<ShingleSet>,
    /// The data to store on disk. It is absent for a document that is only looked up.
    pub payload: Option<Arc<Payload>>,
}

impl Kept {
    /// Makes the data from shingles alone: those of a set, or of a text that is not stored itself.
    pub(crate) fn of_shingles(set: ShingleSet, keep: Keep) -> Self {
        let payload = (keep != Keep::Signature).then(|| Payload {
            kind: PayloadKind::Shingles,
            shingles: set.len(),
            bytes: set.to_bytes(),
        });
        Self { set: Arc::new(set), payload: payload.map(Arc::new) }
    }

    /// Makes the data of an item of a containment collection.
    pub(super) fn of_grams(item: &ItemGrams) -> Self {
        let set = ShingleSet::new(item.hashes().to_vec());
        Self { set: Arc::new(set), payload: Some(Arc::new(packed_grams(item))) }
    }

    pub(crate) fn of_text(collected: Collected, keep: Keep) -> Self {
        let Collected { shingles, canonical, .. } = collected;
        let set = ShingleSet::new(shingles);
        if keep != Keep::Text {
            return Self::of_shingles(set, keep);
        }
        let payload = Payload { kind: PayloadKind::Text, shingles: set.len(), bytes: compressed(&canonical) };
        Self { set: Arc::new(set), payload: Some(Arc::new(payload)) }
    }

    /// Returns the same shingles for a document that is only looked up.
    pub(crate) fn without_payload(&self) -> Self {
        Self { set: Arc::clone(&self.set), payload: None }
    }

    /// Returns the bytes of memory that the data takes.
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

/// The longest text that is taken from a file of signatures, in bytes.
const PACKED_TEXT_BYTES_MAX: u64 = 1 << 30;

/// Whether bytes are a text in the compressed form of a payload. The bytes come from a client's file, and the length
/// that they claim may be false. So memory is taken only for text that was really decompressed.
pub(crate) fn is_packed_text(bytes: &[u8]) -> bool {
    let told = text_bytes(bytes).filter(|&told| told <= PACKED_TEXT_BYTES_MAX);
    let (Some(told), Ok(decoder)) = (told, zstd::Decoder::with_buffer(bytes)) else { return false };
    let mut text = Vec::new();
    let read = decoder.single_frame().take(told + 1).read_to_end(&mut text);
    read.is_ok_and(|read| read as u64 == told) && std::str::from_utf8(&text).is_ok()
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

/// Returns the shingles of a payload. If the payload is a text, `pipeline` makes the shingles. `None`: the payload is
/// damaged.
pub(crate) fn set_of(pipeline: Option<&Pipeline>, payload: &Payload) -> Option<ShingleSet> {
    match payload.kind {
        PayloadKind::Shingles => ShingleSet::from_bytes(&payload.bytes, payload.shingles),
        PayloadKind::Grams => gram_hashes(payload).map(ShingleSet::new),
        PayloadKind::Text => {
            Some(ShingleSet::new(hashes_of(pipeline?, payload)?)).filter(|set| set.len() == payload.shingles)
        }
    }
}

/// Returns the distinct shingle hashes of a stored text. `None`: the payload is damaged.
pub(super) fn hashes_of(pipeline: &Pipeline, payload: &Payload) -> Option<Vec<u64>> {
    let text = decompressed(&payload.bytes)?;
    Some(SCRATCH.with_borrow_mut(|scratch| pipeline.shingle_set_of_canonical(scratch, &text)))
}

/// Returns the text of a payload. If the text has more than `bytes_max` bytes as JSON, returns [`StoredText::TooLong`]
/// instead. If the payload is a set of shingles, returns [`StoredText::Absent`]. This takes at most `bytes_max` bytes
/// of memory. `None`: the payload is damaged.
pub(crate) fn text_of(payload: &Payload, bytes_max: usize) -> Option<StoredText> {
    if payload.kind != PayloadKind::Text {
        return Some(StoredText::Absent);
    }
    let bytes = usize::try_from(text_bytes(&payload.bytes)?).ok()?;
    if bytes > bytes_max {
        return Some(StoredText::TooLong { bytes });
    }
    let text = decompressed(&payload.bytes)?;
    let bytes = json_bytes(&text);
    Some(if bytes > bytes_max { StoredText::TooLong { bytes } } else { StoredText::Whole(text) })
}

/// Returns the size of a payload after decompression, in bytes. A repetitive text is much longer than its stored form.
pub(crate) fn unpacked_bytes(payload: &Payload) -> u64 {
    match payload.kind {
        PayloadKind::Shingles | PayloadKind::Grams => payload.bytes.len() as u64,
        PayloadKind::Text => text_bytes(&payload.bytes).unwrap_or(0),
    }
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

    #[test]
    fn a_text_that_does_not_fit_tells_its_length() {
        let payload = |kind, text: &str| Payload { kind, shingles: 1, bytes: compressed(text.as_bytes()) };
        let quoted = "\"a\" ".repeat(100);
        let of = |bytes_max| text_of(&payload(PayloadKind::Text, &quoted), bytes_max);
        assert_eq!(of(600), Some(StoredText::Whole(quoted.clone())));
        // As JSON, each quote has two bytes.
        assert_eq!(of(599), Some(StoredText::TooLong { bytes: 600 }));
        assert_eq!(of(399), Some(StoredText::TooLong { bytes: 400 }));
        assert_eq!(text_of(&payload(PayloadKind::Shingles, "a"), 0), Some(StoredText::Absent));
        let broken = Payload { bytes: b"no such thing".to_vec(), ..payload(PayloadKind::Text, "a") };
        assert_eq!(text_of(&broken, 100), None);
    }
}
