//! The two protocols that hand over memory: Arrow's PyCapsules and Python's buffers. All unsafe code of this crate is
//! here, and in the buffer methods of classes, which call this file. Arrow data and views are not copied: they keep the
//! owner of the memory alive. Only [`bytes_of`] copies.

use std::any::Any;
use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, make_array};
use arrow_schema::{ArrowError, Field};
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// Arrow data from another library.
pub(crate) enum Given {
    Array(ArrayRef, Field),
    Stream(ArrayStreamReader),
}

/// Takes the data of an object with one of Arrow's PyCapsule methods. `None` if the object has no such method.
pub(crate) fn arrow_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Given>> {
    // A class has the methods too, but unbound.
    if object.is_instance_of::<pyo3::types::PyType>() {
        return Ok(None);
    }
    if let Some(method) = object.getattr_opt("__arrow_c_stream__")? {
        let capsule = method.call0()?.cast_into::<PyCapsule>()?;
        return Ok(Some(Given::Stream(no_panic(|| stream_of(&capsule))?)));
    }
    if let Some(method) = object.getattr_opt("__arrow_c_array__")? {
        let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = method.call0()?.extract()?;
        let (array, field) = no_panic(|| array_of(&schema, &array))?;
        return Ok(Some(Given::Array(array, field)));
    }
    Ok(None)
}

/// Turns a panic into an exception.
pub(crate) fn no_panic<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// Returns the exception for a panic.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    PyRuntimeError::new_err(format!("this is a bug in pyhapax, or data that its producer described wrongly: {text}"))
}

pub(crate) fn refused(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("the Arrow data cannot be read: {error}"))
}

fn stream_of(capsule: &Bound<'_, PyCapsule>) -> PyResult<ArrayStreamReader> {
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the protocol says that a capsule of this name points to a stream, and the capsule is alive. `from_raw`
    // moves the stream out and marks the stream in the capsule as released, so it is released once.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
    ArrayStreamReader::try_new(stream).map_err(refused)
}

fn array_of(schema: &Bound<'_, PyCapsule>, array: &Bound<'_, PyCapsule>) -> PyResult<(ArrayRef, Field)> {
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: the protocol says that a capsule of this name points to a schema, and the capsule is alive.
    let schema = unsafe { schema.as_ref() };
    // SAFETY: the protocol says that a capsule of this name points to an array. `from_raw` moves it out and marks the
    // array in the capsule as released, so it is released once.
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    if array.is_released() {
        return Err(PyValueError::new_err("the Arrow array was used already"));
    }
    // SAFETY: the protocol says that the array has the type of its schema. The offsets in it are checked at each row.
    let data = unsafe { from_ffi(array, schema) }.map_err(refused)?;
    let field = Field::try_from(schema).map_err(refused)?;
    Ok((make_array(data), field))
}

/// Returns the capsules of `__arrow_c_array__`.
pub(crate) fn capsules_of<'py>(py: Python<'py>, array: &dyn Array, field: &Field) -> PyResult<Bound<'py, PyTuple>> {
    let (array, _) = to_ffi(&array.to_data()).map_err(refused)?;
    let array = PyCapsule::new_with_value(py, array, ARRAY)?;
    PyTuple::new(py, [schema_capsule(py, field)?, array])
}

/// Returns the capsule of `__arrow_c_schema__`.
pub(crate) fn schema_capsule<'py>(py: Python<'py>, field: &Field) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowSchema::try_from(field).map_err(refused)?, SCHEMA)
}

/// Returns the capsule of `__arrow_c_stream__`.
pub(crate) fn stream_capsule(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyCapsule>> {
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
}

/// The elements of a buffer.
#[derive(Clone, Copy)]
pub(crate) enum Item {
    Byte,
    U32,
    U64,
}

impl Item {
    fn format(self) -> &'static CStr {
        match self {
            Self::Byte => c"B",
            Self::U32 => c"I",
            Self::U64 => c"Q",
        }
    }

    fn size(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::U32 => 4,
            Self::U64 => 8,
        }
    }
}

