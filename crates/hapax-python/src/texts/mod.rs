//! Texts of a Python object -> jobs for threads that do not use Python. Texts are not copied, except those of `str`
//! objects that are not ASCII: Python does not store these as UTF-8.

mod arrow;
mod listed;

use std::ops::Range;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use crate::boundary;
use arrow::{ArrowTexts, TextColumn};
use listed::Listed;
pub(crate) use listed::{Held, held};

/// The largest number of rows in a job. Jobs are small and threads take them one by one, so the threads end at nearly
/// the same time.
const JOB_ROWS_MAX: usize = 1024;
/// About as many rows as a job has if its texts are as long as web pages.
const JOB_ROWS_USUAL: usize = 64;
/// A job ends when it has about this many bytes.
const JOB_BYTES: usize = 128 << 10;

/// A reason why the text of a row cannot be signed.
#[derive(Debug)]
pub(crate) struct Fault(pub &'static str);

/// Consecutive rows.
pub(crate) struct Job {
    /// The number of the first row.
    pub first: usize,
    /// The approximate number of bytes of the texts.
    pub bytes: usize,
    texts: Texts,
}

enum Texts {
    Column { column: Arc<TextColumn>, rows: Range<usize> },
    Listed(Vec<Option<Held>>),
}

/// The text of a row.
pub(crate) enum Text<'a> {
    WellFormed(&'a str),
    /// Bytes that their producer calls UTF-8.
    Unchecked(&'a [u8]),
}

impl Job {
    pub(crate) fn rows(&self) -> usize {
        match &self.texts {
            Texts::Column { rows, .. } => rows.len(),
            Texts::Listed(texts) => texts.len(),
        }
    }

    /// Returns the text of a row, counted from the first. `None` if it is null.
    pub(crate) fn text(&self, row: usize) -> Result<Option<Text<'_>>, Fault> {
        match &self.texts {
            Texts::Column { column, rows } => Ok(column.bytes(rows.start + row)?.map(Text::Unchecked)),
            Texts::Listed(texts) => Ok(texts[row].as_ref().map(|text| Text::WellFormed(text.as_str()))),
        }
    }
}

/// The texts of an argument, as a sequence of jobs.
pub(crate) struct Source {
    name: String,
    kind: Kind,
    row: usize,
}

enum Kind {
    Arrow(Box<ArrowTexts>),
    Listed(Listed),
}

impl Source {
    /// Reads an Arrow column, or anything that can be iterated over.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let is_one = object.is_instance_of::<PyString>()
            || object.is_instance_of::<PyBytes>()
            || object.is_instance_of::<PyByteArray>();
        if is_one {
            let message = "texts must be a list or a column of texts; for a single text use sign() or check()";
            return Err(PyTypeError::new_err(message));
        }
        if let Some(given) = boundary::arrow_of(object)? {
            let (texts, name) = ArrowTexts::of(given)?;
            return Ok(Self { name, kind: Kind::Arrow(Box::new(texts)), row: 0 });
        }
        Ok(Self { name: "texts".to_owned(), kind: Kind::Listed(Listed::of(object)?), row: 0 })
    }

    /// Returns the next rows; `None` at the end.
    pub(crate) fn next(&mut self, py: Python<'_>) -> PyResult<Option<Job>> {
        let first = self.row;
        let next = match &mut self.kind {
            Kind::Arrow(arrow) => arrow.next(py)?,
            Kind::Listed(listed) => listed.next(py, first)?,
        };
        let job = next.map(|(texts, bytes)| Job { first, bytes, texts });
        self.row += job.as_ref().map_or(0, Job::rows);
        Ok(job)
    }

    /// Returns the exception for a row.
    pub(crate) fn refused(&self, row: usize, Fault(reason): &Fault) -> PyErr {
        PyValueError::new_err(format!("{}, row {row}: {reason}", self.name))
    }
}
