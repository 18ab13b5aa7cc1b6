//! Compares the figures of `docs/spec.md` with the code. That page says how to make the same signatures in another
//! language. If a figure is missing on the page, the test fails with its name.

use hapax_core::verify::{interval95, matching_min, similarity};
use hapax_core::{
    Digits, Fold, Marks, Pipeline, SecretKey, ShingleSet, Shingling, SignScratch, SignatureShape, SketchKind, Spec,
    SplitMix64, TextSpec,
};
use serde_json::Value;

use crate::stages;

const PAGE: &str = include_str!("../../../../docs/spec.md");
const SECRET: &str = "000102030405060708090a0b0c0d0e0f";
const HARBOUR: &str = "A quiet harbour wakes before the gulls do, and the first boat leaves without a sound.";

fn says(name: &str, figure: &str) {
    assert!(PAGE.contains(figure), "the page lacks {name}: {figure}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn pipeline(spec: &str) -> Pipeline {
    let Ok(Spec::Text(spec)) = Spec::parse(spec) else { panic!("{spec} is a spec of texts") };
    let secret = SecretKey::from_hex(SECRET).expect("32 hex digits");
    Pipeline::new(&spec, Some(&secret)).expect("the secret is the spec's")
}

/// Checks that the page has the known answers of one text: all token hashes, all shingles, the first `ranks` ranks, the
/// digests and the content hash.
fn says_all_stages(spec: &str, text: &str, ranks: usize) {
    let (pipeline, mut scratch) = (pipeline(spec), SignScratch::default());
    let secret = (!spec.ends_with("key=none")).then_some(SECRET);
    let stages = stages::of_text(spec, secret, text);
    let string = |value: &Value| value.as_str().expect("a string").to_owned();
    says("fingerprint", &string(&stages["fingerprint"]));
    for token in pipeline.tokens(text) {
        says("token hash", &format!("{:016x}", pipeline.token_hash(&token)));
    }
    for shingle in pipeline.shingle_set(&mut scratch, text) {
        says("shingle", &format!("{shingle:016x}"));
    }
    for rank in stages["ranks"].as_array().expect("ranks").iter().take(ranks) {
        says("rank", &string(rank));
    }
    if ranks > 0 {
        says("digest of ranks", &string(&stages["ranks_count_digest"][1]));
        says("content", &string(&stages["content"]));
    }
    says("digest of the signature", &string(&stages["signature_bytes_digest"][1]));
}

#[test]
fn known_answers_are_those_of_the_code() {
    let spec = Spec::default().to_string();
    says("spec", &spec);
    says_all_stages(&spec, HARBOUR, 8);
    says_all_stages(&spec, "word", 4);
    says_all_stages(&spec, "two words", 0);
    says_all_stages(&spec.replace("fss256x8", "oph64x8"), HARBOUR, 8);
    says_all_stages(&spec.replace("fss256x8", "classic64x32"), HARBOUR, 4);
    says_all_stages(&spec.replace("word5", "char5"), "two words", 0);
    let keyed = "shingle=char3;sketch=classic128x8;key=217a1ccd4b38d306";
    says_all_stages(&spec.replace("shingle=word5;sketch=fss256x8;key=none", keyed), "two words", 4);

    let (pipeline, mut scratch) = (pipeline(&spec), SignScratch::default());
    let signature = pipeline.sign(&mut scratch, HARBOUR).expect("it has tokens").signature;
    signature.chunks(48).for_each(|line| says("signature", &hex(line)));
    let set = ShingleSet::new(pipeline.shingle_set(&mut scratch, HARBOUR)).to_bytes();
    set.chunks(48).for_each(|line| says("shingle set", &hex(line)));
    let few = ShingleSet::new(vec![0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, 1 << 40]).to_bytes();
    says("bytes of three shingles", &few.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" "));
}

