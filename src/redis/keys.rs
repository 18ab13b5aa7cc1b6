//! The names of the keys in the cluster, and how postings and ids are grouped into keys. A group is one sorted set or
//! hash of some 48 entries, because the server stores small ones as compact lists.

use hapax_core::{Banding, ContentHash, SignatureShape};
use sha2::{Digest, Sha256};

use super::cluster::Cluster;
use super::protocol::Ref;
use crate::types::DocId;

/// The number of entries that a group should have.
const GROUP: u64 = 48;
/// The number of bits of a score, which distinguishes the keys of a group.
const SCORE_BITS: u32 = 24;

/// The number before the first document. Postings of one band are in the order of their numbers as texts, so numbers
/// have equally many digits.
pub(super) const FIRST: u64 = 1_000_000_000;

/// The keys of one collection.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// The prefix of all keys, with the number of the collection. A collection of the same name that is created later
    /// has another number.
    prefix: String,
    /// The number of groups of each band.
    groups: u64,
}

/// A set of postings: the key of its group, and the score of the postings in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    pub key: Vec<u8>,
    pub slot: u16,
    pub score: u32,
}

impl Keys {
    /// `documents_expected` decides how many groups there are.
    pub(super) fn new(prefix: &str, collection: u64, documents_expected: u64) -> Self {
        Self { prefix: format!("{prefix}:{collection}"), groups: (documents_expected / GROUP).clamp(1, 1 << 32) }
    }

    /// Returns how many groups the postings of one band have.
    pub(super) fn groups(&self) -> u64 {
        self.groups
    }

    pub(super) fn record(&self, at: Ref) -> Vec<u8> {
        format!("{}:r{}", self.prefix, at.0).into_bytes()
    }

    /// Returns the counter of which servers take blocks of document numbers.
    pub(super) fn counter(&self) -> Vec<u8> {
        format!("{}:n", self.prefix).into_bytes()
    }

    /// Returns the counter of stored documents.
    pub(super) fn documents(&self) -> Vec<u8> {
        format!("{}:d", self.prefix).into_bytes()
    }

    /// Returns the keys of the records of the first `count` documents.
    pub(super) fn records(&self, count: u64) -> impl Iterator<Item = Vec<u8>> {
        (1..=count).map(|number| self.record(Ref(FIRST + number)))
    }

    /// Returns the keys of all groups that postings and ids may be in, if there are so many bands.
    pub(super) fn all_groups(&self, bands: u32) -> impl Iterator<Item = Vec<u8>> {
        let kinds = (0..bands).map(|band| format!("b{band}.")).chain(["c.", "i"].map(str::to_owned));
        let all = move |kind: String| {
            (0..self.groups).map(move |group| format!("{}:{kind}{group:x}", self.prefix).into_bytes())
        };
        kinds.flat_map(all)
    }

    /// Returns the hash that has an id, and the field in it.
    pub(super) fn id(&self, id: &DocId) -> (Vec<u8>, [u8; 16]) {
        let digest = Sha256::digest(id.as_str().as_bytes());
        let (group, field) = (u64::from_be_bytes(first(&digest[16..])), first(&digest));
        let (group, _) = self.group_and_score(group);
        (format!("{}:i{group:x}", self.prefix).into_bytes(), field)
    }

    /// Returns the postings of a document: one for each band, and one for its content.
    pub(super) fn postings(
        &self,
        (banding, shape): (Banding, SignatureShape),
        signature: &[u8],
        content: Option<ContentHash>,
    ) -> Vec<Posting> {
        let bands = banding.keys(signature, shape).enumerate();
        let bands = bands.map(|(band, key)| self.posting(&format!("b{band}"), key.0));
        // The first ones are read first, so equal contents are found however many documents share a band.
        content.map(|content| self.posting("c", (content.0 >> 64) as u64)).into_iter().chain(bands).collect()
    }

    fn posting(&self, kind: &str, key: u64) -> Posting {
        let (group, score) = self.group_and_score(key);
        let key = format!("{}:{kind}.{group:x}", self.prefix).into_bytes();
        Posting { slot: Cluster::slot_of(&key), key, score }
    }

    /// Divides all keys into groups of equal size, in their order. The score is the place in the group.
    fn group_and_score(&self, key: u64) -> (u64, u32) {
        let product = u128::from(key) * u128::from(self.groups);
        ((product >> u64::BITS) as u64, (product as u64 >> (u64::BITS - SCORE_BITS)) as u32)
    }
}

fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("a digest has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_of_a_document_can_be_enumerated() {
        let keys = Keys::new("hapax", 7, 48 * 9);
        let groups: Vec<_> = keys.all_groups(3).collect();
        assert_eq!(groups.len(), 5 * 9);
        for number in 0..100_u64 {
            let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let id = keys.id(&DocId::new(number.to_string()).unwrap()).0;
            let postings = ["b0", "b1", "b2", "c"].map(|kind| keys.posting(kind, key).key);
            assert!(postings.into_iter().chain([id]).all(|key| groups.contains(&key)), "{number}");
        }
        assert_eq!(keys.records(2).collect::<Vec<_>>(), [b"hapax:7:r1000000001", b"hapax:7:r1000000002"]);
    }

    #[test]
    fn group_and_score_are_successive_parts_of_a_key() {
        let keys = Keys::new("hapax", 7, 48 * 256);
        let posting = keys.posting("b3", 0xAB12_3456_789A_BCDE);
        assert_eq!((&posting.key[..], posting.score), (&b"hapax:7:b3.ab"[..], 0x12_3456));
        let alone = Keys::new("hapax", 7, 0).posting("b3", 0xAB12_3456_789A_BCDE);
        assert_eq!((&alone.key[..], alone.score), (&b"hapax:7:b3.0"[..], 0xAB_1234));
        let third = Keys::new("hapax", 7, 48 * 3);
        assert_eq!(third.group_and_score(u64::MAX), (2, 0xFF_FFFF));
        assert_eq!(third.group_and_score(u64::MAX / 3 + 1), (1, 0));
    }
}
