//! Metrics of pages: how their text was extracted, how long the pages are, and how long the extraction takes.

use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};

use crate::telemetry::names::{self, label, value};
use crate::types::Extract;

/// The metrics of all pages of this process.
pub(super) struct PageMeters {
    articles: Counter,
    visible: Counter,
    /// Pages whose main text was wanted and not found.
    given_up: Counter,
    bytes: Counter,
    seconds: Histogram,
}

impl PageMeters {
    pub(super) fn new() -> Self {
        let pages = |how: &'static str| counter!(names::PAGES, label::EXTRACTED => how);
        Self {
            articles: pages(value::EXTRACTED_ARTICLE),
            visible: pages(value::EXTRACTED_VISIBLE),
            given_up: pages(value::EXTRACTED_GIVEN_UP),
            bytes: counter!(names::PAGE_BYTES),
            seconds: histogram!(names::EXTRACT_DURATION),
        }
    }

    /// Counts a page of `bytes` bytes. `asked` is the requested kind of text, and `found` the kind that was extracted.
    pub(super) fn page(&self, asked: Extract, found: Extract, bytes: usize, took: Duration) {
        match (asked, found) {
            (_, Extract::Article) => &self.articles,
            (Extract::Visible, Extract::Visible) => &self.visible,
            (Extract::Article, Extract::Visible) => &self.given_up,
        }
        .increment(1);
        self.bytes.increment(bytes as u64);
        self.seconds.record(took);
    }
}
