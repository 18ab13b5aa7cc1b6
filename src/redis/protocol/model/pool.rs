//! The parts of states, each kept once. A state is then a few numbers, which are compared exactly: no state is taken for
//! another one because their hashes are equal.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::rc::Rc;

/// The first number that is a token. Smaller ones are numbers of documents.
pub(super) const TOKENS: u64 = 100;
/// How many tokens of one server may be in a state at the same time.
pub(super) const TOKENS_EACH: u64 = 16;

/// A part of a state, with its number and its tokens.
pub(super) struct Part<T> {
    pub value: T,
    pub number: u32,
    /// The tokens in it, one bit each.
    pub tokens: u64,
    /// The numbers of documents in it, one bit each.
    pub refs: u32,
}

/// All different parts of one kind.
pub(super) struct Pool<T> {
    known: HashSet<ByValue<T>, BuildHasherDefault<Quick>>,
    parts: Vec<Rc<Part<T>>>,
}

struct ByValue<T>(Rc<Part<T>>);

impl<T: Hash> Hash for ByValue<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.value.hash(hasher);
    }
}

impl<T: PartialEq> PartialEq for ByValue<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.value == other.0.value
    }
}

impl<T: Eq> Eq for ByValue<T> {}

impl<T> Borrow<T> for ByValue<T> {
    fn borrow(&self) -> &T {
        &self.0.value
    }
}

impl<T: Hash + Eq> Pool<T> {
    pub(super) fn new() -> Self {
        Self { known: HashSet::default(), parts: Vec::new() }
    }

    pub(super) fn part(&mut self, value: T) -> Rc<Part<T>> {
        if let Some(known) = self.known.get(&value) {
            return known.0.clone();
        }
        let mut numbers = Numbers::default();
        value.hash(&mut numbers);
        let Numbers { tokens, refs } = numbers;
        let part = Rc::new(Part { value, number: self.parts.len() as u32, tokens, refs });
        self.known.insert(ByValue(part.clone()));
        self.parts.push(part.clone());
        part
    }

    pub(super) fn get(&self, number: u32) -> &Rc<Part<T>> {
        &self.parts[number as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }
}

/// Collects the numbers of documents and the tokens of whatever is hashed: in this model, nothing else is a `u64`.
#[derive(Default)]
struct Numbers {
    tokens: u64,
    refs: u32,
}

impl Hasher for Numbers {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        if number < TOKENS {
            self.refs |= 1 << number;
        } else {
            let (server, count) = (number / TOKENS - 1, number % TOKENS);
            // With the planted fault that counts tokens, a number may be too large. Then the bits are not used.
            self.tokens |= 1u64.checked_shl((server * TOKENS_EACH + count) as u32).unwrap_or(0);
        }
    }
}

/// A quick hasher for tables in memory.
#[derive(Default)]
pub(super) struct Quick(u64);

impl Quick {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        let mixed = u128::from(self.0 ^ self.0 >> 32).wrapping_mul(0xA076_1D64_78BD_642F);
        (mixed >> 64) as u64 ^ mixed as u64
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.add(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.add(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn write_u128(&mut self, number: u128) {
        self.add(number as u64);
        self.add((number >> 64) as u64);
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }
}
