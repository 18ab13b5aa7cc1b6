//! The frozen pipeline spec: how a signature is made from a text. It is one line of text, with one spelling for each
//! meaning, and is stored with every collection. A collection refuses to open under another spec or another key.
//! Banding and threshold are not part of the spec: they can change without signing anything again.

mod parts;

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_128;

pub use parts::{Digits, Fold, Marks, Shingling, SignatureShape, SketchKind};

use crate::hex::{is_lower_hex, of_hex};

/// 128 bits that name a spec; shown as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Fingerprint(pub u128);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = SpecError;

    fn from_str(s: &str) -> Result<Self, SpecError> {
        of_hex(s)
            .map(Self)
            .ok_or_else(|| SpecError(format!("a fingerprint must be 32 lower-case hex digits, not {s:?}")))
    }
}

/// The reason why a spec, a secret or a fingerprint was refused. It names the field and the allowed values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);

/// The spec of texts and sets that hapax signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSpec {
    /// The folding of characters.
    pub fold: Fold,
    /// Whether marks count.
    pub marks: Marks,
    /// Whether digits count.
    pub digits: Digits,
    /// The unit and length of shingles.
    pub shingling: Shingling,
    /// The sketch.
    pub sketch: SketchKind,
    /// k, a power of two in 64..=1024, and 8, 16 or 32 bits. Without a sketch: [`SignatureShape::OF_CONTENT`].
    pub shape: SignatureShape,
    /// The fingerprint of the secret, if hashing is keyed.
    pub key: Option<u64>,
}

impl Default for TextSpec {
    fn default() -> Self {
        Self {
            fold: Fold::NfkcCasefold,
            marks: Marks::Keep,
            digits: Digits::Keep,
            shingling: Shingling::Word(5),
            sketch: SketchKind::Fss,
            shape: SignatureShape { k: 256, bits: 8 },
            key: None,
        }
    }
}

/// The longest name of an external signature, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// A frozen pipeline spec.
///
/// ```
/// use hapax_core::Spec;
///
/// let text = "hapax1;unicode=17;fold=nfkc_casefold;marks=keep;digits=keep;shingle=word5;sketch=fss256x8;key=none";
/// assert_eq!(Spec::parse(text), Ok(Spec::default()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// Texts and sets that hapax signs.
    Text(TextSpec),
    /// Only signatures that are made elsewhere.
    External {
        /// The name of the program that makes them: `[a-z0-9][a-z0-9_-]{0,63}`.
        name: String,
        /// k in 16..=4096 with k·bits a multiple of 64, and 8, 16, 32 or 64 bits.
        shape: SignatureShape,
    },
}

impl Default for Spec {
    fn default() -> Self {
        Self::Text(TextSpec::default())
    }
}

impl Spec {
    /// Returns the sketch that makes the signatures; `None` if they are made elsewhere.
    pub fn sketch(&self) -> Option<SketchKind> {
        match self {
            Self::Text(text) => Some(text.sketch),
            Self::External { .. } => None,
        }
    }

    /// Reads a spec from its canonical text. Each spec has only this one spelling.
    pub fn parse(canonical: &str) -> Result<Self, SpecError> {
        let (version, fields) = canonical.split_once(';').unwrap_or((canonical, ""));
        if version != "hapax1" {
            return Err(SpecError(format!("a spec must begin with `hapax1;`, not with {version:?}")));
        }
        let spec = match fields.strip_prefix("external:") {
            Some(external) => parse_external(external)?,
            None => Self::Text(parse_text(fields)?),
        };
        spec.validate()?;
        Ok(spec)
    }

    /// Checks that every field is in range. [`Spec::parse`] does this itself. Call `validate` for a spec that was built
    /// by hand.
    pub fn validate(&self) -> Result<(), SpecError> {
        match self {
            Self::Text(spec) => spec.validate(),
            Self::External { name, shape } => validate_external(name, *shape),
        }
    }

    /// Returns the shape of the signatures.
    pub fn shape(&self) -> SignatureShape {
        match self {
            Self::Text(spec) => spec.shape,
            Self::External { shape, .. } => *shape,
        }
    }

