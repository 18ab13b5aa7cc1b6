//! Slot -> signature, `seq` and state, in chunks that never move.
//! One writer at a time (the collection's decision lock sees to it), any number of readers without a lock.
//! A reader takes `seq`, copies, and takes `seq` again: where the two differ the slot was freed or reused meanwhile
//! and the copy is dropped (a sequence lock; Boehm, "Can seqlocks get along with programming language memory
//! models?", 2012). All cells are atomics, so a torn copy is a value to discard, never undefined behaviour.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};

use hapax_core::SignatureShape;

use crate::types::{Seq, Slot};

/// Slots in the first chunk; each further chunk doubles, so 21 chunks hold every slot.
const FIRST_CHUNK_SLOTS: u64 = 1024;
const CHUNKS: usize = 21;
/// Slots are 31 bits wide: the band index uses the last bit for itself.
pub const SLOTS_MAX: u64 = FIRST_CHUNK_SLOTS * ((1 << CHUNKS) - 1);

const LINKED: u8 = 1;

/// What a slot held at the moment it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The document that stands there.
    pub seq: Seq,
    /// The place in the order at which it is removed; `Seq(0)` while nothing removes it.
    pub removed: Seq,
    /// 64 bits of its content hash; 0 where it has none.
    pub content: u64,
}

/// All signatures of a collection.
pub struct Arena {
    words: usize,
    signature_bytes: usize,
    chunks: [OnceLock<Chunk>; CHUNKS],
}

struct Chunk {
    signatures: Box<[AtomicU64]>,
    seqs: Box<[AtomicU64]>,
    removed: Box<[AtomicU64]>,
    contents: Box<[AtomicU64]>,
    flags: Box<[AtomicU8]>,
}

impl Chunk {
    // Zeroed by the allocator, so pages that hold no document yet take no memory.
    fn new(slots: usize, words: usize) -> Self {
        let cells = |count| bytemuck::allocation::zeroed_slice_box::<AtomicU64>(count);
        Self {
            signatures: cells(slots * words),
            seqs: cells(slots),
            removed: cells(slots),
            contents: cells(slots),
            flags: bytemuck::allocation::zeroed_slice_box::<AtomicU8>(slots),
        }
    }
}

