//! The signatures of many texts.

use std::ffi::c_int;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, RecordBatch, StructArray, UInt64Array};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields, Schema};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::boundary::{self, refused};
use crate::column::{Column, fill_view, numpy_array, row_of};
use crate::signature::Signature;
use crate::spec::SharedSpec;
use crate::threads::{Outcome, SignedRows};

pub(crate) const CONTENT_BYTES: i32 = 16;

/// The signatures of many texts, one row for each.
///
/// Libraries that support Arrow read it as a table (`pyarrow.table(batch)`, `polars.DataFrame(batch)`) with the columns
/// `signature`, `content_hash` and `shingles`. A row whose text is empty has no signature and 0 shingles. A row whose
/// text is null has no signature and no number of shingles. `numpy.asarray(batch)` is `uint8[rows, bytes]`.
#[pyclass(frozen, sequence, module = "pyhapax")]
pub(crate) struct Batch {
    spec: Arc<SharedSpec>,
    signatures: FixedSizeBinaryArray,
    contents: FixedSizeBinaryArray,
    shingles: UInt64Array,
    outcomes: Vec<Outcome>,
}

impl Batch {
    pub(crate) fn of(spec: Arc<SharedSpec>, rows: SignedRows) -> Self {
        let SignedRows { signatures, contents, shingles, outcomes } = rows;
        let nulls = |is_valid: fn(&Outcome) -> bool| {
            let nulls: NullBuffer = outcomes.iter().map(is_valid).collect();
            Some(nulls).filter(|nulls| nulls.null_count() > 0)
        };
        let signed = nulls(|outcome| *outcome == Outcome::Signed);
        let given = nulls(|outcome| *outcome != Outcome::Null);
        let width = i32::try_from(spec.shape().bytes()).expect("a signature has at most 32 KiB");
        Self {
            signatures: FixedSizeBinaryArray::new(width, Buffer::from_vec(signatures), signed.clone()),
            contents: FixedSizeBinaryArray::new(CONTENT_BYTES, Buffer::from_vec(contents), signed),
            shingles: UInt64Array::new(ScalarBuffer::from(shingles), given),
            spec,
            outcomes,
        }
    }

    pub(crate) fn spec(&self) -> &Arc<SharedSpec> {
        &self.spec
    }

    pub(crate) fn signature_array(&self) -> &FixedSizeBinaryArray {
        &self.signatures
    }

    pub(crate) fn signature(&self, row: usize) -> Option<Signature> {
        let content = || u128::from_be_bytes(self.contents.value(row).try_into().expect("16 bytes"));
        (self.outcomes[row] == Outcome::Signed).then(|| {
            let packed = self.signatures.value(row).into();
            Signature::new(Arc::clone(&self.spec), packed, Some((content(), self.shingles.value(row))))
        })
    }

    fn rows_that(&self, is_meant: impl Fn(Outcome) -> bool) -> Vec<usize> {
        (0..self.outcomes.len()).filter(|&row| is_meant(self.outcomes[row])).collect()
    }

    fn table(&self) -> PyResult<RecordBatch> {
        let field = |name: &str, kind: &DataType| Field::new(name, kind.clone(), true);
        let fields: Fields = vec![
            field("signature", self.signatures.data_type()),
            field("content_hash", self.contents.data_type()),
            field("shingles", self.shingles.data_type()),
        ]
        .into();
        let columns: Vec<ArrayRef> =
            vec![Arc::new(self.signatures.clone()), Arc::new(self.contents.clone()), Arc::new(self.shingles.clone())];
        let metadata = [
            ("hapax.spec".to_owned(), self.spec.text().to_owned()),
            ("hapax.fingerprint".to_owned(), self.spec.fingerprint().to_string()),
        ];
        let schema = Schema::new(fields).with_metadata(metadata);
        RecordBatch::try_new(Arc::new(schema), columns).map_err(refused)
    }
}

/// Returns the field of an array of structs that has the columns of a table.
pub(crate) fn struct_field(table: &RecordBatch) -> Field {
    let schema = table.schema();
    Field::new("", DataType::Struct(schema.fields().clone()), false).with_metadata(schema.metadata().clone())
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.outcomes.len()
    }

    /// Returns the signature of a row. None if its text is empty or null.
    fn __getitem__(&self, row: isize) -> PyResult<Option<Signature>> {
        Ok(self.signature(row_of(row, self.outcomes.len())?))
    }

    /// Returns "signed", "empty" (the text has no word) or "null" (there is no text).
    fn outcome(&self, row: isize) -> PyResult<&'static str> {
        Ok(self.outcomes[row_of(row, self.outcomes.len())?].name())
    }

    /// The spec of the signatures.
    #[getter(spec)]
    fn spec_text(&self) -> &str {
        self.spec.text()
    }

    /// The fingerprint of the spec, 32 hexadecimal digits.
    #[getter]
    fn fingerprint(&self) -> String {
        self.spec.fingerprint().to_string()
    }

    /// The signatures, a column of fixed-size binary. Rows without a signature are null.
    #[getter]
    fn signatures(&self) -> Column {
        Column::new(Arc::new(self.signatures.clone()))
    }

    /// The content hashes, 16 bytes each. Texts whose canonical texts are equal have the same hash.
    #[getter]
    fn content_hashes(&self) -> Column {
        Column::new(Arc::new(self.contents.clone()))
    }

    /// The number of shingles of each text: 0 for an empty text, null for a null text.
    #[getter]
    fn shingles(&self) -> Column {
        Column::new(Arc::new(self.shingles.clone()))
    }

    /// The numbers of the rows that have a signature.
    #[getter]
    fn signed_rows(&self) -> Vec<usize> {
        self.rows_that(|outcome| outcome == Outcome::Signed)
    }

    /// The numbers of the rows whose text has no word.
    #[getter]
    fn empty_rows(&self) -> Vec<usize> {
        self.rows_that(|outcome| outcome == Outcome::Empty)
    }

    /// The numbers of the rows without a text.
    #[getter]
    fn null_rows(&self) -> Vec<usize> {
        self.rows_that(|outcome| outcome == Outcome::Null)
    }

    /// Returns the rows that have a signature, in a batch of their own. `signed_rows` has their numbers.
    fn signed(&self) -> Self {
        let mut rows = SignedRows::default();
        for row in self.rows_that(|outcome| outcome == Outcome::Signed) {
            rows.signatures.extend_from_slice(self.signatures.value(row));
            rows.contents.extend_from_slice(self.contents.value(row));
            rows.shingles.push(self.shingles.value(row));
            rows.outcomes.push(Outcome::Signed);
        }
        Self::of(Arc::clone(&self.spec), rows)
    }

    fn __repr__(&self) -> String {
        format!("<pyhapax.Batch of {} rows, {}>", self.outcomes.len(), self.spec.sketch_name())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        let table = self.table()?;
        let field = struct_field(&table);
        boundary::capsules_of(py, &StructArray::from(table), &field)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        boundary::stream_capsule(py, self.table()?)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        boundary::schema_capsule(py, &struct_field(&self.table()?))
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        numpy_array(slf.as_any(), dtype, copy)
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let array = slf.get().signatures.clone();
        // SAFETY: Python gives a view that may be written. The batch owns the array's memory.
        unsafe { fill_view(view, flags, slf.into_any(), &array) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: Python releases each view once, and `__getbuffer__` has filled it.
        unsafe { boundary::release_view(view) }
    }
}
