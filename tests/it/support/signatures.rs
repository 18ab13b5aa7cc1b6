//! Given signatures that share one band and nothing else, or that share each band with many others.

use base64::Engine;
use serde_json::{Value, json};

pub const BANDS: usize = 21;
const ROWS: usize = 6;

/// Returns the settings of a collection that takes these signatures.
pub fn settings() -> Value {
    json!({"spec": "external:test:128x8", "banding": {"bands": BANDS, "rows": ROWS}})
}

/// Returns a signature that differs from all others, even in the first band.
pub fn unlike_others(number: u64) -> Vec<u8> {
    let mut words = hapax_core::SplitMix64::new(number);
    (0..128 / 8).flat_map(|_| words.next_u64().to_le_bytes()).collect()
}

/// Returns a signature that differs from all others except in the first band.
pub fn boilerplate(number: u64) -> Vec<u8> {
    let mut bytes = unlike_others(number);
    bytes[..ROWS].fill(7);
    bytes
}

/// Returns a signature that shares each band with a third of the others, but only a few bands with any one of them.
pub fn crowded(number: u64) -> Vec<u8> {
    let mut random = hapax_core::SplitMix64::new(number);
    let mut bytes = unlike_others(number);
    for band in bytes.chunks_mut(ROWS).take(BANDS) {
        band.fill((random.next_u64() % 3) as u8);
    }
    bytes
}

/// Returns a document that has a signature.
pub fn document(id: &str, signature: &[u8]) -> Value {
    json!({"id": id, "signature": base64::engine::general_purpose::STANDARD.encode(signature)})
}
