//! The secret of keyed hashing: from an argument, a file or an environment variable. The digits of the secret are in no
//! message, no `repr` and no pickle. A pickle names the file or the variable, and the worker process reads the secret
//! again.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use hapax_core::SecretKey;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

const DIGITS: &str = "a key must be 32 hexadecimal digits or 16 bytes; make one with `openssl rand -hex 16`";
/// The longest file that is read: long enough for the digits and some white space around them.
const FILE_BYTES_MAX: u64 = 1024;

/// The arguments `key`, `key_file` and `key_env`.
pub(crate) type KeyArguments<'a, 'py> = (Option<&'a Bound<'py, PyAny>>, Option<PathBuf>, Option<String>);

/// The place that a secret came from.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum KeySource {
    None,
    /// An argument. It is not stored, so a pickle cannot contain it.
    Argument,
    File(String),
    Variable(String),
}

impl KeySource {
    /// Reads the secret from the one place that is given.
    pub(crate) fn read((key, file, variable): KeyArguments<'_, '_>) -> PyResult<(Self, Option<SecretKey>)> {
        match (key, file, variable) {
            (None, None, None) => Ok((Self::None, None)),
            (Some(key), None, None) => Ok((Self::Argument, Some(of_argument(key)?))),
            (None, Some(path), None) => {
                let path = path.to_string_lossy().into_owned();
                let secret = of_file(&path)?;
                Ok((Self::File(path), Some(secret)))
            }
            (None, None, Some(name)) => {
                let secret = of_variable(&name)?;
                Ok((Self::Variable(name), Some(secret)))
            }
            _ => Err(PyValueError::new_err("give only one of key, key_file and key_env")),
        }
    }

    pub(crate) fn file(&self) -> Option<&str> {
        match self {
            Self::File(path) => Some(path),
            _ => None,
        }
    }

    pub(crate) fn variable(&self) -> Option<&str> {
        match self {
            Self::Variable(name) => Some(name),
            _ => None,
        }
    }
}

fn of_argument(key: &Bound<'_, PyAny>) -> PyResult<SecretKey> {
    if let Ok(hex) = key.cast::<PyString>() {
        // A text with a lone surrogate is not a key either. The error of its conversion is dropped, because it would
        // contain the whole text.
        return of_hex(hex.to_str().unwrap_or_default(), "key");
    }
    if let Ok(bytes) = key.cast::<PyBytes>() {
        let bytes = bytes.as_bytes().try_into().map_err(|_| PyValueError::new_err(format!("key: {DIGITS}")))?;
        return Ok(SecretKey::new(bytes));
    }
    Err(PyTypeError::new_err(format!("key: {DIGITS}, not {}", key.get_type().name()?)))
}

fn of_file(path: &str) -> PyResult<SecretKey> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    match read {
        Ok(_) => of_hex(&text, &format!("key_file {path}")),
        // If the number of the error is given, Python raises the class of this error, such as FileNotFoundError.
        Err(error) => Err(match error.raw_os_error() {
            Some(number) => PyOSError::new_err((number, "the key_file cannot be read", path.to_owned())),
            None => PyValueError::new_err(format!("key_file {path}: {DIGITS}")),
        }),
    }
}

fn of_variable(name: &str) -> PyResult<SecretKey> {
    // This reads `os.environ`, not `std::env`. A program that sets a variable in `os.environ` changes both, but Python
    // programs test and patch `os.environ` itself.
    Python::attach(|py| {
        let value = py.import("os")?.getattr("environ")?.call_method1("get", (name,))?;
        match value.extract::<Option<String>>() {
            Ok(Some(hex)) => of_hex(&hex, &format!("key_env {name}")),
            Ok(None) => Err(PyValueError::new_err(format!("key_env {name}: this environment variable is not set"))),
            Err(_) => Err(PyValueError::new_err(format!("key_env {name}: {DIGITS}"))),
        }
    })
}

fn of_hex(hex: &str, place: &str) -> PyResult<SecretKey> {
    SecretKey::from_hex(hex.trim_ascii()).map_err(|_| PyValueError::new_err(format!("{place}: {DIGITS}")))
}