    /// Returns xxh3_128 of the canonical text.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(xxh3_128(self.to_string().as_bytes()))
    }
}

impl TextSpec {
    /// Checks that every field is in range.
    pub fn validate(&self) -> Result<(), SpecError> {
        let (Shingling::Word(width) | Shingling::Char(width)) = self.shingling;
        if !(1..=32).contains(&width) {
            return Err(SpecError(format!("shingle: the number must be from 1 to 32, not {width}")));
        }
        if self.sketch == SketchKind::None {
            return self.validate_unsketched();
        }
        let SignatureShape { k, bits } = self.shape;
        if !k.is_power_of_two() || !(64..=1024).contains(&k) {
            return Err(SpecError(format!("sketch: k must be a power of two from 64 to 1024, not {k}")));
        }
        if !matches!(bits, 8 | 16 | 32) {
            return Err(SpecError(format!("sketch: slots must have 8, 16 or 32 bits, not {bits}")));
        }
        Ok(())
    }

    /// Checks the fields that depend on the sketch, if there is none.
    fn validate_unsketched(&self) -> Result<(), SpecError> {
        if self.shape != SignatureShape::OF_CONTENT {
            let SignatureShape { k, bits } = self.shape;
            return Err(SpecError(format!("sketch: `none` has 16 slots of 8 bits, not {k} of {bits}")));
        }
        match self.shingling {
            Shingling::Word(_) => Ok(()),
            Shingling::Char(width) => {
                Err(SpecError(format!("shingle: must be of words if the sketch is `none`; it is `char{width}`")))
            }
        }
    }
}

/// Writes the canonical text.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(spec) => spec.fmt(f),
            Self::External { name, shape } => write!(f, "hapax1;external:{name}:{}x{}", shape.k, shape.bits),
        }
    }
}

impl fmt::Display for Shingling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(width) => write!(f, "word{width}"),
            Self::Char(width) => write!(f, "char{width}"),
        }
    }
}

impl fmt::Display for TextSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fold = match self.fold {
            Fold::NfkcCasefold => "nfkc_casefold",
            Fold::Nfkc => "nfkc",
            Fold::None => "none",
        };
        let marks = match self.marks {
            Marks::Keep => "keep",
            Marks::Strip => "strip",
        };
        let digits = match self.digits {
            Digits::Keep => "keep",
            Digits::Zero => "zero",
        };
        let shingling = self.shingling;
        let sketch = self.sketch.name();
        let SignatureShape { k, bits } = self.shape;
        write!(f, "hapax1;unicode=17;fold={fold};marks={marks};digits={digits};shingle={shingling}")?;
        write!(f, ";sketch={sketch}")?;
        if self.sketch != SketchKind::None {
            write!(f, "{k}x{bits}")?;
        }
        f.write_str(";key=")?;
        match self.key {
            Some(key) => write!(f, "{key:016x}"),
            None => f.write_str("none"),
        }
    }
}

