//! An iterable of `str` and `None` -> texts that stay alive while threads read them.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyIterator, PyString};

use super::{JOB_BYTES, JOB_ROWS_MAX, JOB_ROWS_USUAL, Texts};

/// A text in the memory of a Python object.
pub(crate) enum Held {
    /// The object itself, which is ASCII.
    Ascii(PyBackedStr),
    /// A copy in UTF-8. If the `str` made this copy, it would keep the copy until it is freed itself, and a corpus
    /// would be in memory twice.
    Encoded(PyBackedBytes),
}

impl Held {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Ascii(text) => text,
            Self::Encoded(bytes) => std::str::from_utf8(bytes).expect("Python encoded it as UTF-8"),
        }
    }

    /// Returns the same text without reading all of it.
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Ascii(text) => text.as_bytes(),
            Self::Encoded(bytes) => bytes,
        }
    }
}

/// Returns a text that stays alive. If it has a lone surrogate, the exception names `place` as its position.
pub(crate) fn held(text: &Bound<'_, PyString>, place: impl FnOnce() -> String) -> PyResult<Held> {
    let py = text.py();
    let is_ascii = text.call_method0(intern!(py, "isascii"))?.is_truthy()?;
    if is_ascii {
        return Ok(Held::Ascii(PyBackedStr::try_from(text.clone())?));
    }
    match text.encode_utf8() {
        Ok(bytes) => Ok(Held::Encoded(PyBackedBytes::from(bytes))),
        Err(error) => Err(surrogate(py, &error, &place())),
    }
}

fn surrogate(py: Python<'_>, error: &PyErr, place: &str) -> PyErr {
    let at = error.value(py).getattr("start").and_then(|at| at.extract::<usize>());
    let at = at.map(|at| format!(" at character {at}")).unwrap_or_default();
    PyValueError::new_err(format!("{place}: the text is not well-formed Unicode: it has a lone surrogate{at}"))
}

/// The texts of an iterable.
pub(super) struct Listed {
    iterator: Py<PyIterator>,
}

impl Listed {
    pub(super) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let iterator = object.try_iter().map_err(|_| {
            let kind = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            PyTypeError::new_err(format!("texts must be a list or a column of texts, not {kind}"))
        })?;
        Ok(Self { iterator: iterator.unbind() })
    }

    /// Returns the next texts, and about how many bytes they have. `first` is the row of the first of them.
    pub(super) fn next(&mut self, py: Python<'_>, first: usize) -> PyResult<Option<(Texts, usize)>> {
        let mut texts = Vec::with_capacity(JOB_ROWS_USUAL);
        let mut bytes = 0;
        let mut iterator = self.iterator.bind(py).clone();
        while texts.len() < JOB_ROWS_MAX && bytes < JOB_BYTES {
            let Some(item) = iterator.next() else { break };
            let text = text_of(&item?, first + texts.len())?;
            bytes += text.as_ref().map_or(0, |text| text.as_bytes().len());
            texts.push(text);
        }
        Ok((!texts.is_empty()).then_some((Texts::Listed(texts), bytes)))
    }
}

fn text_of(item: &Bound<'_, PyAny>, row: usize) -> PyResult<Option<Held>> {
    if let Ok(text) = item.cast::<PyString>() {
        return held(text, || format!("texts, row {row}")).map(Some);
    }
    let kind = item.get_type().name()?;
    // `NAType` is the type of a missing value of pandas.
    if item.is_none() || kind == "NAType" {
        return Ok(None);
    }
    Err(PyTypeError::new_err(format!("texts, row {row}: a text must be a str or None, not {kind}")))
}
