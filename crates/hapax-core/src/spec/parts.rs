//! The parts of a spec: the choices that each of its fields allows.

/// The folding of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Removes differences of case, compatibility forms and default-ignorable characters (UAX #44, NFKC_Casefold).
    NfkcCasefold,
    /// Removes compatibility forms and keeps case (UAX #15, NFKC).
    Nfkc,
    /// Leaves the text as it is: even canonical equivalents differ.
    None,
}

/// Whether marks (accents, vowel signs) count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// Marks count.
    Keep,
    /// Every character of General_Category Mark is dropped.
    Strip,
}

/// Whether decimal digits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// Digits count.
    Keep,
    /// Each digit becomes `0`, so texts that differ only in dates and counters agree.
    Zero,
}

/// The unit of shingles, and the number of units in a shingle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shingling {
    /// This many tokens, 1..=32.
    Word(u8),
    /// This many scalar values of the canonical text, 1..=32.
    Char(u8),
}

/// The sketch that turns shingles into slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SketchKind {
    /// Fast similarity sketching (arXiv:1704.04370).
    Fss,
    /// k independent minima (Broder 1997).
    Classic,
    /// One permutation hashing with optimal densification (arXiv:1703.04664).
    Oph,
    /// No sketch, because texts are not compared by similarity. A signature is the content hash.
    None,
}

impl SketchKind {
    /// The kinds of sketch that estimate similarities.
    pub const ALL: [Self; 3] = [Self::Fss, Self::Classic, Self::Oph];

    /// Returns the name that specs and settings use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fss => "fss",
            Self::Classic => "classic",
            Self::Oph => "oph",
            Self::None => "none",
        }
    }

    /// Splits a text such as `fss256x8` into the kind that it begins with and the rest.
    pub fn split(text: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|kind| text.strip_prefix(kind.name()).map(|rest| (kind, rest)))
    }
}

/// The shape of a signature: k slots of `bits` bits (8, 16, 32; external also 64), packed little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureShape {
    /// The number of slots.
    pub k: u32,
    /// The bits of a slot.
    pub bits: u32,
}

impl SignatureShape {
    /// The shape of a signature that is a content hash, which has 16 bytes.
    pub const OF_CONTENT: Self = Self { k: 16, bits: 8 };

    /// The length of the packed signature in bytes.
    pub fn bytes(self) -> usize {
        (self.k * self.bits / 8) as usize
    }
}
