//! Verdicts in Python.

use pyo3::prelude::*;

/// A document that a verdict names.
#[pyclass(frozen, get_all, module = "pyhapax")]
pub(crate) struct Match {
    /// The id of the document; in deduplicate() without ids, the number of its row as a str.
    pub id: String,
    /// The estimated similarity, from 0 to 1.
    pub similarity: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end of the 95 % interval.
    pub high: f64,
    /// Whether the texts have the same words.
    pub exact: bool,
}

#[pymethods]
impl Match {
    fn __repr__(&self) -> String {
        format!("<pyhapax.Match {:?} {:.4}>", self.id, self.similarity)
    }
}

/// The answer about one text.
#[pyclass(frozen, module = "pyhapax")]
pub(crate) struct Verdict {
    /// "unique", "near_duplicate", "exact_duplicate" or "empty".
    #[pyo3(get)]
    pub verdict: &'static str,
    /// The result of an insert: "inserted", "linked", "skipped" or "unchanged". For a check, it is "checked".
    #[pyo3(get)]
    pub outcome: &'static str,
    pub matches: Vec<Py<Match>>,
    /// How many documents were compared.
    #[pyo3(get)]
    pub candidates: usize,
    /// False if a limit may have hidden a match.
    #[pyo3(get)]
    pub complete: bool,
    /// The number of shingles of the text. With few of them, one word changes the similarity a lot. None for a Signature of
    /// an unknown text.
    #[pyo3(get)]
    pub shingles: Option<u64>,
}

#[pymethods]
impl Verdict {
    /// The documents at or above the threshold, the most similar first; at most `limit`.
    #[getter]
    fn matches(&self, py: Python<'_>) -> Vec<Py<Match>> {
        self.matches.iter().map(|found| found.clone_ref(py)).collect()
    }

    /// The id of the most similar document. None if there is no match.
    #[getter]
    fn duplicate_of(&self) -> Option<String> {
        self.matches.first().map(|found| found.get().id.clone())
    }

    /// The estimated similarity to the most similar document. None if there is no match.
    #[getter]
    fn similarity(&self) -> Option<f64> {
        self.matches.first().map(|found| found.get().similarity)
    }

    /// Whether the text duplicates a document.
    #[getter]
    fn is_duplicate(&self) -> bool {
        !self.matches.is_empty()
    }

    fn __repr__(&self) -> String {
        let cited = self.matches.first().map(|found| {
            let found = found.get();
            format!(" of {:?}, {:.4}", found.id, found.similarity)
        });
        format!("<pyhapax.Verdict {}{}>", self.verdict, cited.unwrap_or_default())
    }
}
