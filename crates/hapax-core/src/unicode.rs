//! Unicode 17.0 in the form that the hot path needs: one lookup for each scalar value returns its class, script,
//! combining class and folding. The data comes from the pinned ICU4X crates, is built once per process and folding, and
//! never changes: a test below pins a digest over all code points.

use std::collections::HashMap;
use std::sync::LazyLock;

use icu_casemap::CaseMapper;
use icu_normalizer::properties::{
    CanonicalCombiningClassMapBorrowed, CanonicalCompositionBorrowed, CanonicalDecompositionBorrowed, Decomposed,
};
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::props::{
    DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup, Script, UnifiedIdeograph, WhiteSpace,
};
use icu_properties::script::ScriptWithExtensions;
use icu_properties::{CodePointMapData, CodePointSetData};

use crate::spec::Fold;

/// The class of a scalar value for the tokeniser and for the white-space rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    Other,
    Letter,
    Number,
    Mark,
    Space,
}

/// All properties of a scalar value in 32 bits: class (3 bits); five flags (unspaced script, decimal digit, composes
/// with the character before it, folds to itself, folds to one other character that never composes); combining class (8
/// bits, from bit 8); mapping (16 bits, from bit 16; 0 means itself). A letter that folds to its own parts, as `é`
/// does, counts as folding to itself, because it is composed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CharEntry(u32);

const CLASS: u32 = 7;
const UNSPACED: u32 = 1 << 3;
const DIGIT: u32 = 1 << 4;
const BACKWARD: u32 = 1 << 5;
const ITSELF: u32 = 1 << 6;
const ONE_OTHER: u32 = 1 << 7;

impl CharEntry {
    #[inline(always)]
    pub(crate) fn class(self) -> Class {
        match self.0 & CLASS {
            1 => Class::Letter,
            2 => Class::Number,
            3 => Class::Mark,
            4 => Class::Space,
            _ => Class::Other,
        }
    }

    /// Whether the scalar value is a letter or number of a script written without spaces: a token by itself.
    #[inline(always)]
    pub(crate) fn is_unspaced(self) -> bool {
        self.0 & UNSPACED != 0
    }

    /// Whether the General_Category of the scalar value is Nd.
    #[inline(always)]
    pub(crate) fn is_digit(self) -> bool {
        self.0 & DIGIT != 0
    }

    /// Whether the scalar value is the second half of some primary composite.
    #[inline(always)]
    pub(crate) fn composes_backward(self) -> bool {
        self.0 & BACKWARD != 0
    }

    /// Whether the scalar value folds to itself, or to parts that compose to it again. Returns `false` for white space,
    /// and for a character that may compose with the character before it.
    #[inline(always)]
    pub(crate) fn is_itself(self) -> bool {
        self.0 & ITSELF != 0
    }

    /// Whether the scalar value folds to one other scalar value, [`Mapping::whole`], that never composes with the
    /// character before it.
    #[inline(always)]
    pub(crate) fn is_one_other(self) -> bool {
        self.0 & ONE_OTHER != 0
    }

    /// The Canonical_Combining_Class of the scalar value.
    #[inline(always)]
    pub(crate) fn combining_class(self) -> u8 {
        (self.0 >> 8) as u8
    }

    #[inline(always)]
    fn mapping(self) -> usize {
        (self.0 >> 16) as usize
    }
}

const PAGE_BITS: u32 = 8;
const PAGE: usize = 1 << PAGE_BITS;

/// The folding of a scalar value that does not fold to itself.
#[derive(Clone, Copy)]
pub(crate) struct Mapping {
    start: u32,
    len: u8,
    /// The composed form, if it is one scalar value that never composes with the character before it.
    pub(crate) whole: Option<char>,
}

/// The properties of every scalar value under one folding.
pub(crate) struct UnicodeTable {
    pages: Box<[u16]>,
    entries: Box<[CharEntry]>,
    mappings: Box<[Mapping]>,
    mapped: Box<[char]>,
    pairs: Composites,
}

