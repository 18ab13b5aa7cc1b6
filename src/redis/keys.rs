//! The names of the keys in the cluster, and how postings and ids are grouped into keys. A group is one hash, or
//! hash of some 48 entries, because the server stores small ones as compact lists.

use hapax_core::{Banding, ContentHash, SignatureShape};
use sha2::{Digest, Sha256};

use super::cluster::{Cluster, put_decimal};
use super::protocol::Ref;
use crate::types::DocId;

/// The number of entries that a group should have.
const GROUP: u64 = 48;
/// The number of bits of a score, which distinguishes the keys of a group. Redis keeps a number of 24 bits in four bytes,
/// and one of these bits is the sign.
const SCORE_BITS: u32 = 24;
const SCORE_MIDDLE: i64 = 1 << (SCORE_BITS - 1);
/// The number of bytes of a digest of an id. Each of them is stored for each document.
const FIELD_BYTES: usize = 12;

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

/// The field of an id in its hash: the first bytes of a digest.
pub(super) type IdField = [u8; FIELD_BYTES];

/// A set of postings: the key of its group, and the score of the postings in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    pub key: Vec<u8>,
    pub slot: u16,
    pub score: i32,
}

/// The group of a posting and its score in one number. Places in order are groups in order, each with its scores in
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(u64);

impl Place {
    pub(super) fn group(self) -> u64 {
        self.0 >> SCORE_BITS
    }

    pub(super) fn score(self) -> i32 {
        ((self.0 & ((1 << SCORE_BITS) - 1)) as i64 - SCORE_MIDDLE) as i32
    }
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
        let mut key = self.begun(24);
        key.extend_from_slice(b":r");
        put_decimal(&mut key, at.0);
        key
    }

    /// Returns the counter of which servers take blocks of document numbers.
    pub(super) fn counter(&self) -> Vec<u8> {
        format!("{}:n", self.prefix).into_bytes()
    }

    /// Returns the counter of stored documents.
    pub(super) fn documents(&self) -> Vec<u8> {
        format!("{}:d", self.prefix).into_bytes()
    }

    /// Returns the key that names the server that walks through the collection.
    pub(super) fn walker(&self) -> Vec<u8> {
        format!("{}:w", self.prefix).into_bytes()
    }

    /// Returns the keys of the records of the first `count` documents.
    pub(super) fn records(&self, count: u64) -> impl Iterator<Item = Vec<u8>> {
        (1..=count).map(|number| self.record(Ref(FIRST + number)))
    }

    /// Returns the keys of all groups that postings and ids may be in, if there are so many bands.
    pub(super) fn all_groups(&self, bands: u32) -> impl Iterator<Item = Vec<u8>> {
        self.groups_after(bands, 0)
    }

    /// Returns some of [`all_groups`](Self::all_groups), from this place on.
    pub(super) fn groups_from(&self, bands: u32, place: usize, count: usize) -> Vec<Vec<u8>> {
        self.groups_after(bands, place as u64).take(count).collect()
    }

    fn groups_after(&self, bands: u32, place: u64) -> impl Iterator<Item = Vec<u8>> {
        // Each group is a hash and a sorted set.
        let each = 2 * self.groups;
        let kinds: Vec<_> = kinds_of_groups(bands).collect();
        (place..kinds.len() as u64 * each).map(move |place| {
            let group = format!("{}:{}{:x}", self.prefix, kinds[(place / each) as usize], place % each / 2);
            if place % 2 == 0 { Self::more(group.as_bytes()) } else { group.into_bytes() }
        })
    }

    /// Returns the sorted set of a group of postings.
    pub(super) fn more(group: &[u8]) -> Vec<u8> {
        [group, b"+"].concat()
    }

    /// Returns the hash that has an id, and the field in it.
    pub(super) fn id(&self, id: &DocId) -> (Vec<u8>, IdField) {
        let (group, field) = self.id_place(id);
        (self.ids(group), field)
    }

    /// Returns the group of an id, and its field in the group.
    pub(super) fn id_place(&self, id: &DocId) -> (u64, IdField) {
        let digest = Sha256::digest(id.as_str().as_bytes());
        let (group, _) = self.group_and_score(u64::from_be_bytes(first(&digest[16..])));
        (group, first(&digest))
    }

    /// Returns the hash of a group of ids.
    pub(super) fn ids(&self, group: u64) -> Vec<u8> {
        format!("{}:i{group:x}", self.prefix).into_bytes()
    }

    /// Returns the postings of a document: one for each band, and one for its content.
    pub(super) fn postings(
        &self,
        (banding, shape): (Banding, SignatureShape),
        signature: &[u8],
        content: Option<ContentHash>,
    ) -> Vec<Posting> {
        let bands = banding.keys(signature, shape).zip(0..).map(|(key, band)| self.posting(Some(band), key.0));
        // The first ones are read first, so equal contents are found however many documents share a band.
        content.map(|content| self.posting(None, content_key(content))).into_iter().chain(bands).collect()
    }

    /// Returns the place of the posting of a band key.
    pub(super) fn place(&self, key: u64) -> Place {
        let (group, score) = self.group_and_score(key);
        Place(group << SCORE_BITS | (i64::from(score) + SCORE_MIDDLE) as u64)
    }

    /// Returns the posting of a band, or of a content.
    fn posting(&self, band: Option<u64>, key: u64) -> Posting {
        let (group, score) = self.group_and_score(key);
        let key = self.group(band, group);
        Posting { slot: Cluster::slot_of(&key), key, score }
    }

    /// Returns the hash of a group of postings of a band, or of contents.
    pub(super) fn group(&self, band: Option<u64>, group: u64) -> Vec<u8> {
        // A document has many keys. The formatter of texts would take several times as long.
        let mut key = self.begun(32);
        match band {
            Some(band) => {
                key.extend_from_slice(b":b");
                put_decimal(&mut key, band);
            }
            None => key.extend_from_slice(b":c"),
        }
        key.push(b'.');
        put_hex(&mut key, group);
        key
    }

    /// Returns the prefix, with room for `more` bytes.
    fn begun(&self, more: usize) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.prefix.len() + more);
        key.extend_from_slice(self.prefix.as_bytes());
        key
    }

    /// Divides all keys into groups of equal size, in their order. The score is the place in the group; 0 is its middle.
    fn group_and_score(&self, key: u64) -> (u64, i32) {
        let product = u128::from(key) * u128::from(self.groups);
        let place = (product as u64 >> (u64::BITS - SCORE_BITS)) as i32;
        ((product >> u64::BITS) as u64, place - SCORE_MIDDLE as i32)
    }
}

