//! Times gaoya for `crates/hapax-core/benches/peers.rs`, in a separate process that is built for this very machine.
//!
//! `hapax-peers FILE` reads texts, each a `u32` length (little-endian) and that many bytes of UTF-8. It prints lines of
//! tab-separated fields: `row`, a command and its description; `note` and a text; finally `ready`. Then it answers each
//! command on stdin with the nanoseconds per document: the median of the passes over all documents that fit into 100
//! ms. It ends when its stdin ends. `peers.py` has the same protocol.

use std::error::Error;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

use gaoya::minhash::{MinHasher, MinHasher32};
use gaoya::text::{shingle_tokens, whitespace_split};

const K: usize = 128;
const WORDS: usize = 5;
const MEASURE_FOR: Duration = Duration::from_millis(100);
const PASSES_MIN: usize = 3;

const ROWS: [(&str, &str); 6] = [
    ("text fnv", "gaoya 128x32, text by `shingle_tokens`"),
    ("text ahash", "gaoya 128x32, text by `shingle_tokens`, ahash"),
    ("windows fnv", "gaoya 128x32, text by windows of words"),
    ("windows ahash", "gaoya 128x32, text by windows of words, ahash"),
    ("slices fnv", "gaoya 128x32, shingles cut beforehand"),
    ("slices ahash", "gaoya 128x32, shingles cut beforehand, ahash"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).ok_or("usage: hapax-peers FILE")?;
    let texts = read(&std::fs::read(file)?)?;
    let lower: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
    let slices: Vec<Vec<&str>> = lower.iter().map(|text| cut(text)).collect();
    let fnv = MinHasher32::new(K);
    let ahash = MinHasher32::new_with_hasher(K, ahash::RandomState::with_seeds(1, 2, 3, 4));

    let mut out = io::stdout().lock();
    for (command, what) in ROWS {
        writeln!(out, "row\t{command}\t{what}")?;
    }
    let shingles: usize = slices.iter().map(Vec::len).sum();
    writeln!(
        out,
        "note\tgaoya {}, hashing with fnv (its default and the fastest it brings) or with ahash {}; built for {}; {} \
         shingles a document",
        locked_version("gaoya")?,
        locked_version("ahash")?,
        target_features(),
        shingles / slices.len().max(1),
    )?;
    writeln!(out, "ready")?;
    out.flush()?;

    for command in io::stdin().lock().lines() {
        let command = command?;
        let (form, hasher) = command.split_once(' ').unwrap_or((&command, ""));
        let ns = match hasher {
            "fnv" => measure(form, &fnv, &texts, &slices),
            "ahash" => measure(form, &ahash, &texts, &slices),
            _ => None,
        };
        writeln!(out, "{:.1}", ns.ok_or_else(|| format!("no such command: {command:?}"))?)?;
        out.flush()?;
    }
    Ok(())
}

fn measure<B: BuildHasher>(form: &str, hasher: &MinHasher32<B>, texts: &[String], slices: &[Vec<&str>]) -> Option<f64> {
    match form {
        "text" => Some(median_ns(texts, |text| {
            let lower = text.to_lowercase();
            let words: Vec<&str> = whitespace_split(&lower).collect();
            hasher.create_signature(shingle_tokens(&words, WORDS))
        })),
        // No string is built for a shingle: its words are hashed in place.
        "windows" => Some(median_ns(texts, |text| {
            let lower = text.to_lowercase();
            let words: Vec<&str> = whitespace_split(&lower).collect();
            hasher.create_signature(words.windows(WORDS))
        })),
        "slices" => Some(median_ns(slices, |slices| hasher.create_signature(slices.iter()))),
        _ => None,
    }
}

fn median_ns<D, S>(documents: &[D], sign: impl Fn(&D) -> S) -> f64 {
    let mut passes = Vec::new();
    let start = Instant::now();
    while passes.len() < PASSES_MIN || start.elapsed() < MEASURE_FOR {
        let pass = Instant::now();
        for document in documents {
            black_box(sign(black_box(document)));
        }
        passes.push(pass.elapsed().as_nanos() as f64 / documents.len() as f64);
    }
    passes.sort_by(f64::total_cmp);
    passes[passes.len() / 2]
}

/// Returns the windows of words as slices of the text, with the characters between the words.
fn cut(text: &str) -> Vec<&str> {
    let words: Vec<&str> = whitespace_split(text).collect();
    let at = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    words.windows(WORDS).map(|window| &text[at(window[0])..at(window[WORDS - 1]) + window[WORDS - 1].len()]).collect()
}

fn read(mut bytes: &[u8]) -> Result<Vec<String>, Box<dyn Error>> {
    let mut texts = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or("a text is cut off")?;
        texts.push(str::from_utf8(text)?.to_owned());
        bytes = rest;
    }
    if texts.is_empty() { Err("no texts".into()) } else { Ok(texts) }
}

/// Returns the version of a package that this program was built with.
fn locked_version(package: &str) -> Result<&'static str, Box<dyn Error>> {
    let lock = include_str!("../Cargo.lock");
    let after = lock.split_once(&format!("name = \"{package}\"\nversion = \"")).ok_or("not in Cargo.lock")?.1;
    Ok(after.split('"').next().unwrap_or_default())
}

fn target_features() -> &'static str {
    if cfg!(target_feature = "avx512f") {
        "AVX-512"
    } else if cfg!(target_feature = "avx2") {
        "AVX2"
    } else if cfg!(target_feature = "neon") {
        "NEON"
    } else {
        "no wide vectors"
    }
}
