//! Vector instructions do not change the results for whole texts: canonical text, token hashes, shingles, ranks and
//! signatures. Every kind of instructions that this processor has is compared with the portable form. The tests in
//! `src/simd` test single loops.

#![allow(clippy::print_stdout)] // seeds, shown when a test fails

use hapax_core::{Pipeline, SecretKey, SignScratch, Signed, Simd, Spec, SplitMix64, Stages, TextSpec};
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, Script};

const SEED: u64 = 20_261_121;

fn specs() -> Vec<TextSpec> {
    let key = format!("key={:016x}", secret().fingerprint());
    let mut specs = vec![Spec::default().to_string()];
    for (from, to) in [
        ("word5", "word1"),
        ("word5", "word2"),
        ("word5", "word32"),
        ("word5", "char1"),
        ("word5", "char7"),
        ("nfkc_casefold", "nfkc"),
        ("nfkc_casefold", "none"),
        ("marks=keep", "marks=strip"),
        ("digits=keep", "digits=zero"),
        ("fss256x8", "fss64x8"),
        ("fss256x8", "fss1024x16"),
        ("fss256x8", "classic128x8"),
        ("fss256x8", "oph256x32"),
        ("key=none", &key),
    ] {
        specs.push(specs[0].replace(from, to));
    }
    let text_spec = |spec: &String| match Spec::parse(spec).expect("a changed default") {
        Spec::Text(spec) => spec,
        Spec::External { .. } => unreachable!("the default spec is of texts"),
    };
    specs.iter().map(text_spec).collect()
}

fn secret() -> SecretKey {
    SecretKey::new([9; 16])
}

/// All results for a text.
#[derive(Debug, PartialEq)]
struct Made {
    canonical: String,
    hashes: Vec<u64>,
    set: Vec<u64>,
    signed: Option<Signed>,
    ranks: Vec<u64>,
}

fn make(pipeline: &Pipeline, scratch: &mut SignScratch, text: &str) -> Made {
    let mut stages = Stages::new(pipeline);
    let canonical = stages.canonical(text).to_owned();
    let hashes = stages.token_hashes(&canonical).to_owned();
    let set = pipeline.shingle_set(scratch, text);
    let signed = pipeline.sign(scratch, text);
    Made { canonical, hashes, set, signed, ranks: pipeline.ranks(scratch).as_slice().to_owned() }
}

/// Checks every text under every spec.
fn all_agree(texts: impl IntoIterator<Item = String>) {
    let of = |simd| -> Vec<Pipeline> {
        let with = |spec| Pipeline::with_simd(spec, Some(&secret()), simd).expect("a valid spec");
        specs().iter().map(with).collect()
    };
    let portable = of(Simd::PORTABLE);
    let others: Vec<(Simd, Vec<Pipeline>)> =
        Simd::available().filter(|&simd| simd != Simd::PORTABLE).map(|simd| (simd, of(simd))).collect();
    let mut scratch = SignScratch::default();
    for text in texts {
        for (i, pipeline) in portable.iter().enumerate() {
            let expected = make(pipeline, &mut scratch, &text);
            for (simd, pipelines) in &others {
                let made = make(&pipelines[i], &mut scratch, &text);
                assert!(made == expected, "{simd:?} {}: {text:?}", Spec::Text(pipeline.spec().clone()));
            }
        }
    }
}

#[test]
fn random_bytes_as_text() {
    println!("seed {SEED}");
    let mut generator = SplitMix64::new(SEED);
    all_agree((0..300).map(|round| {
        let bytes: Vec<u8> = (0..round * 2)
            .map(|_| match (round % 3, generator.next_u64()) {
                (0, random) => random as u8,
                (1, random) => b" \t\nabcdefXYZ019_-.\xc3\xa9\xcc\x81"[random as usize % 22],
                (_, random) if random % 5 == 0 => b' ',
                (_, random) => b'a' + (random >> 8) as u8 % 26,
            })
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }));
}

/// Some characters of each script and of each general category, alone, in words, and with ASCII between them.
#[test]
fn every_script_and_category() {
    println!("seed {SEED}");
    let (scripts, categories) = (CodePointMapData::<Script>::new(), CodePointMapData::<GeneralCategory>::new());
    let mut classes = std::collections::BTreeMap::<(u16, u8), Vec<char>>::new();
    for c in '\0'..=char::MAX {
        let class = (scripts.get(c).to_icu4c_value(), categories.get(c) as u8);
        if categories.get(c) != GeneralCategory::Unassigned && categories.get(c) != GeneralCategory::PrivateUse {
            classes.entry(class).or_default().push(c);
        }
    }
    assert!(classes.len() > 400, "{} classes", classes.len());
    let mut generator = SplitMix64::new(SEED);
    let every: Vec<char> = classes.values().map(|class| class[generator.next_u64() as usize % class.len()]).collect();
    let mut texts: Vec<String> = every.chunks(40).map(|some| some.iter().collect()).collect();
    for class in classes.values() {
        let mut word = String::new();
        for _ in 0..12 {
            word.push(class[generator.next_u64() as usize % class.len()]);
            match generator.next_u64() % 8 {
                0 => word.push(' '),
                1 => word.push_str("Az9"),
                2 => word.push(every[generator.next_u64() as usize % every.len()]),
                _ => {}
            }
        }
        texts.push(word);
    }
    all_agree(texts);
}

/// Results must not depend on positions within the blocks of 64 bytes and the pieces of 4,096 bytes.
#[test]
fn edges_of_blocks_and_pieces() {
    let odd =
        ["", " ", "\n \t", "é", "É", "e\u{301}", "\u{301}", "字", "ｱﾞ", "ﬁ", "𝐀", "\u{3000}", "\u{200b}", "ǅ", "x y"];
    let mut texts = Vec::new();
    for odd in odd {
        for at in (0..=2).chain(60..=67).chain(124..=130).chain(4_090..=4_099) {
            // A filler without spaces makes long tokens. A filler with spaces makes words.
            for filler in ["Word and word, ", "abcdefghij"] {
                let mut text: String = filler.chars().cycle().take(at).collect();
                text.push_str(odd);
                text.push_str("tail of it");
                texts.push(text);
            }
        }
    }
    all_agree(texts);
}

#[test]
fn long_tokens() {
    let mut texts = Vec::new();
    for len in [62, 63, 64, 65, 191, 192, 193, 254, 255, 256, 257, 258, 511, 512, 513, 4_096, 5_000] {
        texts.extend(["x", "é", "字", "क्", "x\u{301}"].map(|unit| format!("a {} b", unit.repeat(len))));
        texts.push(format!("{}é{}", "y".repeat(len), "z".repeat(len)));
    }
    all_agree(texts);
}
