//! Arguments that several functions have.

use std::thread;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::texts::{Held, held};

const THREADS_MAX: usize = 1024;

/// Returns how many threads to use. The default is the number of processors that the process may use.
pub(crate) fn threads_of(threads: Option<usize>) -> PyResult<usize> {
    match threads {
        None => Ok(thread::available_parallelism().map_or(1, usize::from)),
        Some(threads @ 1..=THREADS_MAX) => Ok(threads),
        Some(threads) => {
            Err(PyValueError::new_err(format!("threads must be between 1 and {THREADS_MAX}, not {threads}")))
        }
    }
}

/// Reads a single text.
pub(crate) fn text_of(text: &Bound<'_, PyAny>) -> PyResult<Held> {
    let Ok(string) = text.cast::<PyString>() else {
        let kind = text.get_type().name()?;
        return Err(PyTypeError::new_err(format!("text must be a str, not {kind}")));
    };
    held(string, || "text".to_owned())
}

/// Checks a number that is a share.
pub(crate) fn share(name: &str, value: f64) -> PyResult<f64> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(PyValueError::new_err(format!("{name} must be between 0 and 1, not {value}")))
}