impl Arena {
    /// An empty arena for signatures of this shape.
    pub fn new(shape: SignatureShape) -> Self {
        let signature_bytes = shape.bytes();
        Self { words: signature_bytes.div_ceil(8), signature_bytes, chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// 64-bit words a signature takes; the length of the buffers for [`Arena::read`].
    pub fn words(&self) -> usize {
        self.words
    }

    /// Puts a document into a slot that is free. The last store makes it visible.
    pub fn publish(&self, slot: Slot, seq: Seq, signature: &[u8], content: u64, linked: bool) {
        assert_eq!(signature.len(), self.signature_bytes, "signatures of one collection have one length");
        let (level, offset) = locate(slot);
        let chunk = self.chunks[level].get_or_init(|| Chunk::new((FIRST_CHUNK_SLOTS << level) as usize, self.words));
        debug_assert_eq!(chunk.seqs[offset].load(Ordering::Relaxed), 0, "a slot is freed before it is reused");
        // Readers that see any of the stores below must also see that `seq` was 0 in between.
        fence(Ordering::Release);
        let cells = &chunk.signatures[offset * self.words..(offset + 1) * self.words];
        for (cell, bytes) in cells.iter().zip(signature.chunks(8)) {
            cell.store(word(bytes), Ordering::Relaxed);
        }
        chunk.removed[offset].store(0, Ordering::Relaxed);
        chunk.contents[offset].store(content, Ordering::Relaxed);
        chunk.flags[offset].store(if linked { LINKED } else { 0 }, Ordering::Relaxed);
        chunk.seqs[offset].store(seq.0, Ordering::Release);
    }

    /// Says at which place in the order the document goes; `Seq(0)` takes it back.
    pub fn set_removed(&self, slot: Slot, removed: Seq) {
        let (chunk, offset) = self.at(slot).expect("only a published slot is removed");
        chunk.removed[offset].store(removed.0, Ordering::Release);
    }

    /// Empties a slot whose postings are gone.
    pub fn free(&self, slot: Slot) {
        let (chunk, offset) = self.at(slot).expect("only a published slot is freed");
        chunk.seqs[offset].store(0, Ordering::Release);
    }

    /// What stands in the slot, and its signature into `words`; `None` where it is free or changes while being read.
    pub fn read(&self, slot: Slot, words: &mut [u64]) -> Option<Seen> {
        let (chunk, offset) = self.at(slot)?;
        let seq = chunk.seqs[offset].load(Ordering::Acquire);
        if seq == 0 {
            return None;
        }
        let cells = &chunk.signatures[offset * self.words..(offset + 1) * self.words];
        for (word, cell) in words.iter_mut().zip(cells) {
            *word = cell.load(Ordering::Relaxed);
        }
        let removed = chunk.removed[offset].load(Ordering::Relaxed);
        let content = chunk.contents[offset].load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let unchanged = chunk.seqs[offset].load(Ordering::Relaxed) == seq;
        unchanged.then_some(Seen { seq: Seq(seq), removed: Seq(removed), content })
    }

    /// [`Arena::read`] without the signature.
    pub fn peek(&self, slot: Slot) -> Option<Seen> {
        self.read(slot, &mut [])
    }

    /// Whether the document in the slot is a link, which has no postings.
    pub fn is_linked(&self, slot: Slot) -> bool {
        self.at(slot).is_some_and(|(chunk, offset)| chunk.flags[offset].load(Ordering::Relaxed) & LINKED != 0)
    }

    /// Copies the words that hold bytes `from..to` of a signature. Meaningful only while the caller keeps the slot
    /// from being freed, as a posting under its shard's lock does.
    pub fn copy_words(&self, slot: Slot, from: usize, words: &mut [u64]) {
        let (chunk, offset) = self.at(slot).expect("a posting names a published slot");
        let cells = &chunk.signatures[offset * self.words + from..][..words.len()];
        for (word, cell) in words.iter_mut().zip(cells) {
            *word = cell.load(Ordering::Relaxed);
        }
    }

    /// Bytes in use for `slots` slots.
    pub fn bytes_for(&self, slots: u64) -> u64 {
        slots * (self.words as u64 * 8 + 25)
    }

    fn at(&self, slot: Slot) -> Option<(&Chunk, usize)> {
        let (level, offset) = locate(slot);
        Some((self.chunks.get(level)?.get()?, offset))
    }
}

fn locate(slot: Slot) -> (usize, usize) {
    let position = u64::from(slot.0) + FIRST_CHUNK_SLOTS;
    let level = (position.ilog2() - FIRST_CHUNK_SLOTS.ilog2()) as usize;
    (level, (position - (FIRST_CHUNK_SLOTS << level)) as usize)
}

/// Up to eight bytes as a word in memory order, the missing ones zero: a slice of words read as bytes is the signature.
fn word(bytes: &[u8]) -> u64 {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(padded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> SignatureShape {
        SignatureShape { k: 64, bits: 8 }
    }

    #[test]
    fn slots_map_to_chunks_without_gaps() {
        let mut expected = (0, 0);
        for slot in 0..1_000_000 {
            assert_eq!(locate(Slot(slot)), expected, "slot {slot}");
            expected.1 += 1;
            if expected.1 == (FIRST_CHUNK_SLOTS as usize) << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(locate(Slot(SLOTS_MAX as u32 - 1)).0, CHUNKS - 1);
    }

    #[test]
    fn a_freed_slot_reads_as_nothing_and_can_be_reused() {
        let arena = Arena::new(shape());
        let mut words = vec![0; arena.words()];
        arena.publish(Slot(5), Seq(7), &[1; 64], 9, false);
        assert_eq!(arena.read(Slot(5), &mut words), Some(Seen { seq: Seq(7), removed: Seq(0), content: 9 }));
        assert_eq!(words, vec![0x0101_0101_0101_0101; 8]);
        arena.set_removed(Slot(5), Seq(8));
        assert_eq!(arena.peek(Slot(5)).unwrap().removed, Seq(8));
        arena.free(Slot(5));
        assert_eq!(arena.peek(Slot(5)), None);
        arena.publish(Slot(5), Seq(9), &[2; 64], 0, true);
        assert_eq!(arena.peek(Slot(5)), Some(Seen { seq: Seq(9), removed: Seq(0), content: 0 }));
        assert!(arena.is_linked(Slot(5)));
    }

    /// A reader never takes the words of one document under the `seq` of another.
    #[test]
    fn readers_drop_a_slot_that_changes_under_them() {
        let arena = Arena::new(shape());
        let rounds = 200_000_u64;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for seq in 1..rounds {
                    arena.publish(Slot(0), Seq(seq), &[seq as u8; 64], seq, false);
                    arena.free(Slot(0));
                }
                arena.publish(Slot(0), Seq(rounds), &[rounds as u8; 64], rounds, false);
            });
            let mut words = vec![0; arena.words()];
            loop {
                if let Some(seen) = arena.read(Slot(0), &mut words) {
                    assert_eq!(seen.content, seen.seq.0);
                    assert!(words.iter().all(|&word| word == word.to_le_bytes()[0] as u64 * 0x0101_0101_0101_0101));
                    assert_eq!(words[0] as u8, seen.seq.0 as u8);
                    if seen.seq.0 == rounds {
                        break;
                    }
                }
            }
        });
    }
}