fn parse_text(fields: &str) -> Result<TextSpec, SpecError> {
    const NAMES: [&str; 7] = ["unicode", "fold", "marks", "digits", "shingle", "sketch", "key"];
    let mut values = [""; NAMES.len()];
    let mut given = fields.split(';');
    for (name, value) in NAMES.iter().zip(&mut values) {
        let field = given.next().filter(|field| !field.is_empty());
        *value = field.and_then(|field| field.strip_prefix(name)?.strip_prefix('=')).ok_or_else(|| {
            let found = field.map_or("the end".into(), |field| format!("{field:?}"));
            SpecError(format!("expected `{name}=`, found {found}; the fields are {}, in this order", NAMES.join(", ")))
        })?;
    }
    if let Some(extra) = given.next() {
        return Err(SpecError(format!("`key` must be the last field, but {extra:?} follows it")));
    }
    let [unicode, fold, marks, digits, shingle, sketch, key] = values;
    if unicode != "17" {
        return Err(refused("unicode", "17", unicode));
    }
    let (sketch, shape) = parse_sketch(sketch)?;
    Ok(TextSpec {
        fold: match fold {
            "nfkc_casefold" => Fold::NfkcCasefold,
            "nfkc" => Fold::Nfkc,
            "none" => Fold::None,
            other => return Err(refused("fold", "nfkc_casefold, nfkc or none", other)),
        },
        marks: match marks {
            "keep" => Marks::Keep,
            "strip" => Marks::Strip,
            other => return Err(refused("marks", "keep or strip", other)),
        },
        digits: match digits {
            "keep" => Digits::Keep,
            "zero" => Digits::Zero,
            other => return Err(refused("digits", "keep or zero", other)),
        },
        shingling: shingle
            .strip_prefix("word")
            .and_then(|width| Some(Shingling::Word(number(width)?)))
            .or_else(|| Some(Shingling::Char(number(shingle.strip_prefix("char")?)?)))
            .ok_or_else(|| refused("shingle", "word1 to word32 or char1 to char32", shingle))?,
        sketch,
        shape,
        key: match key {
            "none" => None,
            hex if hex.len() == 16 && hex.bytes().all(is_lower_hex) => {
                Some(u64::from_str_radix(hex, 16).expect("16 hex digits fit 64 bits"))
            }
            other => {
                return Err(refused("key", "none or the 16 lower-case hex digits of a secret's fingerprint", other));
            }
        },
    })
}

fn parse_sketch(sketch: &str) -> Result<(SketchKind, SignatureShape), SpecError> {
    const ALLOWED: &str =
        "`none`, `fssKxB`, `classicKxB` or `ophKxB`, with K a power of two from 64 to 1024 and B 8, 16 or 32";
    if sketch == SketchKind::None.name() {
        return Ok((SketchKind::None, SignatureShape::OF_CONTENT));
    }
    let read = SketchKind::split(sketch).and_then(|(kind, shape)| Some((kind, parse_shape(shape)?)));
    read.ok_or_else(|| refused("sketch", ALLOWED, sketch))
}

fn parse_external(external: &str) -> Result<Spec, SpecError> {
    let refused = || {
        SpecError(format!(
            "an external spec must look like `hapax1;external:NAME:KxB`, for example `hapax1;external:datasketch:128x64`; \
             found {external:?}"
        ))
    };
    let (name, shape) = external.split_once(':').ok_or_else(refused)?;
    let shape = parse_shape(shape).ok_or_else(refused)?;
    Ok(Spec::External { name: name.into(), shape })
}

fn validate_external(name: &str, SignatureShape { k, bits }: SignatureShape) -> Result<(), SpecError> {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    let first = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    if name.len() > NAME_BYTES_MAX || !name.bytes().next().is_some_and(first) || !name.bytes().all(inner) {
        return Err(SpecError(format!("external: a name must match [a-z0-9][a-z0-9_-]{{0,63}}, not {name:?}")));
    }
    if !matches!(bits, 8 | 16 | 32 | 64) {
        return Err(SpecError(format!("external: slots must have 8, 16, 32 or 64 bits, not {bits}")));
    }
    if !(16..=4096).contains(&k) || !(k * bits).is_multiple_of(64) {
        return Err(SpecError(format!(
            "external: k must be from 16 to 4096, and k times bits a multiple of 64; k is {k}"
        )));
    }
    Ok(())
}

fn parse_shape(shape: &str) -> Option<SignatureShape> {
    let (k, bits) = shape.split_once('x')?;
    Some(SignatureShape { k: number(k)?, bits: number(bits)? })
}

/// Reads a decimal number in its only spelling: no sign, no leading zero.
fn number<T: FromStr>(text: &str) -> Option<T> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    plain.then(|| text.parse().ok())?
}