/// Returns the key by which equal contents are found.
pub(super) fn content_key(content: ContentHash) -> u64 {
    (content.0 >> 64) as u64
}

/// Returns the beginnings of the keys of groups, behind the prefix.
fn kinds_of_groups(bands: u32) -> impl Iterator<Item = String> {
    (0..bands).map(|band| format!("b{band}.")).chain(["c.", "i"].map(str::to_owned))
}

fn put_hex(key: &mut Vec<u8>, number: u64) {
    let digits = number.checked_ilog2().map_or(1, |log| log / 4 + 1);
    key.extend((0..digits).rev().map(|place| b"0123456789abcdef"[(number >> (4 * place) & 0xF) as usize]));
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
        assert_eq!(groups.len(), 2 * 5 * 9);
        for place in [0, 1, 17, 18, 50, 88, 90] {
            let some: Vec<_> = groups.iter().skip(place).take(20).cloned().collect();
            assert_eq!(keys.groups_from(3, place, 20), some, "{place}");
        }
        for number in 0..100_u64 {
            let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let id = keys.id(&DocId::new(number.to_string()).unwrap()).0;
            let postings = [Some(0), Some(1), Some(2), None].map(|band| keys.posting(band, key).key);
            assert!(postings.into_iter().chain([id]).all(|key| groups.contains(&key)), "{number}");
        }
        assert_eq!(keys.records(2).collect::<Vec<_>>(), [b"hapax:7:r1000000001", b"hapax:7:r1000000002"]);
    }

    #[test]
    fn numbers_are_written_as_the_formatter_writes_them() {
        for number in [0, 1, 9, 10, 15, 16, 99, 100, 255, 256, 1_000_000_007, u64::MAX] {
            let written = |put: fn(&mut Vec<u8>, u64)| {
                let mut key = Vec::new();
                put(&mut key, number);
                String::from_utf8(key).unwrap()
            };
            assert_eq!((written(put_decimal), written(put_hex)), (number.to_string(), format!("{number:x}")));
        }
    }

    #[test]
    fn group_and_score_are_successive_parts_of_a_key() {
        let keys = Keys::new("hapax", 7, 48 * 256);
        let posting = keys.posting(Some(3), 0xAB12_3456_789A_BCDE);
        assert_eq!((&posting.key[..], posting.score), (&b"hapax:7:b3.ab"[..], 0x12_3456 - 0x80_0000));
        let alone = Keys::new("hapax", 7, 0).posting(Some(3), 0xAB12_3456_789A_BCDE);
        assert_eq!((&alone.key[..], alone.score), (&b"hapax:7:b3.0"[..], 0xAB_1234 - 0x80_0000));
        for (group, score) in [(0, -0x80_0000), (0xAB, 0x12_3456 - 0x80_0000), (255, 0x7F_FFFF)] {
            let key = group << 56 | ((score + 0x80_0000) as u64) << 32 | 0x789A_BCDE;
            let place = keys.place(key);
            assert_eq!((place.group(), place.score()), (group, score));
        }
        let third = Keys::new("hapax", 7, 48 * 3);
        assert_eq!(third.group_and_score(u64::MAX), (2, 0x7F_FFFF));
        assert_eq!(third.group_and_score(u64::MAX / 3 + 1), (1, -0x80_0000));
    }
}
