//! Tests of canonical text. Texts that users expect to be equal are equal. A slow reference, made of the Unicode
//! library's own parts, has the same results. A text that is sent in pieces has the same result as the whole text.

#![allow(clippy::print_stdout)] // seeds and figures, shown when a test fails

use hapax_core::normalise::Normaliser;
use hapax_core::{Digits, Fold, IllFormed, Marks, Pipeline, Shingling, SignScratch, SplitMix64, TextSpec};
use icu_casemap::CaseMapper;
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup, WhiteSpace};
use icu_properties::{CodePointMapData, CodePointSetData};

const SEED: u64 = 20_251_109;

fn canonical(fold: Fold, marks: Marks, digits: Digits, text: &str) -> String {
    let mut out = Vec::new();
    let mut normaliser = Normaliser::new(fold, marks, digits);
    normaliser.push(text, &mut out);
    normaliser.finish(&mut out);
    utf8(out)
}

fn utf8(text: Vec<u8>) -> String {
    String::from_utf8(text).expect("canonical text is UTF-8")
}

fn folded(text: &str) -> String {
    canonical(Fold::NfkcCasefold, Marks::Keep, Digits::Keep, text)
}

fn options() -> impl Iterator<Item = (Fold, Marks, Digits)> {
    [Fold::NfkcCasefold, Fold::Nfkc, Fold::None].into_iter().flat_map(|fold| {
        [Marks::Keep, Marks::Strip]
            .into_iter()
            .flat_map(move |marks| [Digits::Keep, Digits::Zero].into_iter().map(move |digits| (fold, marks, digits)))
    })
}

