//! One column of results, as an Arrow array and as a buffer.

use std::ffi::c_int;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use pyo3::exceptions::{PyBufferError, PyIndexError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyTuple};

use crate::boundary::{self, Item, Shown};

/// A column of results: numbers, rows of bytes, or rows of numbers.
///
/// Libraries that support Arrow read it as an Arrow array (`pyarrow.array(column)`, `polars.Series(column)`). NumPy
/// reads its memory (`numpy.asarray(column)`), if no row is null.
#[pyclass(frozen, module = "pyhapax")]
pub(crate) struct Column {
    array: ArrayRef,
}

impl Column {
    pub(crate) fn new(array: ArrayRef) -> Self {
        Self { array }
    }

    fn field(&self) -> Field {
        Field::new("", self.array.data_type().clone(), true)
    }
}

/// Returns the index of a row. A negative `row` is counted from the end.
pub(crate) fn row_of(row: isize, rows: usize) -> PyResult<usize> {
    let from_start = if row < 0 { row.checked_add_unsigned(rows) } else { Some(row) };
    let found = from_start.and_then(|row| usize::try_from(row).ok()).filter(|row| *row < rows);
    found.ok_or_else(|| PyIndexError::new_err(format!("there is no row {row}; there are {rows} rows")))
}

/// Returns the memory of an array that has no nulls.
fn shown(array: &dyn Array) -> PyResult<Shown<'_>> {
    if array.null_count() > 0 {
        let first = (0..array.len()).find(|&row| array.is_null(row)).unwrap_or_default();
        let count = array.null_count();
        return Err(PyBufferError::new_err(format!(
            "{count} rows are null, the first of them row {first}, and memory cannot show that; use Arrow, or leave out \
             these rows with signed()"
        )));
    }
    Ok(match array.data_type() {
        DataType::UInt32 => {
            let values = array.as_primitive::<UInt32Type>().values().inner();
            Shown { bytes: &values.as_slice()[..array.len() * 4], item: Item::U32, width: None }
        }
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>().values().inner();
            Shown { bytes: &values.as_slice()[..array.len() * 8], item: Item::U64, width: None }
        }
        DataType::FixedSizeBinary(width) => {
            let width = usize::try_from(*width).unwrap_or_default();
            let values = array.as_fixed_size_binary().value_data();
            Shown { bytes: &values[..array.len() * width], item: Item::Byte, width: Some(width) }
        }
        DataType::FixedSizeList(_, width) => {
            let width = usize::try_from(*width).unwrap_or_default();
            let values = array.as_fixed_size_list().values();
            let values = values.as_primitive::<UInt64Type>().values().inner();
            Shown { bytes: &values.as_slice()[..array.len() * width * 8], item: Item::U64, width: Some(width) }
        }
        other => unreachable!("no column of results has type {other}"),
    })
}

/// Fills a view of an array that belongs to `owner`.
///
/// # Safety
/// As for [`boundary::fill_view`]; the array belongs to `owner`.
pub(crate) unsafe fn fill_view(
    view: *mut ffi::Py_buffer,
    flags: c_int,
    owner: Bound<'_, PyAny>,
    array: &dyn Array,
) -> PyResult<()> {
    let shown = shown(array)?;
    // SAFETY: the caller says that the array belongs to `owner`, and no array ever changes.
    unsafe { boundary::fill_view(view, flags, owner, &shown) }
}

/// Returns the NumPy array of an object's memory. Without this method, NumPy would treat an object with null rows as a
/// list, and make an array of Python objects.
pub(crate) fn numpy_array<'py>(
    owner: &Bound<'py, PyAny>,
    dtype: Option<Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    let memory = pyo3::types::PyMemoryView::from(owner)?;
    let array = py.import("numpy")?.call_method1("asarray", (memory, dtype))?;
    if copy == Some(true) { array.call_method0("copy") } else { Ok(array) }
}

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, row: isize) -> PyResult<Bound<'py, PyAny>> {
        let row = row_of(row, self.array.len())?;
        if self.array.is_null(row) {
            return Ok(py.None().into_bound(py));
        }
        Ok(match self.array.data_type() {
            DataType::UInt32 => self.array.as_primitive::<UInt32Type>().value(row).into_pyobject(py)?.into_any(),
            DataType::UInt64 => self.array.as_primitive::<UInt64Type>().value(row).into_pyobject(py)?.into_any(),
            DataType::FixedSizeBinary(_) => PyBytes::new(py, self.array.as_fixed_size_binary().value(row)).into_any(),
            _ => {
                let values = self.array.as_fixed_size_list().value(row);
                PyList::new(py, values.as_primitive::<UInt64Type>().values().iter())?.into_any()
            }
        })
    }

    /// Returns the values as Python objects, with None for rows that are null.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let values: PyResult<Vec<_>> = (0..self.array.len()).map(|row| self.__getitem__(py, row as isize)).collect();
        PyList::new(py, values?)
    }

    /// How many rows are null.
    #[getter]
    fn null_count(&self) -> usize {
        self.array.null_count()
    }

    fn __repr__(&self) -> String {
        format!("<pyhapax.Column of {} rows, {}>", self.array.len(), self.array.data_type())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        boundary::capsules_of(py, &self.array, &self.field())
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        boundary::schema_capsule(py, &self.field())
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
        let array = ArrayRef::clone(&slf.get().array);
        // SAFETY: Python gives a view that may be written. The column owns the array's memory.
        unsafe { fill_view(view, flags, slf.into_any(), &array) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: Python releases each view once, and `__getbuffer__` has filled it.
        unsafe { boundary::release_view(view) }
    }
}
