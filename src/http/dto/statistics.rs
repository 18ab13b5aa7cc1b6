//! Statistics as JSON: counts of the outcomes of inserts.

use serde::Serialize;

use crate::types::{Label, Statistics};

#[derive(Debug, Serialize)]
pub struct StatisticsPage {
    all: Counts,
    labels: Vec<OfLabel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct OfLabel {
    name: String,
    value: String,
    #[serde(flatten)]
    counts: Counts,
}

#[derive(Debug, Serialize)]
struct Counts {
    documents: u64,
    unique: u64,
    near_duplicates: u64,
    exact_duplicates: u64,
    empty: u64,
    unchanged: u64,
    bytes: u64,
    bytes_saved: u64,
}

impl StatisticsPage {
    /// An upper bound on the size of a label with its counts as JSON, in bytes.
    pub const LABEL_BYTES_MAX: usize = 1024;

    /// `limit` is the requested number of labels. If `labels` has one label more, there is another page.
    pub fn new(all: Statistics, mut labels: Vec<(Label, Statistics)>, limit: usize) -> Self {
        let next_cursor = labels.get(limit).map(|_| labels[limit - 1].0.as_str().to_owned());
        labels.truncate(limit);
        let of_label = |(label, counts): (Label, Statistics)| OfLabel {
            name: label.name().to_owned(),
            value: label.value().to_owned(),
            counts: counts.into(),
        };
        Self { all: all.into(), labels: labels.into_iter().map(of_label).collect(), next_cursor }
    }
}

impl From<Statistics> for Counts {
    fn from(counts: Statistics) -> Self {
        let Statistics { documents, unique, near_duplicates, exact_duplicates, .. } = counts;
        let Statistics { empty, unchanged, bytes, bytes_saved, .. } = counts;
        Self { documents, unique, near_duplicates, exact_duplicates, empty, unchanged, bytes, bytes_saved }
    }
}