/// The definition, written for clarity. The steps are: fold, decompose, strip, zero, compose, collapse.
fn reference(fold: Fold, marks: Marks, digits: Digits, text: &str) -> String {
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let white_space = CodePointSetData::new::<WhiteSpace>();
    let categories = CodePointMapData::<GeneralCategory>::new();
    let classes = CanonicalCombiningClassMapBorrowed::new();
    let (nfc, nfkc) = (ComposingNormalizerBorrowed::new_nfc(), ComposingNormalizerBorrowed::new_nfkc());
    let (nfd, nfkd) = (DecomposingNormalizerBorrowed::new_nfd(), DecomposingNormalizerBorrowed::new_nfkd());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut mapped: Vec<char> = Vec::new();
    for c in text.chars() {
        let mut one = c.to_string();
        match fold {
            Fold::None => {}
            Fold::Nfkc => one = nfkd.normalize(&one).into_owned(),
            Fold::NfkcCasefold => loop {
                let next: String = CaseMapper::new().fold_string(&nfkc.normalize(&one)).into_owned();
                let next: String = next.chars().filter(|&c| !ignorable.contains(c)).collect();
                let next = nfkc.normalize(&next).into_owned();
                if next == one {
                    one = nfd.normalize(&one).into_owned();
                    break;
                }
                one = next;
            },
        }
        mapped.extend(one.chars());
    }
    if marks == Marks::Strip {
        mapped.retain(|&c| !GeneralCategoryGroup::Mark.contains(categories.get(c)));
    }
    if digits == Digits::Zero {
        for c in &mut mapped {
            if categories.get(*c) == GeneralCategory::DecimalNumber {
                *c = '0';
            }
        }
    }
    let composed = if fold == Fold::None {
        mapped.into_iter().collect()
    } else {
        // Each run of thirty non-starters is normalised separately from the rest.
        let (mut blocks, mut run) = (vec![String::new()], 0);
        for c in mapped {
            let is_starter = classes.get_u8(c) == 0;
            if !is_starter && run == 30 {
                blocks.push(String::new());
                run = 0;
            }
            run = if is_starter { 0 } else { run + 1 };
            blocks.last_mut().expect("never empty").push(c);
        }
        blocks.iter().map(|block| nfc.normalize(block)).collect::<String>()
    };
    let words: Vec<&str> = composed.split(|c| white_space.contains(c)).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Texts that combine everything that may go wrong.
fn random_text(generator: &mut SplitMix64, len: usize) -> String {
    const POOLS: [&str; 8] = [
        "abcXYZ 019 ,.-'\t\n",
        "ÀéîõüßẞŒﬁǅıİſK",
        "\u{300}\u{301}\u{323}\u{31b}\u{345}\u{338}\u{327}\u{5b0}\u{64b}\u{3099}\u{20d0}\u{93c}",
        "αΣςΐάῬᾳἈжЙёЇ",
        "한국어글\u{1112}\u{1161}\u{11ab}\u{1100}\u{1161}\u{11a8}\u{11a7}각",
        "漢字かがカガｶﾞ０９①㍿豈ไทยที่",
        "\u{200b}\u{200d}\u{fe0f}\u{ad}\u{34f}\u{feff}\u{85}\u{a0}\u{2003}\u{2028}\u{3000}\u{1c}",
        "नमस्तेক্ষোคำကြောင်းខ្មែរ\u{9c7}\u{9be}\u{dd9}\u{dcf}\u{dca}🎉👩‍💻❤️１٣५",
    ];
    let mut text = String::new();
    while text.chars().count() < len {
        let roll = generator.next_u64();
        match roll % 40 {
            0 => {
                let mark = POOLS[2].chars().nth(roll as usize / 64 % 12).expect("there are 12");
                text.extend(std::iter::repeat_n(mark, (roll >> 32) as usize % 70));
            }
            1 => text.extend(char::from_u32((roll >> 20) as u32 % 0x11_0000)),
            _ => {
                let pool = POOLS[(roll >> 8) as usize % POOLS.len()];
                for _ in 0..=(roll >> 16) % 4 {
                    let at = generator.next_u64() as usize % pool.chars().count();
                    text.extend(pool.chars().nth(at));
                }
            }
        }
    }
    text
}

/// Tests long runs of characters that fold to themselves or to one other character of equal, smaller or larger size.
/// The runs also have a few characters that compose. The code takes such runs 64 bytes at a time.
#[test]
fn long_runs_are_folded_as_the_definition_says() {
    const POOLS: [&str; 8] = [
        "abcXYZ 019,.\n",
        "éàÿçœÉÀŸŒĀāſßẞ×÷",
        "жЖёЁѣѢџЏҐґΣςάΆ",
        "一丁龥鿿㐀䷀侀豈",
        "かがガｶ。，！０Ａ①",
        "한글각–—“”…\u{a0}\u{3000}",
        "ȺⱥȾKÅℵΩ\u{1e9e}",
        "\u{301}\u{323}\u{3099}\u{309a}\u{200b}e\u{11a8}",
    ];
    println!("seed {SEED}");
    let mut generator = SplitMix64::new(SEED);
    for round in 0..600 {
        let mut text = String::new();
        while text.len() < round {
            // Only one run in 36 is from the last pool, whose characters are not plain.
            let pool = generator.next_u64() as usize % 36 / 5;
            let pool: Vec<char> = POOLS[pool].chars().collect();
            for _ in 0..=generator.next_u64() % (1 << (round % 6)) {
                text.push(pool[generator.next_u64() as usize % pool.len()]);
            }
        }
        for (fold, marks, digits) in options() {
            let expected = reference(fold, marks, digits, &text);
            assert_eq!(canonical(fold, marks, digits, &text), expected, "{fold:?} {marks:?} {digits:?} of {text:?}");
            let (start, end) =
                text.split_at(text.floor_char_boundary(generator.next_u64() as usize % (text.len() + 1)));
            let (mut normaliser, mut out) = (Normaliser::new(fold, marks, digits), Vec::new());
            normaliser.push(start, &mut out);
            normaliser.push(end, &mut out);
            normaliser.finish(&mut out);
            assert_eq!(utf8(out), expected, "{fold:?} {marks:?} {digits:?} of {start:?} and {end:?}");
        }
    }
}

#[test]
fn canonical_text_is_what_the_definition_says() {
    println!("seed {SEED}");
    let mut generator = SplitMix64::new(SEED);
    for round in 0..1_500 {
        let text = random_text(&mut generator, 1 + round % 60);
        for (fold, marks, digits) in options() {
            assert_eq!(
                canonical(fold, marks, digits, &text),
                reference(fold, marks, digits, &text),
                "{fold:?} {marks:?} {digits:?} of {text:?}, round {round}"
            );
        }
    }
}

#[test]
fn every_scalar_value_between_letters_is_what_the_definition_says() {
    for c in (0..0x11_0000).filter_map(char::from_u32).filter(|&c| {
        // All ideographs and syllables without a mapping are treated in the same way, so a few of each are enough.
        !matches!(c, '\u{3500}'..='\u{4d00}' | '\u{4f00}'..='\u{9f00}' | '\u{ad00}'..='\u{d700}' | '\u{20100}'..='\u{2f7ff}' | '\u{2fb00}'..='\u{dffff}' | '\u{e2000}'..)
    }) {
        let text = format!("A{c}\u{301}b");
        assert_eq!(folded(&text), reference(Fold::NfkcCasefold, Marks::Keep, Digits::Keep, &text), "{c:?}");
    }
}

#[test]
fn ascii_alone_is_what_the_general_path_makes_of_it() {
    let mut generator = SplitMix64::new(SEED);
    for (fold, marks, digits) in options() {
        for round in 0..200 {
            let text: String = (0..round).map(|_| char::from(generator.next_u64() as u8 & 0x7f)).collect();
            assert_eq!(canonical(fold, marks, digits, &text), reference(fold, marks, digits, &text), "{text:?}");
            // U+2E31 composes with nothing, and the code uses its general path for every character next to it.
            let mixed: String = text.chars().flat_map(|c| [c, '\u{2e31}']).collect();
            let expected = reference(fold, marks, digits, &mixed);
            assert_eq!(canonical(fold, marks, digits, &mixed), expected, "{mixed:?}");
        }
    }
}

#[test]
fn cutting_a_text_anywhere_changes_nothing() {
    println!("seed {SEED}");
    let mut generator = SplitMix64::new(SEED);
    for round in 0..300 {
        let text = random_text(&mut generator, 1 + round % 90);
        let bytes = text.as_bytes();
        for (fold, marks, digits) in options() {
            let expected = canonical(fold, marks, digits, &text);
            let in_pieces = |cuts: &mut dyn FnMut() -> usize| {
                let (mut normaliser, mut out) = (Normaliser::new(fold, marks, digits), Vec::new());
                let mut rest = bytes;
                while !rest.is_empty() {
                    let (piece, more) = rest.split_at(cuts().clamp(1, rest.len()));
                    normaliser.push_bytes(piece, IllFormed::Refuse, &mut out).expect("well-formed");
                    rest = more;
                }
                normaliser.finish_bytes(IllFormed::Refuse, &mut out).expect("well-formed");
                utf8(out)
            };
            assert_eq!(in_pieces(&mut || 1), expected, "byte by byte: {text:?}");
            assert_eq!(in_pieces(&mut || generator.next_u64() as usize % 9), expected, "{text:?}");
        }
        for at in 0..=bytes.len() {
            let (mut normaliser, mut out) =
                (Normaliser::new(Fold::NfkcCasefold, Marks::Keep, Digits::Keep), Vec::new());
            for piece in [&bytes[..at], &bytes[at..]] {
                normaliser.push_bytes(piece, IllFormed::Refuse, &mut out).expect("well-formed");
            }
            normaliser.finish_bytes(IllFormed::Refuse, &mut out).expect("well-formed");
            assert_eq!(utf8(out), folded(&text), "cut at {at}: {text:?}");
        }
    }
}

#[test]
fn signatures_do_not_depend_on_how_the_text_is_cut() {
    println!("seed {SEED}");
    let mut generator = SplitMix64::new(SEED);
    let mut scratch = SignScratch::default();
    for shingling in [Shingling::Word(5), Shingling::Word(1), Shingling::Char(5), Shingling::Char(32)] {
        let pipeline = Pipeline::new(&TextSpec { shingling, ..TextSpec::default() }, None).expect("a valid spec");
        for len in [0, 1, 7, 300, 9_000] {
            let text = random_text(&mut generator, len);
            let expected = pipeline.sign(&mut scratch, &text);
            for most in [1, 3, 1_000, 10_000] {
                let mut signer = pipeline.signer(&mut scratch);
                let mut rest = text.as_bytes();
                while !rest.is_empty() {
                    let (piece, more) = rest.split_at((generator.next_u64() as usize % most + 1).min(rest.len()));
                    signer.push_bytes(piece, IllFormed::Refuse).expect("well-formed");
                    rest = more;
                }
                assert_eq!(signer.finish_bytes(IllFormed::Refuse), Ok(expected.clone()), "{shingling:?} {len} {most}");
            }
        }
    }
}

#[test]
fn ill_formed_bytes_are_refused_with_their_place_or_replaced_as_the_standard_library_does() {
    let cases: [(&[u8], u64); 10] = [
        (b"ab\xffcd", 2),
        (b"\x80", 0),
        (b"abc\xe2\x82", 3),
        (b"\xe2\x82a\xe2\x82\xac", 0),
        (b"x\xf0\x9f\x98y", 1),
        (b"\xed\xa0\x80", 0),
        (b"a\xc0\xafb", 1),
        (b"\xef\xbb\xbfab\xfe", 5),
        (b"\xf4\x90\x80\x80", 0),
        (b"\xe2\xe2\xe2\x82\xac\xf0\x9f", 0),
    ];
    for (bytes, place) in cases {
        let lossy = String::from_utf8_lossy(bytes);
        for size in 1..=bytes.len() {
            let (mut normaliser, mut out) = (Normaliser::new(Fold::None, Marks::Keep, Digits::Keep), Vec::new());
            for piece in bytes.chunks(size) {
                normaliser.push_bytes(piece, IllFormed::Replace, &mut out).expect("replaced");
            }
            normaliser.finish_bytes(IllFormed::Replace, &mut out).expect("replaced");
            assert_eq!(utf8(out), lossy.trim_start_matches('\u{feff}'), "{bytes:x?} in {size}s");

            let (mut normaliser, mut out) = (Normaliser::new(Fold::None, Marks::Keep, Digits::Keep), Vec::new());
            let refused = bytes
                .chunks(size)
                .find_map(|piece| normaliser.push_bytes(piece, IllFormed::Refuse, &mut out).err())
                .or_else(|| normaliser.finish_bytes(IllFormed::Refuse, &mut out).err());
            assert_eq!(refused.map(|error| error.offset), Some(place), "{bytes:x?} in {size}s");
        }
    }
}

#[test]
fn texts_that_readers_take_for_equal_are_equal() {
    for (a, b) in [
        ("STRASSE", "straße"),
        ("STRASSE", "STRAẞE"),
        ("ΟΔΟΣ", "οδος"),
        ("J\u{30c}", "\u{1f0}"),
        ("Tiếng Việt", "Tie\u{302}\u{301}ng Vie\u{323}\u{302}t"),
        ("tiếng việt", "TIE\u{302}\u{301}NG VIE\u{302}\u{323}T"),
        ("한국어", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}"),
        ("ｶﾞｷﾞ", "ガギ"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
        ("zero\u{200b}width\u{200d}joiners\u{ad}", "zerowidthjoiners"),
        ("ﬁne ①", "fine 1"),
        ("K Å", "k å"),
        ("a\u{323}\u{307}", "a\u{307}\u{323}"),
        ("\u{feff}bom", "bom"),
        (" \u{a0}many\u{2003}\r\n\t spaces\u{3000} ", "many spaces"),
        ("❤️", "❤"),
    ] {
        assert_eq!(folded(a), folded(b), "{a} and {b}");
        for (at, _) in a.char_indices() {
            let (mut normaliser, mut out) =
                (Normaliser::new(Fold::NfkcCasefold, Marks::Keep, Digits::Keep), Vec::new());
            normaliser.push(&a[..at], &mut out);
            normaliser.push(&a[at..], &mut out);
            normaliser.finish(&mut out);
            assert_eq!(utf8(out), folded(b), "{a} cut at {at}");
        }
    }
    assert_ne!(folded("resume"), folded("résumé"));
    let stripped = |text| canonical(Fold::NfkcCasefold, Marks::Strip, Digits::Zero, text);
    assert_eq!(stripped("Résumé 2024-11-09"), "resume 0000-00-00");
    assert_eq!(stripped("٢٠٢٤"), "0000");
    assert_eq!(canonical(Fold::Nfkc, Marks::Keep, Digits::Keep, "ＡＢ ﬁ"), "AB fi");
    assert_eq!(canonical(Fold::None, Marks::Keep, Digits::Keep, " ＡＢ  e\u{301} "), "ＡＢ e\u{301}");
}

#[test]
fn canonical_text_is_its_own_canonical_text() {
    println!("seed {SEED}");
    let mut generator = SplitMix64::new(SEED);
    for round in 0..3_000 {
        let text = random_text(&mut generator, 1 + round % 80);
        for (fold, marks, digits) in options() {
            let once = canonical(fold, marks, digits, &text);
            // The only exception: a second pass removes a BOM that the first pass moved to the front.
            if !once.starts_with('\u{feff}') {
                assert_eq!(canonical(fold, marks, digits, &once), once, "{fold:?} {marks:?} {digits:?} of {text:?}");
            }
        }
    }
}

#[test]
fn a_mountain_of_marks_is_cut_and_nothing_of_it_is_lost() {
    let zalgo = format!("e{}x", "\u{301}\u{323}".repeat(1_000));
    let out = canonical(Fold::Nfkc, Marks::Keep, Digits::Keep, &zalgo);
    let nfd = DecomposingNormalizerBorrowed::new_nfd().normalize(&out).into_owned();
    let count = |text: &str, c| text.chars().filter(|&held| held == c).count();
    assert_eq!((count(&nfd, '\u{301}'), count(&nfd, '\u{323}'), count(&nfd, 'x')), (1_000, 1_000, 1));
    assert!(out.starts_with('\u{1eb9}'), "the first thirty are ordered and composed: {out:?}");
}
