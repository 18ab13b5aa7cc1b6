//! Writes the bodies of requests for another load generator, such as wrk. `make bench-http` sends them to hapax and to
//! its peers. A line is a JSON document. All lines have the same length, so that a program can find line n without an
//! index.

use std::io::{BufWriter, Write};

use anyhow::{Context, Result, bail};

use crate::queries::NEW;
use crate::texts::{Nearness, Random, Texts, words_to_replace};
use crate::works::{check_body, document_body};

/// The length of a line that is sent, with its line break. The JSON is followed by spaces up to this length.
const LINE_BYTES: usize = 2304;
/// The length of a piece of text, with its line break. Ten pieces make a text.
const PIECE_BYTES: usize = 205;
/// The similarity of a check to the document that it resembles.
const JACCARD: f64 = 0.95;
/// The number of checks in ten of a mix that resemble a stored document.
const NEAR_OF_TEN: u64 = 3;
/// The number of documents in a group of near-duplicates.
const GROUP: u64 = 10;
/// The purpose of random numbers that choose documents or words.
const DRAW: u8 = 20;
/// The purpose of random numbers that choose the changes in a text.
const CHANGE: u8 = 21;

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// What to write
    kind: Kind,
    /// Lines to write
    #[arg(long)]
    count: u64,
    /// Stored documents that checks may resemble
    #[arg(long, default_value_t = 100_000)]
    documents: u64,
    /// Seed of the texts
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    /// Documents to store; none resembles another
    Documents,
    /// Documents to store, in groups of ten near-duplicates
    Groups,
    /// Checks of texts that resemble nothing
    Unique,
    /// Checks of which three in ten resemble a stored document
    Mix,
    /// Checks that resemble one stored document each
    Duplicates,
    /// Checks that resemble a whole group
    Tens,
    /// Pieces of text; ten random ones make a text that resembles no other
    Pieces,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let (texts, mut nearness) = (Texts::new(args.seed, 2048), Nearness::new());
    let mut out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    for n in 0..args.count {
        let mut line = args.line(&texts, &mut nearness, n)?;
        line.push(b'\n');
        out.write_all(&line).context("cannot write to standard output")?;
    }
    out.flush().context("cannot write to standard output")?;
    Ok(true)
}

impl Args {
    fn line(&self, texts: &Texts, nearness: &mut Nearness, n: u64) -> Result<Vec<u8>> {
        let mut draw = texts.random(DRAW, n);
        match self.kind {
            Kind::Documents => Ok(document_body("doc", n, texts.fresh(n).as_bytes()).to_vec()),
            Kind::Groups => {
                let text = near(texts, nearness, texts.fresh(n / GROUP), JACCARD, &mut texts.random(CHANGE, n));
                Ok(document_body("group", n, text.as_bytes()).to_vec())
            }
            Kind::Unique => check(texts.fresh(NEW + n)),
            Kind::Mix if n % 10 >= NEAR_OF_TEN => check(texts.fresh(NEW + n)),
            Kind::Mix | Kind::Duplicates => {
                let original = texts.fresh(draw.below(self.documents));
                check(near(texts, nearness, original, JACCARD, &mut draw))
            }
            // All are near-duplicates of the same original, so each resembles the original more than it resembles the
            // others.
            Kind::Tens => check(texts.fresh(draw.below(self.documents / GROUP))),
            Kind::Pieces => {
                let mut piece = String::new();
                texts.extend(&mut piece, PIECE_BYTES, &mut texts.random(DRAW, NEW + n));
                piece.truncate(PIECE_BYTES - 1);
                Ok(piece.into_bytes())
            }
        }
    }
}

fn near(texts: &Texts, nearness: &mut Nearness, original: String, jaccard: f64, random: &mut Random) -> String {
    let words = words_to_replace(nearness.shingles(&original), jaccard);
    texts.near(&original, words.max(1), random)
}

/// Returns the JSON of a check. All checks have the same length.
fn check(text: String) -> Result<Vec<u8>> {
    let mut line = check_body(text.as_bytes()).to_vec();
    if line.len() >= LINE_BYTES {
        bail!("a text of {} bytes is too long for a line", text.len());
    }
    line.resize(LINE_BYTES - 1, b' ');
    Ok(line)
}
