//! The index in Python: texts or signatures -> verdicts.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use hapax_core::verify::{interval95, similarity};
use hapax_core::{Banding, Signed, tuning};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyType};

use crate::arguments::{share, text_of, threads_of};
use crate::documents::{Documents, Judged, OnDuplicate, Query};
use crate::judged::{Match, Verdict};
use crate::near::{Found, Near};
use crate::signature::Signature;
use crate::signer::Signing;
use crate::spec::{Parts, SharedSpec};
use crate::texts::Source;
use crate::threads::{Outcome, SignedRows, sign_all};

const LIMIT_MAX: usize = 1000;
/// The module that reads and writes files.
const FILES: &str = "pyhapax._files";

/// An index of documents in memory that answers as the service does: the same texts, bands and threshold lead to the
/// same verdicts.
///
/// It is smaller than the service's own index, and is for one process. The rule is the same: a document is a match if
/// it shares a band with the text and the estimated similarity of their signatures reaches the threshold. It has no
/// labels, no expiry and no exact verification. It reads the newest 256 documents of each bucket. If a bucket has more,
/// the verdict's `complete` is False. save() writes the index to a file that load() and a server can read.
///
/// spec and key are those of Signer. bands and rows are chosen for the threshold unless they are given.
#[pyclass(frozen, module = "pyhapax")]
pub(crate) struct Index {
    signing: Arc<Signing>,
    threshold: f64,
    /// Whether bands and rows were given.
    banding_by_hand: bool,
    documents: Mutex<Documents>,
}

impl Index {
    /// Makes an empty index, with the given bands and rows or with those that are chosen for the threshold.
    pub(crate) fn new_with(
        signing: Signing,
        threshold: f64,
        given: (Option<u32>, Option<u32>),
        banding_by_hand: bool,
    ) -> PyResult<Self> {
        let threshold = share("threshold", threshold)?;
        let shape = signing.spec().shape();
        let banding = match given {
            (None, None) => tuning::default_banding(shape, threshold),
            (Some(bands), Some(rows)) => {
                Banding::new(bands, rows, shape).map_err(|error| PyValueError::new_err(error.to_string()))?
            }
            _ => return Err(PyValueError::new_err("give both bands and rows, or neither")),
        };
        let documents = Mutex::new(Documents::new(Near::new(shape, banding, threshold)));
        Ok(Self { signing: Arc::new(signing), threshold, banding_by_hand, documents })
    }

    pub(crate) fn signing(&self) -> &Signing {
        &self.signing
    }

    pub(crate) fn similarity_min(&self) -> f64 {
        self.threshold
    }

    pub(crate) fn is_banded_by_hand(&self) -> bool {
        self.banding_by_hand
    }

    fn lock(&self) -> MutexGuard<'_, Documents> {
        self.documents.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Calls `work` with the documents. While a thread waits for the documents, other threads can run Python.
    pub(crate) fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Documents) -> T + Send) -> T {
        py.detach(|| work(&mut self.lock()))
    }

    /// Signs a text, or takes a signature. `None` if the text is empty.
    fn query(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Option<Query>> {
        if let Ok(signature) = text.cast::<Signature>() {
            let signature = signature.get();
            self.signing.spec().check_same(signature.spec())?;
            return Ok(Some(Query { signature: signature.packed().into(), made: signature.made() }));
        }
        if !text.is_instance_of::<PyString>() {
            let kind = text.get_type().name()?;
            return Err(PyTypeError::new_err(format!("text must be a str or a Signature, not {kind}")));
        }
        let signed = self.signing.sign(py, text_of(text)?.as_str())?;
        Ok(signed.map(|Signed { signature, content, shingles, .. }| Query {
            signature: signature.into(),
            made: Some((content.0, shingles)),
        }))
    }

    fn verdict(&self, py: Python<'_>, judged: Judged, query: Option<&Query>) -> PyResult<Verdict> {
        let Judged { verdict, outcome, cited, candidates, complete } = judged;
        let spec = self.signing.spec();
        let matches: PyResult<_> =
            cited.into_iter().map(|(id, found)| Py::new(py, match_of(spec, id, found))).collect();
        let shingles = match query {
            None => Some(0),
            Some(query) => query.made.map(|(_, shingles)| shingles),
        };
        Ok(Verdict { verdict, outcome, matches: matches?, candidates, complete, shingles })
    }
}

fn match_of(spec: &SharedSpec, id: String, Found { matching, same_content, .. }: Found) -> Match {
    if same_content {
        return Match { id, similarity: 1.0, low: 1.0, high: 1.0, exact: true };
    }
    let (low, high) = interval95(matching, spec.shape(), spec.sketch());
    Match { id, similarity: similarity(matching, spec.shape()), low, high, exact: false }
}

