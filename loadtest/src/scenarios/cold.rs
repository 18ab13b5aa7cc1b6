//! Checks of new texts, alone and during a mix of checks that name documents whose records are only on the disk: the
//! server was restarted, and the system has dropped its files from the cache.

use std::sync::Arc;

use anyhow::{Result, ensure};
use bytes::Bytes;
use hyper::Uri;

use super::companion::Companion;
use super::import::insert_all;
use crate::answers::Verdict;
use crate::bench::{Bench, runtime};
use crate::client::{Answer, Fate, Pace, Request, Tally, Work};
use crate::options::Args;
use crate::queries::NEW;
use crate::scrape::sum;
use crate::texts::{Nearness, Texts, words_to_replace};
use crate::works::{Prepared, check_body, document_body, path, unexpected};

/// The similarity of a check to the document that it resembles.
const JACCARD: f64 = 0.95;
/// The number of checks in ten of the mix that resemble a stored document.
const NEAR_OF_TEN: u64 = 3;
/// The number of prepared checks of new texts.
const NEWS: u64 = 4_000;
/// The share of the capacity that is used for new texts, and for the mix.
const LOAD: f64 = 0.25;
/// The largest factor by which the slowest of a thousand checks of new texts may be slower while the mix runs.
const RATIO_MAX: f64 = 2.0;
/// The least number of ids read from the disk, as a share of the documents that the mix resembles.
const COLD_MIN: f64 = 0.9;

pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut bench = Bench::new("cold", args, &[])?;
    let texts = Arc::clone(&bench.texts);
    let document = move |n| document_body("doc", n, texts.fresh(n).as_bytes());
    insert_all(&bench, "default", args.documents, document)?;
    bench.restart_cold()?;

    let target = path("default", "check");
    let new = |n| Request::post("new", &target, check_body(bench.texts.fresh(NEW + n).as_bytes()));
    let news = Prepared::new((0..NEWS).map(new).collect());
    let capacity = bench.capacity(&news)?;
    let (rate, seconds, connections) = (capacity * LOAD, args.seconds, args.connections);
    // Each document is used once, so that none is in a cache. The second mix has other documents than the first.
    let each = (rate * seconds) as u64 + 1;
    ensure!(2 * each <= args.documents, "the mix resembles {} documents: --documents must be more", 2 * each);
    let mixes = [0, each].map(|first| Arc::new(Mix::prepare(&bench.texts, first, each, args.documents)));
    let pace = bench.open(rate);
    let alone = bench.faultless("checks of new texts", &news, pace, seconds)?;

    let before = Cold::of(&bench)?;
    let plan = (pace, seconds, connections);
    let companion = Companion::start(&bench, runtime(args.threads, 0)?, "a cold mix", &mixes[0], plan);
    let beside = bench.faultless("checks of new texts, and", &news, pace, seconds)?;
    let tally = companion.finish(&mut bench)?;
    bench.report.nothing_wrong("the cold mix", &tally);
    before.report(&mut bench)?;
    let slowest = |tally: &Tally| tally.good().value_at_quantile(0.999).max(1) as f64;
    let what = "p99.9 of checks of new texts beside the cold mix, compared with alone";
    bench.report.at_most(what, slowest(&beside) / slowest(&alone), RATIO_MAX, true);

    // A mix sends at most as many checks a second as were measured for new texts. So in this time, no document is used
    // twice.
    bench.faultless("a cold mix, as fast as it goes", &mixes[1], Pace::Closed, seconds * LOAD)?;
    bench.report.finish(args)
}

/// The server's reads from its disk.
struct Cold {
    missed: f64,
    found: f64,
    bytes: u64,
}

impl Cold {
    fn of(bench: &Bench) -> Result<Self> {
        let scrape = bench.scrape()?;
        let lookups = |result: &str| {
            sum(&scrape, &format!(r#"hapax_id_cache_lookups_total{{collection="default",result="{result}"}}"#))
        };
        let bytes = bench.disk_bytes_read().unwrap_or_default();
        Ok(Self { missed: lookups("miss"), found: lookups("hit"), bytes })
    }

    /// Reports the reads since this value was taken. At least nine in ten ids must have come from the disk.
    fn report(&self, bench: &mut Bench) -> Result<()> {
        let now = Self::of(bench)?;
        let (missed, found) = (now.missed - self.missed, now.found - self.found);
        bench.report.figure("ids read from the disk", missed)?;
        bench.report.figure("bytes read from the disk for each of them", (now.bytes - self.bytes) as f64 / missed)?;
        bench.report.at_most("share of the ids that were in memory", found / (missed + found), 1.0 - COLD_MIN, false);
        Ok(())
    }
}

/// Checks of which three in ten resemble a document. No two of them resemble the same one.
struct Mix {
    target: Uri,
    bodies: Vec<Bytes>,
    /// Check `n` may resemble the document `(first + n) * step`, modulo the number of documents. The documents of the
    /// mix are therefore spread over the whole file.
    first: u64,
    step: u64,
    documents: u64,
}

impl Mix {
    fn prepare(texts: &Texts, first: u64, count: u64, documents: u64) -> Self {
        // The step is coprime to the number of documents, so that no document comes twice.
        let step = (documents / 2 + 1..).find(|step| gcd(*step, documents) == 1).unwrap_or(1);
        let mut mix = Self { target: path("default", "check"), bodies: Vec::new(), first, step, documents };
        let mut nearness = Nearness::new();
        for n in 0..count {
            let text = match mix.original(n) {
                None => texts.fresh(NEW + NEWS + first + n),
                Some(original) => {
                    let text = texts.fresh(original);
                    let words = words_to_replace(nearness.shingles(&text), JACCARD);
                    texts.near(&text, words.max(1), &mut texts.random(30, first + n))
                }
            };
            mix.bodies.push(check_body(text.as_bytes()));
        }
        mix
    }

    fn original(&self, n: u64) -> Option<u64> {
        let number = u128::from(self.first + n) * u128::from(self.step) % u128::from(self.documents.max(1));
        (n % 10 < NEAR_OF_TEN).then_some(number as u64)
    }
}

impl Work for Mix {
    type Note = Option<u64>;

    fn request(&self, n: u64) -> (Request, Option<u64>) {
        let n = n % self.bodies.len() as u64;
        (Request::post("mix", &self.target, self.bodies[n as usize].clone()), self.original(n))
    }

    fn judge(&self, original: Option<u64>, answer: &Answer) -> Fate {
        match Verdict::parse(&answer.body).filter(|_| answer.status == 200) {
            Some(verdict) if original.is_none_or(|original| verdict.names(original)) => Fate::Good,
            _ => unexpected(answer),
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