impl UnicodeTable {
    /// Returns the table of a folding; it is built at first use, then shared.
    pub(crate) fn of(fold: Fold) -> &'static Self {
        static CASEFOLD: LazyLock<UnicodeTable> = LazyLock::new(|| UnicodeTable::build(Fold::NfkcCasefold));
        static NFKC: LazyLock<UnicodeTable> = LazyLock::new(|| UnicodeTable::build(Fold::Nfkc));
        static NONE: LazyLock<UnicodeTable> = LazyLock::new(|| UnicodeTable::build(Fold::None));
        match fold {
            Fold::NfkcCasefold => &CASEFOLD,
            Fold::Nfkc => &NFKC,
            Fold::None => &NONE,
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, c: char) -> CharEntry {
        self.of_code_point(u32::from(c))
    }

    /// Returns the properties of a code point from [`decode`].
    #[inline(always)]
    pub(crate) fn of_code_point(&self, c: u32) -> CharEntry {
        let c = c as usize;
        self.entries[usize::from(self.pages[c >> PAGE_BITS]) * PAGE + (c & (PAGE - 1))]
    }

    /// Returns the folding of a scalar value; `None` if it folds to itself.
    #[inline(always)]
    pub(crate) fn mapping(&self, entry: CharEntry) -> Option<Mapping> {
        let index = entry.mapping();
        (index != 0).then(|| self.mappings[index])
    }

    /// Returns the mapping, fully decomposed except for Hangul syllables (see `Normaliser`).
    #[inline(always)]
    pub(crate) fn mapped(&self, mapping: Mapping) -> &[char] {
        let start = mapping.start as usize;
        &self.mapped[start..start + usize::from(mapping.len)]
    }

    /// Returns the primary composite of two scalar values, Hangul included.
    #[inline]
    pub(crate) fn compose(&self, first: char, second: char) -> Option<char> {
        hangul(first, second).or_else(|| self.pairs.get(first, second))
    }

    fn build(fold: Fold) -> Self {
        let mut raw = vec![0u32; 0x11_0000];
        classify(&mut raw);
        let pairs = Composites::build(&mut raw);
        let (mappings, mapped) = if fold == Fold::None { (vec![NO_MAPPING], Vec::new()) } else { map(&mut raw, fold) };

        for (c, bits) in (0..).zip(&mut raw) {
            let entry = CharEntry(*bits);
            let stands_alone =
                entry.combining_class() == 0 && !entry.composes_backward() && entry.class() != Class::Space;
            match (entry.mapping(), mappings[entry.mapping()].whole) {
                (0, _) if stands_alone => *bits |= ITSELF,
                (_, Some(whole)) if u32::from(whole) == c => *bits |= ITSELF,
                (_, Some(_)) => *bits |= ONE_OTHER,
                _ => {}
            }
        }

        let mut known: HashMap<&[u32], u16> = HashMap::new();
        let mut entries = Vec::new();
        let pages = raw
            .chunks_exact(PAGE)
            .map(|page| {
                *known.entry(page).or_insert_with(|| {
                    entries.extend(page.iter().map(|&bits| CharEntry(bits)));
                    u16::try_from(entries.len() / PAGE - 1).expect("there are 4,352 pages")
                })
            })
            .collect();
        Self { pages, entries: entries.into(), mappings: mappings.into(), mapped: mapped.into(), pairs }
    }
}

/// Sets class, script, digit and combining class of every assigned code point.
fn classify(raw: &mut [u32]) {
    let categories = CodePointMapData::<GeneralCategory>::new();
    for (group, class) in [
        (GeneralCategoryGroup::Letter, Class::Letter),
        (GeneralCategoryGroup::Number, Class::Number),
        (GeneralCategoryGroup::Mark, Class::Mark),
    ] {
        for range in categories.iter_ranges_for_group(group) {
            let classes = CanonicalCombiningClassMapBorrowed::new();
            for c in range {
                raw[c as usize] = class as u32 | u32::from(classes.get32_u8(c)) << 8;
            }
        }
    }
    for range in categories.iter_ranges_for_value(GeneralCategory::DecimalNumber) {
        range.for_each(|c| raw[c as usize] |= DIGIT);
    }
    for range in CodePointSetData::new::<WhiteSpace>().iter_ranges() {
        range.for_each(|c| raw[c as usize] = Class::Space as u32);
    }
    let scripts = ScriptWithExtensions::new();
    for script in UNSPACED_SCRIPTS {
        for c in scripts.get_script_extensions_ranges(script).flatten() {
            let entry = &mut raw[c as usize];
            let counts = matches!(CharEntry(*entry).class(), Class::Letter | Class::Number);
            // A character shared with a spaced script does not end a word: U+02BC, the apostrophe of Uzbek and
            // Ukrainian, is used in Thai too.
            let is_unspaced = |script| UNSPACED_SCRIPTS.contains(&script);
            if counts
                && (is_unspaced(scripts.get_script_val32(c))
                    || scripts.get_script_extensions_val32(c).iter().all(is_unspaced))
            {
                *entry |= UNSPACED;
            }
        }
    }
}