fn limit_of(limit: usize) -> PyResult<usize> {
    if (1..=LIMIT_MAX).contains(&limit) {
        return Ok(limit);
    }
    Err(PyValueError::new_err(format!("limit must be between 1 and {LIMIT_MAX}, not {limit}")))
}

#[pymethods]
impl Index {
    #[new]
    #[pyo3(signature = (
        spec=None, *, threshold=0.8, bands=None, rows=None, fold=None, marks=None, digits=None, shingle=None, sketch=None,
        key=None, key_file=None, key_env=None
    ))]
    #[allow(clippy::too_many_arguments)] // keyword arguments
    fn new(
        spec: Option<&str>,
        threshold: f64,
        bands: Option<u32>,
        rows: Option<u32>,
        fold: Option<&str>,
        marks: Option<&str>,
        digits: Option<&str>,
        shingle: Option<&str>,
        sketch: Option<&str>,
        key: Option<&Bound<'_, PyAny>>,
        key_file: Option<PathBuf>,
        key_env: Option<String>,
    ) -> PyResult<Self> {
        let parts = Parts { fold, marks, digits, shingle, sketch };
        let signing = Signing::new(spec, parts, (key, key_file, key_env))?;
        Self::new_with(signing, threshold, (bands, rows), bands.is_some())
    }

    /// The spec in its canonical spelling.
    #[getter]
    fn spec(&self) -> &str {
        self.signing.spec().text()
    }

    /// The threshold: the similarity from which a text is a duplicate.
    #[getter]
    fn threshold(&self) -> f64 {
        self.threshold
    }

    /// The number of bands.
    #[getter]
    fn bands(&self, py: Python<'_>) -> u32 {
        self.with(py, |documents| documents.near.banding().bands())
    }

    /// The number of rows in a band.
    #[getter]
    fn rows(&self, py: Python<'_>) -> u32 {
        self.with(py, |documents| documents.near.banding().rows())
    }

    /// Returns the verdict on a text, or on a Signature, and stores nothing.
    #[pyo3(signature = (text, *, limit=10))]
    fn check(&self, py: Python<'_>, text: &Bound<'_, PyAny>, limit: usize) -> PyResult<Verdict> {
        let limit = limit_of(limit)?;
        let query = self.query(py, text)?;
        let judged = match &query {
            None => Judged::empty("checked"),
            Some(query) => self.with(py, |documents| {
                let looked = documents.near.look_up(query.compared());
                Judged::of(&looked, &documents.ids, "checked", limit)
            }),
        };
        self.verdict(py, judged, query.as_ref())
    }

    /// Returns the verdict on a text, or on a Signature, and stores it under the id.
    ///
    /// A duplicate is not stored ("skip"), is stored as a link that only exact copies match later ("link"), or is stored like
    /// any other text ("store"). The same text under the same id is "unchanged". Another text under the same id is a
    /// ValueError.
    #[pyo3(signature = (id, text, *, on_duplicate="skip", limit=10))]
    fn insert(
        &self,
        py: Python<'_>,
        id: &str,
        text: &Bound<'_, PyAny>,
        on_duplicate: &str,
        limit: usize,
    ) -> PyResult<Verdict> {
        let (on_duplicate, limit) = (OnDuplicate::named(on_duplicate)?, limit_of(limit)?);
        let query = self.query(py, text)?;
        let judged = match &query {
            None => Judged::empty("skipped"),
            Some(query) => self
                .with(py, |documents| documents.insert(id, query, on_duplicate, limit))
                .map_err(|refused| refused.exception(id, ""))?,
        };
        self.verdict(py, judged, query.as_ref())
    }

    /// Inserts texts in their order, and returns the row that each duplicates: None for a text that is unique, empty or null.
    ///
    /// A row is compared with the rows before it that are kept. ids are by default the numbers of the rows, so the
    /// index must then be empty. For a text that duplicates a document of an earlier call, returns the id of that
    /// document. After an exception, texts before the row that the exception names may have been inserted.
    #[pyo3(signature = (texts, ids=None, *, threads=None))]
    fn deduplicate<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        ids: Option<&Bound<'py, PyAny>>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let threads = threads_of(threads)?;
        let mut source = Source::of(texts)?;
        let mut ids = ids.map(|ids| ids.try_iter()).transpose()?;
        if ids.is_none() && self.__len__(py) > 0 {
            return Err(PyValueError::new_err("the index has documents already, so the texts need ids"));
        }
        let list = PyList::empty(py);
        let mut row = 0;
        let mut sink = |py: Python<'_>, rows: SignedRows| {
            let names = names_of(&mut ids, row, rows.outcomes.len())?;
            let judged = self.with(py, |documents| documents.insert_all(&names, &rows, row))?;
            for duplicate_of in judged {
                match duplicate_of {
                    None => list.append(py.None())?,
                    Some(Cited::Id(id)) => list.append(id)?,
                    Some(Cited::Row(row)) => list.append(row)?,
                }
            }
            row += rows.outcomes.len();
            Ok(())
        };
        sign_all(py, self.signing.pipeline(), &mut source, threads, &mut sink)?;
        if let Some(ids) = &mut ids
            && ids.next().is_some()
        {
            return Err(PyValueError::new_err(format!("there are more ids than texts; there are {row} texts")));
        }
        Ok(list)
    }

    /// Writes the index to a Parquet file, which load() and `hapax load` read. It needs pyarrow.
    ///
    /// The file gets its name when it is complete. Documents that are inserted meanwhile may be missing in it.
    fn save<'py>(slf: &Bound<'py, Self>, path: &Bound<'py, PyAny>) -> PyResult<()> {
        slf.py().import(FILES)?.call_method1("save", (slf, path)).map(drop)
    }

    /// Returns the index from a file that save() or `hapax export --parquet` wrote, or from a file of signatures with
    /// an `id` column. It needs pyarrow.
    ///
    /// Threshold and banding are those of the file, unless they are given. Documents keep their order, and are not
    /// compared with each other. A keyed spec needs its key, as in the constructor.
    #[classmethod]
    #[pyo3(signature = (path, *, threshold=None, bands=None, rows=None, key=None, key_file=None, key_env=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments
    fn load<'py>(
        cls: &Bound<'py, PyType>,
        path: &Bound<'py, PyAny>,
        threshold: Option<f64>,
        bands: Option<u32>,
        rows: Option<u32>,
        key: Option<&Bound<'py, PyAny>>,
        key_file: Option<&Bound<'py, PyAny>>,
        key_env: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = (path, threshold, bands, rows, key, key_file, key_env);
        cls.py().import(FILES)?.call_method1("load", arguments)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.with(py, |documents| documents.near.len())
    }

    fn __contains__(&self, py: Python<'_>, id: &str) -> bool {
        self.with(py, |documents| documents.ids.find(id).is_some())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (len, bands, rows) = self.with(py, |documents| {
            let banding = documents.near.banding();
            (documents.near.len(), banding.bands(), banding.rows())
        });
        let sketch = self.signing.spec().sketch_name();
        format!("<pyhapax.Index of {len} documents, {sketch}, {bands}x{rows}, threshold {}>", self.threshold)
    }
}

