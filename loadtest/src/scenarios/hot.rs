//! Thousands of pages of one template share buckets of the index. Checks of further such pages are compared with checks
//! of ordinary texts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use bytes::Bytes;
use hyper::Uri;

use super::import::{import, insert_all};
use crate::answers::Verdict;
use crate::bench::Bench;
use crate::client::{Answer, Fate, Request, Work};
use crate::options::Args;
use crate::texts::{Nearness, Texts, words_to_replace};
use crate::works::{check_body, document_body, path, unexpected};

/// The number of pages of the template.
const PAGES: u64 = 5_000;
/// The share of a page that comes from the template. With this share, two pages have a similarity of about 0.67.
const TEMPLATE: f64 = 0.8;
const PREPARED: u64 = 2_000;
/// The similarity of a copy to the page that it was made from.
const COPY: f64 = 0.95;
/// The first number of the texts from which pages are made.
const FIRST: u64 = 1 << 41;

pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut bench = Bench::new("hot", args, &[])?;
    import(&bench, "default", args.documents)?;
    load(&mut bench)?;
    bench.report.finish(args)
}

pub(super) fn load(bench: &mut Bench) -> Result<()> {
    let texts = Arc::clone(&bench.texts);
    insert_all(bench, "default", PAGES, move |n| document_body("doc", FIRST + n, page(&texts, n).as_bytes()))?;
    let checks = Arc::new(Checks::prepare(&bench.texts));
    let pace = bench.pace(&checks)?;
    let tally = bench.phase("hot and cold", &checks, pace, bench.args.seconds)?;
    bench.report.nothing_wrong("hot and cold", &tally);
    let share = |part: &AtomicU64, whole: &AtomicU64| {
        part.load(Ordering::Relaxed) as f64 / whole.load(Ordering::Relaxed).max(1) as f64
    };
    let (copies, pages) = (&checks.copies, &checks.pages);
    bench.report.figure("copies of one page that were found", share(&checks.found, copies))?;
    bench.report.figure("checks of template pages that met a limit", share(&checks.incomplete, pages))?;
    Ok(())
}

/// Returns page `n`: the template, followed by its own words.
fn page(texts: &Texts, n: u64) -> String {
    let whole = texts.fresh(FIRST);
    let mut text = whole[..(whole.len() as f64 * TEMPLATE) as usize].to_owned();
    texts.extend(&mut text, whole.len(), &mut texts.random(5, n));
    text
}

/// Checks of pages of the template that are not stored, of copies of stored ones, and of ordinary texts.
struct Checks {
    target: Uri,
    bodies: Vec<(Bytes, Truth)>,
    pages: AtomicU64,
    incomplete: AtomicU64,
    copies: AtomicU64,
    found: AtomicU64,
}

#[derive(Clone, Copy)]
enum Truth {
    Ordinary,
    Page,
    Copy(u64),
}

impl Checks {
    fn prepare(texts: &Texts) -> Self {
        let mut nearness = Nearness::new();
        let mut body = |n: u64| match n % 4 {
            0 | 1 => (check_body(texts.fresh(FIRST * 2 + n).as_bytes()), Truth::Ordinary),
            2 => (check_body(page(texts, PAGES + n).as_bytes()), Truth::Page),
            _ => {
                let mut random = texts.random(6, n);
                let original = random.below(PAGES);
                let text = page(texts, original);
                let replaced = words_to_replace(nearness.shingles(&text), COPY);
                (check_body(texts.near(&text, replaced, &mut random).as_bytes()), Truth::Copy(FIRST + original))
            }
        };
        Self {
            target: path("default", "check?limit=100"),
            bodies: (0..PREPARED).map(&mut body).collect(),
            pages: AtomicU64::new(0),
            incomplete: AtomicU64::new(0),
            copies: AtomicU64::new(0),
            found: AtomicU64::new(0),
        }
    }
}

impl Work for Checks {
    type Note = Truth;

    fn request(&self, n: u64) -> (Request, Truth) {
        let (body, truth) = &self.bodies[(n % PREPARED) as usize];
        let kind = if matches!(truth, Truth::Ordinary) { "cold" } else { "hot" };
        (Request::post(kind, &self.target, body.clone()), *truth)
    }

    fn judge(&self, truth: Truth, answer: &Answer) -> Fate {
        let Some(verdict) = Verdict::parse(&answer.body).filter(|_| answer.status == 200) else {
            return unexpected(answer);
        };
        match truth {
            Truth::Ordinary => {}
            Truth::Page => {
                self.pages.fetch_add(1, Ordering::Relaxed);
                self.incomplete.fetch_add(u64::from(!verdict.complete), Ordering::Relaxed);
            }
            Truth::Copy(original) => {
                let found = verdict.names(original);
                self.copies.fetch_add(1, Ordering::Relaxed);
                self.found.fetch_add(u64::from(found), Ordering::Relaxed);
                // A limit may hide a match, but then the verdict must say so.
                if !found && verdict.complete {
                    return Fate::Wrong("a copy was missed, and the verdict says that it is complete".to_owned());
                }
            }
        }
        Fate::Good
    }
}