/// The scripts that put no space between words.
const UNSPACED_SCRIPTS: [Script; 7] =
    [Script::Han, Script::Hiragana, Script::Katakana, Script::Thai, Script::Lao, Script::Khmer, Script::Myanmar];

/// Marks a scalar value that has no mapping.
const NO_MAPPING: Mapping = Mapping { start: 0, len: 0, whole: None };

/// Sets the mapping of every code point that folds to something else; returns the mappings and their text.
fn map(raw: &mut [u32], fold: Fold) -> (Vec<Mapping>, Vec<char>) {
    let folder = Folder::new(fold);
    let ideographs = CodePointSetData::new::<UnifiedIdeograph>();
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let (mut mappings, mut mapped) = (vec![NO_MAPPING], Vec::new());
    let mut known: HashMap<Vec<char>, u32> = HashMap::new();
    let categories = CodePointMapData::<GeneralCategory>::new();
    let ranges = categories
        .iter_ranges()
        .filter(|range| {
            !matches!(
                range.value,
                GeneralCategory::Unassigned | GeneralCategory::PrivateUse | GeneralCategory::Surrogate
            )
        })
        .map(|range| range.range)
        // Some default-ignorable code points are unassigned.
        .chain(ignorable.iter_ranges());
    for c in ranges.flatten().filter_map(char::from_u32) {
        if ('\u{ac00}'..='\u{d7a3}').contains(&c) || ideographs.contains(c) {
            continue; // they fold to themselves; Hangul syllables stay composed (see `Normaliser`)
        }
        let folded = folder.fold(c);
        if folded == [c] {
            continue;
        }
        let index = *known.entry(folded).or_insert_with_key(|folded| {
            let len = u8::try_from(folded.len()).expect("the longest mapping has 18 scalar values");
            let stands_alone = |c: char| {
                let entry = CharEntry(raw[c as usize]);
                entry.combining_class() == 0 && !entry.composes_backward() && entry.class() != Class::Space
            };
            let whole = folder.single(folded).filter(|&whole| stands_alone(whole) && stands_alone(folded[0]));
            mappings.push(Mapping { start: mapped.len() as u32, len, whole });
            mapped.extend_from_slice(folded);
            mappings.len() as u32 - 1
        });
        assert!(index < 1 << 16, "Unicode 17 has fewer than 65,536 distinct mappings");
        let entry = &mut raw[c as usize];
        *entry = *entry & 0xffff | index << 16;
    }
    (mappings, mapped)
}

/// The slow and plain definition of a folding, one scalar value at a time.
struct Folder {
    fold: Fold,
    ignorable: icu_properties::CodePointSetDataBorrowed<'static>,
    nfkc: ComposingNormalizerBorrowed<'static>,
    nfkd: DecomposingNormalizerBorrowed<'static>,
    nfd: DecomposingNormalizerBorrowed<'static>,
    nfc: ComposingNormalizerBorrowed<'static>,
}

impl Folder {
    fn new(fold: Fold) -> Self {
        Self {
            fold,
            ignorable: CodePointSetData::new::<DefaultIgnorableCodePoint>(),
            nfkc: ComposingNormalizerBorrowed::new_nfkc(),
            nfkd: DecomposingNormalizerBorrowed::new_nfkd(),
            nfd: DecomposingNormalizerBorrowed::new_nfd(),
            nfc: ComposingNormalizerBorrowed::new_nfc(),
        }
    }