fn refused(field: &str, allowed: &str, found: &str) -> SpecError {
    SpecError(format!("{field}: must be {allowed}, not {found:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn specs() -> impl Strategy<Value = Spec> {
        let shape = (6u32..=10, prop::sample::select(vec![8, 16, 32]))
            .prop_map(|(log, bits)| SignatureShape { k: 1 << log, bits });
        let shingling = (any::<bool>(), 1u8..=32)
            .prop_map(|(word, width)| if word { Shingling::Word(width) } else { Shingling::Char(width) });
        let text = (
            prop::sample::select(vec![Fold::NfkcCasefold, Fold::Nfkc, Fold::None]),
            prop::sample::select(vec![Marks::Keep, Marks::Strip]),
            prop::sample::select(vec![Digits::Keep, Digits::Zero]),
            shingling,
            prop::sample::select(&SketchKind::ALL[..]),
            shape,
            any::<Option<u64>>(),
        )
            .prop_map(|(fold, marks, digits, shingling, sketch, shape, key)| {
                Spec::Text(TextSpec { fold, marks, digits, shingling, sketch, shape, key })
            });
        let external =
            (2u32..=512, prop::sample::select(vec![8, 16, 32, 64]), 0usize..64).prop_map(|(eights, bits, more)| {
                Spec::External {
                    name: format!("d{}", "-_a0".repeat(16).split_at(more).0),
                    shape: SignatureShape { k: eights * 8, bits },
                }
            });
        prop_oneof![text, external]
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(17), ..Default::default() })]

        #[test]
        fn what_is_shown_is_read_back(spec in specs()) {
            prop_assert_eq!(Spec::parse(&spec.to_string()), Ok(spec));
        }

        #[test]
        fn one_spec_has_one_spelling(text in "hapax1;unicode=17;fold=(nfkc|none);marks=keep;digits=zero;shingle=(word|char)[+0-9]{1,3};sketch=(fss|classic|oph)[0-9 ]{2,4}x[0-9]{1,2};key=(none|[0-9a-fA-F]{16})") {
            if let Ok(spec) = Spec::parse(&text) {
                prop_assert_eq!(spec.to_string(), text);
            }
        }
    }

    #[test]
    fn each_refusal_names_its_field() {
        let good = Spec::default().to_string();
        for (from, to, word) in [
            ("hapax1", "hapax2", "hapax1"),
            ("unicode=17", "unicode=16", "unicode"),
            ("fold=nfkc_casefold", "fold=lower", "fold"),
            ("fold=nfkc_casefold;marks=keep", "marks=keep;fold=nfkc_casefold", "fold"),
            ("marks=keep", "marks=drop", "marks"),
            ("digits=keep", "digits=9", "digits"),
            ("digits=keep", "colour=red", "digits"),
            ("word5", "word0", "shingle"),
            ("word5", "word33", "shingle"),
            ("word5", "word05", "shingle"),
            ("word5", "word300", "shingle"),
            ("word5", "line5", "shingle"),
            ("fss256x8", "fss100x8", "sketch"),
            ("fss256x8", "fss32x8", "sketch"),
            ("fss256x8", "fss2048x8", "sketch"),
            ("fss256x8", "fss256x64", "sketch"),
            ("fss256x8", "fss256", "sketch"),
            ("fss256x8", "oph100x8", "sketch"),
            ("key=none", "key=0123456789ABCDEF", "key"),
            ("key=none", "key=", "key"),
            ("key=none", "key=none;more=1", "more"),
            (";key=none", "", "key"),
        ] {
            let wrong = good.replace(from, to);
            let error = Spec::parse(&wrong).expect_err(&wrong).to_string();
            assert!(error.contains(word), "{wrong}: {error}");
        }
        for wrong in [
            "",
            "hapax1",
            "hapax1;external:",
            "hapax1;external::128x64",
            "hapax1;external:A:128x64",
            "hapax1;external:a:8x64",
            "hapax1;external:a:4097x64",
            "hapax1;external:a:17x8",
            "hapax1;external:a:128x48",
            "hapax1;external:-a:128x64",
            "hapax1;external:a:128x64;",
        ] {
            assert!(Spec::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Spec::parse("hapax1;external:a:18x32").map(|s| s.shape().bytes()), Ok(72));
    }

    #[test]
    fn fingerprints_are_read_back() {
        let fingerprint = Spec::default().fingerprint();
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        assert!("12".parse::<Fingerprint>().is_err());
        assert!(Fingerprint(u128::MAX).to_string().to_uppercase().parse::<Fingerprint>().is_err());
    }
}