/// Read-only memory that an object shows through the buffer protocol: one row, or rows of equal width.
pub(crate) struct Shown<'a> {
    pub bytes: &'a [u8],
    pub item: Item,
    /// The elements in a row, if there are rows.
    pub width: Option<usize>,
}

/// The numbers that a view points to.
struct Dimensions {
    shape: [isize; 2],
    strides: [isize; 2],
}

/// Fills the view of an object that owns the memory.
///
/// # Safety
/// `view` is null, or points to a view that may be written. The memory belongs to `owner`. It neither moves nor changes
/// while `owner` lives.
pub(crate) unsafe fn fill_view(
    view: *mut ffi::Py_buffer,
    flags: c_int,
    owner: Bound<'_, PyAny>,
    shown: &Shown<'_>,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("no view was given"));
    }
    let asks = |flag: c_int| flags & flag == flag;
    // SAFETY: the caller says that the view may be written.
    let view = unsafe { &mut *view };
    view.obj = ptr::null_mut();
    if asks(ffi::PyBUF_WRITABLE) {
        return Err(PyBufferError::new_err("this memory is read-only"));
    }
    let size = shown.item.size();
    let items = shown.bytes.len() / size;
    let (shape, rows) = match shown.width {
        Some(width) => ([items.checked_div(width).unwrap_or(0), width].map(|n| n as isize), true),
        None => ([items as isize, 0], false),
    };
    if rows && asks(ffi::PyBUF_F_CONTIGUOUS) && !asks(ffi::PyBUF_ANY_CONTIGUOUS) {
        return Err(PyBufferError::new_err("only the rows of this memory are contiguous, not its columns"));
    }
    let of_row = if rows { shape[1] * size as isize } else { size as isize };
    let dimensions = Box::new(Dimensions { shape, strides: [of_row, size as isize] });
    view.buf = shown.bytes.as_ptr().cast_mut().cast::<c_void>();
    view.len = shown.bytes.len() as isize;
    view.readonly = 1;
    view.itemsize = size as isize;
    view.format = if asks(ffi::PyBUF_FORMAT) { shown.item.format().as_ptr().cast_mut() } else { ptr::null_mut() };
    // Without a shape a view is a row of bytes.
    view.ndim = if rows && asks(ffi::PyBUF_ND) { 2 } else { 1 };
    let dimensions = Box::into_raw(dimensions);
    // SAFETY: `dimensions` was made here, and lives until `release_view`.
    let (shape, strides) = unsafe { (&raw mut (*dimensions).shape, &raw mut (*dimensions).strides) };
    view.shape = if asks(ffi::PyBUF_ND) { shape.cast() } else { ptr::null_mut() };
    view.strides = if asks(ffi::PyBUF_STRIDES) { strides.cast() } else { ptr::null_mut() };
    view.suboffsets = ptr::null_mut();
    view.internal = dimensions.cast();
    view.obj = owner.into_ptr();
    Ok(())
}

/// Frees what [`fill_view`] allocated.
///
/// # Safety
/// `view` was filled by [`fill_view`], and this function is called once for each such view.
pub(crate) unsafe fn release_view(view: *mut ffi::Py_buffer) {
    // SAFETY: the caller says that `fill_view` has set `internal`.
    drop(unsafe { Box::from_raw((*view).internal.cast::<Dimensions>()) });
}

/// Returns a copy of the bytes of an object with the buffer protocol, row after row, and the shape. `None` if the
/// object has no buffer. Elements that are not bytes are an error.
pub(crate) fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Option<(Vec<u8>, Vec<usize>)>> {
    let Ok(buffer) = pyo3::buffer::PyUntypedBuffer::get(object) else { return Ok(None) };
    let shape = buffer.shape().to_vec();
    let py = object.py();
    let bytes = buffer.as_typed::<u8>().map_err(|_| {
        let format = buffer.format().to_string_lossy();
        PyTypeError::new_err(format!("signatures must be bytes (format B), not elements of format {format}"))
    })?;
    Ok(Some((bytes.to_vec(py)?, shape)))
}