    fn fold(&self, c: char) -> Vec<char> {
        match self.fold {
            Fold::None => vec![c],
            Fold::Nfkc => self.nfkd.normalize_iter(std::iter::once(c)).collect(),
            Fold::NfkcCasefold => self.nfd.normalize(&self.nfkc_casefold(c)).chars().collect(),
        }
    }

    /// Returns the composed form if it is one scalar value.
    fn single(&self, folded: &[char]) -> Option<char> {
        let mut composed = self.nfc.normalize_iter(folded.iter().copied());
        composed.next().filter(|_| composed.next().is_none())
    }

    /// NFKC_Casefold as UAX #44 derives it: NFKC, full case folding and removal of default-ignorables, until stable.
    fn nfkc_casefold(&self, c: char) -> String {
        let mut text = c.to_string();
        loop {
            let normal = self.nfkc.normalize(&text);
            let folded = CaseMapper::new().fold_string(&normal).into_owned();
            let kept: String = folded.chars().filter(|&c| !self.ignorable.contains(c)).collect();
            let next = self.nfkc.normalize(&kept).into_owned();
            if next == text {
                return text;
            }
            text = next;
        }
    }
}

/// Returns the first code point of well-formed UTF-8 that does not begin with ASCII, and its number of bytes.
#[inline(always)]
pub(crate) fn decode(text: &[u8]) -> (u32, usize) {
    let byte = |i: usize| u32::from(text.get(i).copied().unwrap_or(0x80) & 0x3f);
    match text[0] {
        lead @ ..0xe0 => (u32::from(lead & 0x1f) << 6 | byte(1), 2),
        lead @ ..0xf0 => (u32::from(lead & 0x0f) << 12 | byte(1) << 6 | byte(2), 3),
        lead => (u32::from(lead & 0x07) << 18 | byte(1) << 12 | byte(2) << 6 | byte(3), 4),
    }
}

const L: u32 = 0x1100;
const V: u32 = 0x1161;
const T: u32 = 0x11a7;
const S: u32 = 0xac00;

/// Hangul composition by arithmetic (The Unicode Standard, 3.12).
#[inline]
fn hangul(first: char, second: char) -> Option<char> {
    let (first, second) = (u32::from(first), u32::from(second));
    if (L..L + 19).contains(&first) && (V..V + 21).contains(&second) {
        return char::from_u32(S + ((first - L) * 21 + (second - V)) * 28);
    }
    if (S..S + 11_172).contains(&first) && (first - S).is_multiple_of(28) && (T + 1..T + 28).contains(&second) {
        return char::from_u32(first + (second - T));
    }
    None
}

/// The 961 or so primary composites outside Hangul, in an open-addressed table.
struct Composites(Box<[(u64, char)]>);

impl Composites {
    const SLOTS: usize = 4096;

    fn build(raw: &mut [u32]) -> Self {
        let decomposition = CanonicalDecompositionBorrowed::new();
        let composition = CanonicalCompositionBorrowed::new();
        let mut slots = vec![(0u64, '\0'); Self::SLOTS];
        for (c, entry) in raw.iter_mut().enumerate() {
            if (V..V + 21).contains(&(c as u32)) || (T + 1..T + 28).contains(&(c as u32)) {
                *entry |= BACKWARD;
            }
        }
        // Only assigned code points decompose, and all of those are letters, marks or symbols of these planes.
        for c in (0..0x4_0000).filter_map(char::from_u32) {
            if ('\u{ac00}'..='\u{d7a3}').contains(&c) {
                continue;
            }
            if let Decomposed::Expansion(first, second) = decomposition.decompose(c)
                && composition.compose(first, second) == Some(c)
            {
                let mut at = Self::slot(Self::key(first, second));
                while slots[at].0 != 0 {
                    at = (at + 1) % Self::SLOTS;
                }
                slots[at] = (Self::key(first, second), c);
                raw[second as usize] |= BACKWARD;
            }
        }
        Self(slots.into())
    }