#[test]
fn constants_are_those_of_the_generator() {
    let generator = |name: &[u8; 8]| SplitMix64::new(u64::from_be_bytes(*name));
    let mut fss = generator(b"hapaxfss");
    (0..17).for_each(|_| says("a constant of fss", &format!("{:016x}", fss.next_u64())));
    (0..4).for_each(|_| says("a multiplier of fss", &format!("{:016x}", fss.next_u64() | 1)));
    let mut classic = generator(b"classic/");
    let mut named = |odd| says("a constant of classic", &format!("{:016x}", classic.next_u64() | odd));
    [0, 1, 0, 1, 0].into_iter().for_each(&mut named);
    let mut oph = generator(b"oneperm/");
    (0..2).for_each(|_| says("a constant of oph", &format!("{:016x}", oph.next_u64())));
    let first = |name| generator(name).next_u64();
    for constant in [first(b"hapax/ch"), first(b"shingle/") & !7 | 3, first(b"shin/len")] {
        says("a constant", &format!("{constant:016x}"));
    }
}

#[test]
fn elements_and_secrets_are_those_of_the_code() {
    let plain = Spec::default().to_string();
    for spec in [plain.replace("key=none", "key=217a1ccd4b38d306"), plain] {
        let pipeline = pipeline(&spec);
        for element in [pipeline.element_text("red"), pipeline.element_text("5")] {
            says("a string", &format!("{element:016x}"));
        }
        for element in [pipeline.element_integer(5), pipeline.element_integer(-1)] {
            says("an integer", &format!("{element:016x}"));
        }
        let chars = self::pipeline(&spec.replace("word5", "char1"));
        says("a scalar value", &format!("{:016x}", chars.token_hash("a")));
    }
}

#[test]
fn similarities_are_those_of_the_code() {
    let (fss, oph, classic) = (SketchKind::Fss, SketchKind::Oph, SketchKind::Classic);
    let k256 = SignatureShape { k: 256, bits: 8 };
    let k64 = SignatureShape { k: 64, bits: 32 };
    let rounded = |value: f64| {
        let text = format!("{value:.6}");
        if value == 0.0 || value == 1.0 || value == 0.8 { format!("{value}") } else { text }
    };
    for (m, shape, sketch) in [
        (0, k256, fss),
        (204, k256, fss),
        (205, k256, fss),
        (205, k256, oph),
        (242, k256, fss),
        (256, k256, fss),
        (51, k64, classic),
    ] {
        let (low, high) = interval95(m, shape, Some(sketch));
        let [value, low, high] = [similarity(m, shape), low, high].map(rounded);
        let (SignatureShape { k, bits }, name) = (shape, sketch.name());
        says("a similarity", &format!("| {m} | {k} × {bits} | {name} | {value} | {low} | {high} |"));
    }
    let least = |threshold, k, bits| matching_min(threshold, SignatureShape { k, bits });
    let told = [least(0.8, 256, 8), least(0.8, 128, 16), least(0.8, 64, 32), least(0.5, 256, 8)];
    assert_eq!(told, [205, 103, 52, 129], "as the page says below the table");
}

/// Between two letters, a letter or number of a script without spaces is a token of its own. Any other letter or number
/// joins the two letters to one token.
#[test]
fn the_ranges_of_unspaced_scripts_are_those_of_the_code() {
    let block = PAGE.split("```\n0E01-0E30").nth(1).and_then(|rest| rest.split("```").next()).expect("the ranges");
    let block = format!("0E01-0E30{block}");
    let number = |hex: &str| u32::from_str_radix(hex, 16).expect("a code point");
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        (number(first), number(last))
    };
    let ranges: Vec<_> = block.split_whitespace().map(range).collect();
    assert_eq!(ranges.len(), 73);
    assert_eq!(ranges.iter().map(|(first, last)| last - first + 1).sum::<u32>(), 104_015);
    let spec = TextSpec {
        fold: Fold::None,
        marks: Marks::Keep,
        digits: Digits::Keep,
        shingling: Shingling::Word(1),
        ..TextSpec::default()
    };
    let pipeline = Pipeline::new(&spec, None).expect("a valid spec");
    for c in (0..0x11_0000).filter_map(char::from_u32) {
        let listed = ranges.iter().any(|&(first, last)| (first..=last).contains(&u32::from(c)));
        let alone = pipeline.tokens(&format!("a{c}b")).len() == 3;
        assert_eq!(alone, listed, "{c:?}");
    }
}