/// The document that a row duplicates.
enum Cited {
    Id(String),
    Row(usize),
}

/// The ids of some rows; `None` if they are the numbers of the rows.
type Names = Option<Vec<String>>;

/// Takes the ids of the next rows.
fn names_of(ids: &mut Option<Bound<'_, pyo3::types::PyIterator>>, first: usize, rows: usize) -> PyResult<Names> {
    let Some(ids) = ids else { return Ok(None) };
    let names = (first..first + rows).map(|row| {
        let id = ids.next().ok_or_else(|| {
            PyValueError::new_err(format!("there are fewer ids than texts: there is no id for row {row}"))
        })??;
        id.extract::<String>().map_err(|_| {
            let kind = id.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            PyTypeError::new_err(format!("ids, row {row}: an id must be a str, not {kind}"))
        })
    });
    names.collect::<PyResult<Vec<_>>>().map(Some)
}

impl Documents {
    /// Inserts rows, and returns the document that each row duplicates.
    fn insert_all(&mut self, names: &Names, rows: &SignedRows, first: usize) -> PyResult<Vec<Option<Cited>>> {
        let width = rows.signatures.len().checked_div(rows.outcomes.len()).unwrap_or_default();
        let mut all = Vec::with_capacity(rows.outcomes.len());
        for (row, outcome) in rows.outcomes.iter().enumerate() {
            if *outcome != Outcome::Signed {
                all.push(None);
                continue;
            }
            let content = rows.contents[row * 16..row * 16 + 16].try_into().expect("16 bytes");
            let query = Query {
                signature: rows.signatures[row * width..(row + 1) * width].into(),
                made: Some((u128::from_be_bytes(content), rows.shingles[row])),
            };
            let number = first + row;
            let id = match names {
                Some(names) => names[row].clone(),
                None => number.to_string(),
            };
            let judged = self
                .insert(&id, &query, OnDuplicate::Skip, 1)
                .map_err(|refused| refused.exception(&id, &format!("ids, row {number}: ")))?;
            let cited = judged.cited.into_iter().next().map(|(id, _)| id);
            all.push(cited.map(|id| match (names, id.parse()) {
                (None, Ok(row)) => Cited::Row(row),
                _ => Cited::Id(id),
            }));
        }
        Ok(all)
    }
}
