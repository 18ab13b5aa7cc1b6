//! Text -> signature, as the server makes it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, FixedSizeListArray, UInt32Array, UInt64Array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use hapax_core::verify::matching_slots;
use hapax_core::{Banding, Pipeline, SecretKey, SignScratch, Signed, Spec, SpecError, TextSpec};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments::{text_of, threads_of};
use crate::boundary::no_panic;
use crate::column::Column;
use crate::keys::{KeyArguments, KeySource};
use crate::rows::SignatureRows;
use crate::signature::Signature;
use crate::signed_batch::Batch;
use crate::spec::{Parts, SharedSpec, text_spec};
use crate::texts::{Source, Text};
use crate::threads::{Outcome, Signals, SignedRows, sign_all, sign_text};

/// A longer text is signed while other threads can run Python. Signing a shorter text takes microseconds.
const SHORT_BYTES: usize = 64 << 10;

/// A pipeline with the place that its secret came from.
pub(crate) struct Signing {
    spec: Arc<SharedSpec>,
    pipeline: Pipeline,
    key: KeySource,
    scratch: Mutex<SignScratch>,
}

impl Signing {
    /// Makes the pipeline of a spec, or of its parts.
    pub(crate) fn new(spec: Option<&str>, parts: Parts<'_>, key: KeyArguments<'_, '_>) -> PyResult<Self> {
        let (key, secret) = KeySource::read(key)?;
        let fingerprint = secret.as_ref().map(SecretKey::fingerprint);
        let spec = match spec {
            None => parts.spec(fingerprint)?,
            Some(_) if !parts.is_empty() => {
                return Err(PyValueError::new_err(
                    "give either spec or its parts (fold, marks, digits, shingle, sketch), not both",
                ));
            }
            Some(text) => text_spec(text)?,
        };
        check_key(&spec, fingerprint)?;
        let pipeline = Pipeline::new(&spec, secret.as_ref()).map_err(|SpecError(text)| PyValueError::new_err(text))?;
        let spec = SharedSpec::new(Spec::Text(spec));
        Ok(Self { spec, pipeline, key, scratch: Mutex::default() })
    }

    pub(crate) fn spec(&self) -> &Arc<SharedSpec> {
        &self.spec
    }

    pub(crate) fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Calls `work` with the buffers of the previous call. If another thread uses these buffers, or used them at a
    /// fork, makes new buffers.
    fn with_scratch<T>(&self, work: impl FnOnce(&mut SignScratch) -> T) -> T {
        match self.scratch.try_lock() {
            Ok(mut scratch) => work(&mut scratch),
            Err(_) => work(&mut SignScratch::default()),
        }
    }

    /// Signs a text. `None` if it has no token.
    pub(crate) fn sign(&self, py: Python<'_>, text: &str) -> PyResult<Option<Signed>> {
        let mut signed = Signed::default();
        let made = if text.len() <= SHORT_BYTES {
            let made =
                no_panic(|| Ok(self.with_scratch(|scratch| self.pipeline.sign_into(scratch, text, &mut signed))))?;
            if made { Outcome::Signed } else { Outcome::Empty }
        } else {
            let mut signals = Signals::default();
            let made = py.detach(|| {
                let mut stop = || signals.stop();
                let mut scratch = SignScratch::default();
                let text = Text::WellFormed(text);
                no_panic(|| Ok(sign_text(&self.pipeline, &mut scratch, text, &mut signed, &mut stop)))
            })?;
            signals.result()?;
            made.ok().flatten().unwrap_or(Outcome::Empty)
        };
        Ok((made == Outcome::Signed).then_some(signed))
    }

    /// Signs all texts of a source.
    pub(crate) fn sign_rows(&self, py: Python<'_>, source: &mut Source, threads: usize) -> PyResult<SignedRows> {
        let mut all = SignedRows::default();
        let mut sink = |_: Python<'_>, rows: SignedRows| {
            all.append(&rows);
            Ok(())
        };
        sign_all(py, &self.pipeline, source, threads, &mut sink)?;
        Ok(all)
    }
}