    fn get(&self, first: char, second: char) -> Option<char> {
        let key = Self::key(first, second);
        let mut at = Self::slot(key);
        loop {
            match self.0[at] {
                (held, composite) if held == key => return Some(composite),
                (0, _) => return None,
                _ => at = (at + 1) % Self::SLOTS,
            }
        }
    }

    fn key(first: char, second: char) -> u64 {
        u64::from(u32::from(first)) << 21 | u64::from(u32::from(second))
    }

    fn slot(key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::fmix64;

    fn all() -> impl Iterator<Item = char> {
        (0..0x11_0000).filter_map(char::from_u32)
    }

    /// Hashes the properties and the mapping of every scalar value into 64 bits.
    fn digest(fold: Fold) -> u64 {
        let table = UnicodeTable::of(fold);
        all().fold(0, |sum: u64, c| {
            let entry = table.get(c);
            let own = [c];
            let mapped = table.mapping(entry).map_or(&own[..], |mapping| table.mapped(mapping));
            let mut h = fmix64(u64::from(u32::from(c)) << 16 | u64::from(entry.0 & 0xff3f));
            for &m in mapped {
                h = fmix64(h ^ u64::from(u32::from(m))).wrapping_add(1);
            }
            fmix64(sum ^ h)
        })
    }

    #[test]
    fn a_digest_over_all_code_points_pins_folding_and_classes() {
        let digests = [Fold::NfkcCasefold, Fold::Nfkc, Fold::None].map(digest);
        assert_eq!(
            digests.map(|d| format!("{d:016x}")),
            ["6f16ca8df06c0ffb", "fb3a8aaeaab4a7fc", "9788ca8ea6020ce9"],
            "the Unicode tables have moved"
        );
    }

    #[test]
    fn the_tables_are_unicode_17() {
        let categories = CodePointMapData::<GeneralCategory>::new();
        let assigned = (0..0x11_0000)
            .filter(|&c| {
                !matches!(
                    categories.get32(c),
                    GeneralCategory::Unassigned | GeneralCategory::PrivateUse | GeneralCategory::Surrogate
                )
            })
            .count();
        // 159,801 graphic and format characters (The Unicode Standard 17.0, Appendix D) and 65 control codes.
        assert_eq!(assigned, 159_801 + 65);
        let class = |c| UnicodeTable::of(Fold::None).get(c).class();
        assert_eq!(class('\u{16ea0}'), Class::Letter, "BERIA ERFE, new in 17");
        assert_eq!(class('\u{1acf}'), Class::Mark, "new in 17");
        assert_eq!(class('\u{3d000}'), Class::Other, "SEAL, new in 18");
    }

    #[test]
    fn composition_agrees_with_the_library_for_every_decomposition() {
        let table = UnicodeTable::of(Fold::NfkcCasefold);
        let (decomposition, composition) = (CanonicalDecompositionBorrowed::new(), CanonicalCompositionBorrowed::new());
        let mut composites = 0;
        for c in all() {
            if let Decomposed::Expansion(first, second) = decomposition.decompose(c) {
                assert_eq!(table.compose(first, second), composition.compose(first, second), "{c:?}");
                if composition.compose(first, second).is_some() {
                    composites += 1;
                    assert!(table.get(second).composes_backward(), "{c:?}");
                }
            }
        }
        assert!(composites > 11_172 + 900, "{composites}");
        assert_eq!(table.compose('a', 'b'), None);
    }

    #[test]
    fn every_mapping_is_decomposed_and_stable() {
        let nfd = DecomposingNormalizerBorrowed::new_nfd();
        for fold in [Fold::NfkcCasefold, Fold::Nfkc] {
            let table = UnicodeTable::of(fold);
            for c in all() {
                let Some(mapping) = table.mapping(table.get(c)) else { continue };
                let mapped = table.mapped(mapping);
                let text: String = mapped.iter().collect();
                assert!(nfd.is_normalized(&text), "{c:?} -> {text:?}");
                for &m in mapped {
                    assert!(table.mapping(table.get(m)).is_none(), "{c:?} -> {text:?}");
                }
            }
        }
    }
}
