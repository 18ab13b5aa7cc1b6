//! Document number -> synthetic signature. A seed has the same signatures in every program that includes this file.
//! Slots have 8 bits. Three documents in ten are near-duplicates of an earlier document: each slot is copied from the
//! earlier document, or replaced with a probability from 0 to 0.2. One near-duplicate in sixteen is equal to its
//! original. Knows nothing of measurements.

/// The number of near-duplicates in ten documents or queries.
const COPIES_IN_TEN: u64 = 3;
/// One near-duplicate in this many is equal to its original.
const EQUAL_ONE_IN: u64 = 16;
/// The greatest probability of replacing a slot, in 256ths: similarities are from 0.80 to 1.
const REDRAW_MAX: u64 = 51;
/// The value in the rows of the boilerplate band.
const BOILERPLATE: u8 = 0xB0;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The kind of document that a number refers to. Each kind has its own sequence of signatures.
#[derive(Clone, Copy)]
enum Kind {
    Stored = 1,
    Query = 2,
    Hot = 3,
}

/// All documents and queries of a seed.
#[derive(Clone, Copy)]
pub(crate) struct Documents {
    pub(crate) seed: u64,
}

impl Documents {
    /// Makes the signature of a stored document. A shorter signature is the beginning of a longer one.
    pub(crate) fn stored(self, number: u64, signature: &mut [u8]) {
        self.write(Kind::Stored, number, number, signature);
    }

    /// Makes a query against the first `stored` documents. A query is a near-duplicate of one of them as often as a
    /// document is a near-duplicate of an earlier document.
    pub(crate) fn query(self, number: u64, stored: u64, signature: &mut [u8]) {
        self.write(Kind::Query, number, stored, signature);
    }

    /// Makes a document unlike all others except in its first `rows` slots, which all such documents share.
    pub(crate) fn hot(self, number: u64, rows: usize, signature: &mut [u8]) {
        draw(self.key(Kind::Hot, number), signature);
        boilerplate(&mut signature[..rows]);
    }

    fn write(self, kind: Kind, number: u64, earlier: u64, signature: &mut [u8]) {
        let key = self.key(kind, number);
        match copied(key, earlier) {
            None => draw(key, signature),
            Some(earlier) => {
                draw(self.key(Kind::Stored, self.original(earlier)), signature);
                redraw(mix(key ^ GOLDEN), signature);
            }
        }
    }

    /// Returns the original of a document. Copies are made only of originals, so that their similarity is the one that
    /// was drawn.
    fn original(self, mut number: u64) -> u64 {
        // The loop ends: a copied document has a smaller number, and document 0 copies nothing.
        while let Some(earlier) = copied(self.key(Kind::Stored, number), number) {
            number = earlier;
        }
        number
    }

    fn key(self, kind: Kind, number: u64) -> u64 {
        mix(mix(self.seed ^ (kind as u64) << 56).wrapping_add(number.wrapping_mul(GOLDEN)))
    }
}

/// Fills these rows with the value that all hot documents share.
pub(crate) fn boilerplate(rows: &mut [u8]) {
    rows.fill(BOILERPLATE);
}

/// Returns the document that the document with this key copies, one of the first `earlier`. `None` if it is no copy.
fn copied(key: u64, earlier: u64) -> Option<u64> {
    (earlier > 0 && key % 10 < COPIES_IN_TEN).then(|| ((key >> 32) * earlier) >> 32)
}

fn draw(key: u64, signature: &mut [u8]) {
    for (word, slots) in signature.chunks_mut(8).enumerate() {
        slots.copy_from_slice(&counter(key, word as u64).to_le_bytes()[..slots.len()]);
    }
}

fn redraw(key: u64, signature: &mut [u8]) {
    let of_256 = if key.is_multiple_of(EQUAL_ONE_IN) { 0 } else { (key >> 32) % (REDRAW_MAX + 1) };
    for (word, slots) in signature.chunks_mut(8).enumerate() {
        let chances = counter(key, 2 * word as u64).to_le_bytes();
        let values = counter(key, 2 * word as u64 + 1).to_le_bytes();
        for ((slot, chance), value) in slots.iter_mut().zip(chances).zip(values) {
            *slot = if u64::from(chance) < of_256 { value } else { *slot };
        }
    }
}

/// SplitMix64 by number (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn counter(key: u64, number: u64) -> u64 {
    mix(key.wrapping_add((number + 1).wrapping_mul(GOLDEN)))
}

fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