/// Fails if the spec and the secret do not belong together.
fn check_key(spec: &TextSpec, fingerprint: Option<u64>) -> PyResult<()> {
    match (spec.key, fingerprint) {
        (Some(needed), None) => Err(PyValueError::new_err(format!(
            "the spec needs the key with the fingerprint {needed:016x}; give it as key_file, key_env or key"
        ))),
        (None, Some(given)) => Err(PyValueError::new_err(format!(
            "the spec says key=none, so the key would not be used; end the spec with key={given:016x}, or leave out the key"
        ))),
        _ => Ok(()),
    }
}

/// Makes signatures of texts, equal to those of a server whose collection has the same spec.
///
/// Without arguments the spec is the server's default. Give the whole line as spec, or parts of it: fold, marks,
/// digits, shingle ("word5") and sketch ("fss256x8"). A key makes the spec keyed. Give it as key (32 hexadecimal digits
/// or 16 bytes), as key_file, or as key_env, the name of an environment variable. Signers with key_file or key_env can
/// be sent to worker processes, which read the key again.
#[pyclass(frozen, module = "pyhapax")]
pub(crate) struct Signer {
    signing: Arc<Signing>,
}

#[pymethods]
impl Signer {
    #[new]
    #[pyo3(signature = (
        spec=None, *, fold=None, marks=None, digits=None, shingle=None, sketch=None, key=None, key_file=None, key_env=None
    ))]
    #[allow(clippy::too_many_arguments)] // keyword arguments
    fn new(
        spec: Option<&str>,
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
        Ok(Self { signing: Arc::new(Signing::new(spec, parts, (key, key_file, key_env))?) })
    }

    /// The spec in its canonical spelling.
    #[getter]
    fn spec(&self) -> &str {
        self.signing.spec.text()
    }

    /// The fingerprint of the spec, 32 hexadecimal digits: equal for signers whose signatures can be compared.
    #[getter]
    fn fingerprint(&self) -> String {
        self.signing.spec.fingerprint().to_string()
    }

    /// The number of bytes of a signature.
    #[getter]
    fn signature_bytes(&self) -> usize {
        self.signing.spec.shape().bytes()
    }

    /// Returns the signature of a text. None if the text is empty, which means that it has no word.
    fn sign(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Option<Signature>> {
        let text = text_of(text)?;
        let signed = self.signing.sign(py, text.as_str())?;
        Ok(signed.map(|Signed { signature, content, shingles, .. }| {
            Signature::new(Arc::clone(&self.signing.spec), signature.into(), Some((content.0, shingles)))
        }))
    }

    /// Returns the signatures of many texts.
    ///
    /// texts is a list or another iterable of str and None, or a column of any library that knows Arrow: pyarrow, polars,
    /// pandas, DuckDB. Arrow texts are not copied. Other threads may run Python meanwhile. threads is by default the number
    /// of processors.
    #[pyo3(signature = (texts, threads=None))]
    fn sign_batch(&self, py: Python<'_>, texts: &Bound<'_, PyAny>, threads: Option<usize>) -> PyResult<Batch> {
        let threads = threads_of(threads)?;
        let mut source = Source::of(texts)?;
        let rows = self.signing.sign_rows(py, &mut source, threads)?;
        Ok(Batch::of(Arc::clone(&self.signing.spec), rows))
    }

    /// Returns the band keys of signatures: documents with an equal key are candidates for each other.
    ///
    /// The result is a list of int for a single signature, otherwise a column with a row of uint64 for each signature.
    fn band_keys<'py>(
        &self,
        py: Python<'py>,
        signatures: &Bound<'py, PyAny>,
        bands: u32,
        rows: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let spec = &self.signing.spec;
        let shape = spec.shape();
        let banding = Banding::new(bands, rows, shape).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let signatures = SignatureRows::of(signatures, spec, "signatures")?;
        let mut keys: Vec<u64> = Vec::with_capacity(signatures.len() * bands as usize);
        for row in 0..signatures.len() {
            match signatures.get(row) {
                Some(signature) => keys.extend(banding.keys(signature, shape).map(|key| key.0)),
                None => keys.resize(keys.len() + bands as usize, 0),
            }
        }
        if signatures.is_single() {
            return Ok(keys.into_pyobject(py)?.into_any());
        }
        let values = Arc::new(UInt64Array::new(ScalarBuffer::from(keys), None));
        let item = Arc::new(Field::new("item", DataType::UInt64, true));
        let width = i32::try_from(bands).expect("a signature has at most 4096 slots");
        let array = FixedSizeListArray::new(item, width, values, signatures.nulls().cloned());
        Ok(Column::new(Arc::new(array)).into_pyobject(py)?.into_any())
    }

    /// Returns how many slots of two signatures are equal.
    ///
    /// If a and b both have many signatures, they are compared row by row. If only one of them has many, each of these
    /// is compared with the single signature. In both cases the result is a column.
    fn matching<'py>(
        &self,
        py: Python<'py>,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let spec = &self.signing.spec;
        let (a, b) = (SignatureRows::of(a, spec, "a")?, SignatureRows::of(b, spec, "b")?);
        let rows = match (a.is_single(), b.is_single()) {
            (true, _) => b.len(),
            (_, true) => a.len(),
            _ if a.len() == b.len() => a.len(),
            _ => {
                let (a, b) = (a.len(), b.len());
                return Err(PyValueError::new_err(format!(
                    "a has {a} signatures and b has {b}; they must have the same number"
                )));
            }
        };
        let row_of = |side: &SignatureRows, row| if side.is_single() { 0 } else { row };
        let counts: Vec<Option<u32>> = (0..rows)
            .map(|row| {
                let (a, b) = (a.get(row_of(&a, row))?, b.get(row_of(&b, row))?);
                Some(matching_slots(a, b, spec.shape()))
            })
            .collect();
        if a.is_single() && b.is_single() {
            return Ok(counts[0].into_pyobject(py)?.into_any());
        }
        let nulls: NullBuffer = counts.iter().map(Option::is_some).collect();
        let values = counts.into_iter().map(Option::unwrap_or_default).collect();
        let array: ArrayRef = Arc::new(UInt32Array::new(values, Some(nulls).filter(|nulls| nulls.null_count() > 0)));
        Ok(Column::new(array).into_pyobject(py)?.into_any())
    }

    /// Returns the ranks of a text, a column of uint64: the sketch before it is packed. The smaller ranks of two texts,
    /// slot by slot, are the ranks of both texts together. None if the text is empty.
    fn ranks(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Option<Column>> {
        let text = text_of(text)?;
        let pipeline = &self.signing.pipeline;
        let ranks = py.detach(|| {
            no_panic(|| {
                let mut scratch = SignScratch::default();
                Ok(pipeline.sign(&mut scratch, text.as_str()).map(|_| pipeline.ranks(&scratch)))
            })
        })?;
        Ok(ranks.map(|ranks| Column::new(Arc::new(UInt64Array::from(ranks.as_slice().to_vec())))))
    }

    fn __repr__(&self) -> String {
        format!("pyhapax.Signer({:?})", self.signing.spec.text())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<Self>()
            .is_ok_and(|other| other.get().signing.spec.fingerprint() == self.signing.spec.fingerprint())
    }

    fn __hash__(&self) -> u64 {
        self.signing.spec.fingerprint().0 as u64
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, signing) = (slf.py(), &slf.get().signing);
        if signing.key == KeySource::Argument {
            return Err(PyTypeError::new_err(
                "a Signer with a key as an argument cannot be pickled, because the pickle would have the key; give the key as \
                 key_file or key_env, which each process reads itself",
            ));
        }
        let restore = py.import("pyhapax._native")?.getattr("restore_signer")?;
        let arguments = (signing.spec.text(), signing.key.file(), signing.key.variable());
        Ok((restore, arguments.into_pyobject(py)?))
    }
}

/// Makes a signer from the parts in its pickle.
#[pyfunction]
#[pyo3(signature = (spec, key_file, key_env))]
pub(crate) fn restore_signer(spec: &str, key_file: Option<PathBuf>, key_env: Option<String>) -> PyResult<Signer> {
    Ok(Signer { signing: Arc::new(Signing::new(Some(spec), Parts::default(), (None, key_file, key_env))?) })
}
