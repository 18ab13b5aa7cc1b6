//! The n-grams of an item <-> the payload that a containment collection stores. The payload has the number of tokens of
//! each n-gram in one byte. If that is below n, the hash of the item's first tokens follows. Then come the hashes of the
//! n-grams, ascending, 8 bytes LE each.

use hapax_core::{Shingling, Spec};

use crate::grams::{GramSize, ItemGrams};
use crate::types::{IndexKind, Payload, PayloadKind};

const HASH_BYTES: usize = size_of::<u64>();

/// Returns the n of a containment collection. `None` if the spec is that of another collection, or has no valid n.
pub(crate) fn gram_size(spec: &Spec) -> Option<GramSize> {
    match spec {
        Spec::Text(text) if IndexKind::of(spec) == IndexKind::Containment => match text.shingling {
            Shingling::Word(tokens) => GramSize::new(tokens.into()),
            Shingling::Char(_) => None,
        },
        _ => None,
    }
}

/// Makes the payload of an item.
pub(crate) fn packed_grams(item: &ItemGrams) -> Payload {
    let mut bytes = Vec::with_capacity(1 + (item.hashes().len() + 1) * HASH_BYTES);
    bytes.push(item.tokens() as u8);
    item.start().iter().chain(item.hashes()).for_each(|hash| bytes.extend_from_slice(&hash.to_le_bytes()));
    Payload { kind: PayloadKind::Grams, shingles: item.hashes().len() as u64, bytes }
}

/// Returns the item of a payload. `None`: the payload is damaged, or is of another kind.
pub(crate) fn unpacked_grams(size: GramSize, payload: &Payload) -> Option<ItemGrams> {
    let (tokens, start, hashes) = parts(payload)?;
    ItemGrams::from_parts(size, tokens, start, hashes)
}

/// Returns the hashes of a payload's n-grams. `None` in the same cases.
pub(super) fn gram_hashes(payload: &Payload) -> Option<Vec<u64>> {
    parts(payload).map(|(.., hashes)| hashes)
}

fn parts(payload: &Payload) -> Option<(usize, Option<u64>, Vec<u64>)> {
    let (&tokens, rest) = payload.bytes.split_first().filter(|_| payload.kind == PayloadKind::Grams)?;
    let (words, odd) = rest.as_chunks::<HASH_BYTES>();
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
    // Only an item that is one n-gram has a start.
    let has_start = words.len() as u64 == payload.shingles + 1;
    let start = has_start.then(|| words.next()).flatten();
    (odd.is_empty() && words.len() as u64 == payload.shingles).then(|| (tokens.into(), start, words.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_every_length_come_back_and_damage_is_seen() {
        let size = GramSize::new(13).unwrap();
        for tokens in 8..40 {
            let hashes: Vec<u64> = (0..tokens).map(|token| hapax_core::fmix64(token % 19 + 1)).collect();
            let item = ItemGrams::new(size, &hashes).unwrap();
            let payload = packed_grams(&item);
            assert_eq!(unpacked_grams(size, &payload), Some(item), "{tokens} tokens");
            let damaged = |bytes: &[u8]| unpacked_grams(size, &Payload { bytes: bytes.to_vec(), ..payload.clone() });
            let whole = &payload.bytes[..];
            assert_eq!(damaged(&whole[..whole.len() - 1]), None);
            assert_eq!(damaged(&whole[1..]), None);
            assert_eq!(damaged(&[&[7], &whole[1..]].concat()), None, "fewer tokens than an item has");
            assert_eq!(damaged(&[]), None);
            let other = Payload { kind: PayloadKind::Shingles, ..payload.clone() };
            assert_eq!(unpacked_grams(size, &other), None);
        }
    }
}
