//! The bytes of a fuzzer -> a spec, a text, and places to cut it. The targets in `fuzz_targets` check the results.

use hapax_core::{
    Digits, Fold, Marks, Pipeline, SecretKey, Shingling, SignatureShape, Simd, SketchKind, TextSpec,
};

/// A spec, a text, and the pieces in which the text arrives.
pub struct Case<'a> {
    spec: TextSpec,
    secret: Option<SecretKey>,
    /// The text, well-formed or not.
    pub bytes: &'a [u8],
    /// The lengths of pieces, used in turn.
    pub cuts: &'a [u8],
}

impl<'a> Case<'a> {
    /// The first eight bytes choose the spec and the cuts, the rest is the text. `None` if there are fewer than eight.
    pub fn new(data: &'a [u8]) -> Option<Self> {
        let (head, bytes) = data.split_first_chunk::<8>()?;
        let secret = (head[0] & 1 == 1).then(|| SecretKey::new([head[0]; 16]));
        let folds = [Fold::NfkcCasefold, Fold::NfkcCasefold, Fold::Nfkc, Fold::None];
        let width = head[3] % 32 + 1;
        let spec = TextSpec {
            fold: folds[usize::from(head[1] & 3)],
            marks: if head[1] & 12 == 12 { Marks::Strip } else { Marks::Keep },
            digits: if head[1] & 48 == 48 { Digits::Zero } else { Digits::Keep },
            shingling: if head[2] & 3 == 3 { Shingling::Char(width) } else { Shingling::Word(width) },
            sketch: SketchKind::ALL[usize::from(head[4]) % 3],
            shape: SignatureShape { k: 64 << (head[5] % 5), bits: 8 << (head[5] >> 4) % 3 },
            key: secret.as_ref().map(SecretKey::fingerprint),
        };
        Some(Self { spec, secret, bytes, cuts: &data[6..8] })
    }

    /// The text, with ill-formed sequences replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes).into_owned()
    }

    /// Returns one pipeline for each kind of instructions. The first is portable, and is the specification of the
    /// others.
    pub fn pipelines(&self) -> impl Iterator<Item = Pipeline> + '_ {
        Simd::available()
            .map(|simd| Pipeline::with_simd(&self.spec, self.secret.as_ref(), simd).expect("every case is a valid spec"))
    }

    /// Returns the text in pieces of at least one byte.
    pub fn pieces(&self) -> impl Iterator<Item = &'a [u8]> {
        let (mut rest, mut cuts) = (self.bytes, self.cuts.iter().cycle());
        std::iter::from_fn(move || {
            let cut = cuts.next().map_or(1, |&cut| usize::from(cut) * 17 % 4_099 + 1);
            let piece = rest.split_off(..cut.min(rest.len())).filter(|piece| !piece.is_empty())?;
            Some(piece)
        })
    }
}
