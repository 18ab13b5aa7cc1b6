//! One signature.

use std::ffi::c_int;
use std::sync::Arc;

use hapax_core::verify::{interval95, matching_slots, similarity};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use xxhash_rust::xxh3::xxh3_64;

use crate::boundary::{self, Item, Shown, bytes_of};
use crate::spec::SharedSpec;

/// The signature of a text: a few hundred bytes by which it is compared.
///
/// Signers make signatures. Signature(data, spec) makes one from the bytes of a signature that was made elsewhere, or
/// stored.
///
/// It supports the buffer protocol. bytes(signature) returns the bytes that the server's API and files use.
#[pyclass(frozen, module = "pyhapax")]
pub(crate) struct Signature {
    spec: Arc<SharedSpec>,
    packed: Box<[u8]>,
    /// The content hash and the number of shingles, if the text is known.
    made: Option<(u128, u64)>,
}

impl Signature {
    pub(crate) fn new(spec: Arc<SharedSpec>, packed: Box<[u8]>, made: Option<(u128, u64)>) -> Self {
        Self { spec, packed, made }
    }

    pub(crate) fn spec(&self) -> &Arc<SharedSpec> {
        &self.spec
    }

    pub(crate) fn packed(&self) -> &[u8] {
        &self.packed
    }

    pub(crate) fn made(&self) -> Option<(u128, u64)> {
        self.made
    }

    fn matching(&self, other: &Self) -> PyResult<u32> {
        self.spec.check_same(&other.spec)?;
        Ok(matching_slots(&self.packed, &other.packed, self.spec.shape()))
    }
}

/// Returns a signature's bytes, if there are as many as the spec says.
pub(crate) fn of_width(bytes: Vec<u8>, spec: &SharedSpec) -> PyResult<Box<[u8]>> {
    let (found, needed) = (bytes.len(), spec.shape().bytes());
    if found == needed {
        return Ok(bytes.into());
    }
    Err(PyValueError::new_err(format!("a signature of {} has {needed} bytes, not {found}", spec.sketch_name())))
}

#[pymethods]
impl Signature {
    #[new]
    fn of(data: &Bound<'_, PyAny>, spec: &str) -> PyResult<Self> {
        let spec = SharedSpec::named(spec)?;
        let Some((bytes, _)) = bytes_of(data)? else {
            let kind = data.get_type().name()?;
            return Err(PyTypeError::new_err(format!("data must be bytes, not {kind}")));
        };
        Ok(Self { packed: of_width(bytes, &spec)?, spec, made: None })
    }

    /// The spec that it was made with.
    #[getter(spec)]
    fn spec_text<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        self.spec.object(py).clone()
    }

    /// The fingerprint of the spec, 32 hexadecimal digits.
    #[getter]
    fn fingerprint(&self) -> String {
        self.spec.fingerprint().to_string()
    }

    /// The hash of the canonical text, 16 bytes: equal for texts with the same words. None if the text is unknown.
    #[getter]
    fn content_hash<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.made.map(|(content, _)| PyBytes::new(py, &content.to_be_bytes()))
    }

    /// The number of shingles of the text. None if the text is unknown.
    #[getter]
    fn shingles(&self) -> Option<u64> {
        self.made.map(|(_, shingles)| shingles)
    }

    /// Returns the estimated similarity of both texts, from 0 to 1.
    #[pyo3(name = "similarity")]
    fn similarity_to(&self, other: &Bound<'_, Self>) -> PyResult<f64> {
        Ok(similarity(self.matching(other.get())?, self.spec.shape()))
    }

    /// Returns the 95 % interval of the similarity of both texts.
    fn interval(&self, other: &Bound<'_, Self>) -> PyResult<(f64, f64)> {
        Ok(interval95(self.matching(other.get())?, self.spec.shape(), self.spec.sketch()))
    }

    fn __len__(&self) -> usize {
        self.packed.len()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| {
            let other = other.get();
            self.spec.fingerprint() == other.spec.fingerprint() && self.packed == other.packed
        })
    }

    fn __hash__(&self) -> u64 {
        xxh3_64(&self.packed) ^ self.spec.fingerprint().0 as u64
    }

    fn __repr__(&self) -> String {
        let begins: String = self.packed.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let shingles = self.made.map(|(_, shingles)| format!(", {shingles} shingles")).unwrap_or_default();
        format!("<pyhapax.Signature {begins}…, {}{shingles}>", self.spec.sketch_name())
    }

    /// A pickle has the spec, the bytes, the content hash and the number of shingles. A pickle of many signatures has
    /// the spec only once.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, this) = (slf.py(), slf.get());
        let restore = py.import("pyhapax._native")?.getattr("restore_signature")?;
        let packed = PyBytes::new(py, &this.packed);
        let arguments = (this.spec.object(py), packed, this.content_hash(py), this.shingles());
        Ok((restore, arguments.into_pyobject(py)?))
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let owner = slf.clone().into_any();
        let shown = Shown { bytes: &slf.get().packed, item: Item::Byte, width: None };
        // SAFETY: Python gives a view that may be written. The bytes belong to the signature, which never changes.
        unsafe { boundary::fill_view(view, flags, owner, &shown) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: Python releases each view once, and `__getbuffer__` has filled it.
        unsafe { boundary::release_view(view) }
    }
}

/// Makes a signature from the parts in its pickle.
#[pyfunction]
#[pyo3(signature = (spec, packed, content_hash, shingles))]
pub(crate) fn restore_signature(
    spec: &str,
    packed: Vec<u8>,
    content_hash: Option<[u8; 16]>,
    shingles: Option<u64>,
) -> PyResult<Signature> {
    let spec = SharedSpec::named(spec)?;
    let packed = of_width(packed, &spec)?;
    let made = content_hash.zip(shingles).map(|(content, shingles)| (u128::from_be_bytes(content), shingles));
    Ok(Signature { spec, packed, made })
}
