//! The signatures of an argument, in any of several forms -> rows of bytes.

use arrow_array::cast::AsArray;
use arrow_array::{Array, FixedSizeBinaryArray};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::boundary::{Given, arrow_of, bytes_of, no_panic, refused};
use crate::signature::Signature;
use crate::signed_batch::Batch;
use crate::spec::SharedSpec;

/// Packed signatures, one after another.
pub(crate) struct SignatureRows {
    values: Buffer,
    nulls: Option<NullBuffer>,
    rows: usize,
    width: usize,
    /// Whether the argument was a single signature and not a list of them.
    is_single: bool,
}

impl SignatureRows {
    /// Reads a Signature, a Batch, a list of signatures, an Arrow column of fixed-size binary, or memory of `uint8`
    /// with one or two dimensions. `name` is the name of the argument.
    pub(crate) fn of(object: &Bound<'_, PyAny>, spec: &SharedSpec, name: &str) -> PyResult<Self> {
        let width = spec.shape().bytes();
        if let Ok(signature) = object.cast::<Signature>() {
            let signature = signature.get();
            spec.check_same(signature.spec())?;
            let values = Buffer::from(signature.packed());
            return Ok(Self { values, nulls: None, rows: 1, width, is_single: true });
        }
        if let Ok(batch) = object.cast::<Batch>() {
            spec.check_same(batch.get().spec())?;
            return Self::of_array(batch.get().signature_array(), width, name);
        }
        if let Some(given) = arrow_of(object)? {
            return Self::of_arrow(given, width, name);
        }
        if let Some((bytes, shape)) = bytes_of(object)? {
            return Self::of_memory(bytes, &shape, width, name);
        }
        Self::of_list(object, spec, name)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    pub(crate) fn is_single(&self) -> bool {
        self.is_single
    }

    pub(crate) fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    /// Returns the bytes of a row. `None` if it has no signature.
    pub(crate) fn get(&self, row: usize) -> Option<&[u8]> {
        let is_valid = self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        is_valid.then(|| &self.values.as_slice()[row * self.width..(row + 1) * self.width])
    }

    fn of_array(array: &FixedSizeBinaryArray, width: usize, name: &str) -> PyResult<Self> {
        if array.value_size() != width {
            let found = array.value_size();
            return Err(PyValueError::new_err(format!("{name}: signatures have {width} bytes, not {found}")));
        }
        let (values, nulls) = (array.values().clone(), array.nulls().cloned());
        Ok(Self { values, nulls, rows: array.len(), width, is_single: false })
    }

    fn of_arrow(given: Given, width: usize, name: &str) -> PyResult<Self> {
        let chunks = match given {
            Given::Array(array, _) => vec![array],
            Given::Stream(stream) => no_panic(|| stream.map(|chunk| chunk.map_err(refused)).collect())?,
        };
        let mut all = (Vec::new(), Vec::new());
        for chunk in &chunks {
            let DataType::FixedSizeBinary(_) = chunk.data_type() else {
                let kind = chunk.data_type();
                let message = format!("{name}: the column has type {kind}; it must be fixed_size_binary[{width}]");
                return Err(PyTypeError::new_err(message));
            };
            let rows = Self::of_array(chunk.as_fixed_size_binary(), width, name)?;
            let values = rows.values.as_slice().get(..rows.rows * width);
            all.0.extend_from_slice(values.ok_or_else(|| PyValueError::new_err(format!("{name}: too few bytes")))?);
            all.1.extend((0..rows.rows).map(|row| rows.get(row).is_some()));
        }
        let (values, is_valid) = all;
        let nulls = Some(NullBuffer::from(is_valid)).filter(|nulls| nulls.null_count() > 0);
        let rows = values.len() / width;
        Ok(Self { values: Buffer::from_vec(values), nulls, rows, width, is_single: false })
    }

    fn of_memory(bytes: Vec<u8>, shape: &[usize], width: usize, name: &str) -> PyResult<Self> {
        let (rows, is_single) = match *shape {
            [found] if found == width => (1, true),
            [rows, found] if found == width => (rows, false),
            _ => {
                let message =
                    format!("{name}: signatures have {width} bytes, but the shape of this memory is {shape:?}");
                return Err(PyValueError::new_err(message));
            }
        };
        Ok(Self { values: Buffer::from_vec(bytes), nulls: None, rows, width, is_single })
    }

    fn of_list(object: &Bound<'_, PyAny>, spec: &SharedSpec, name: &str) -> PyResult<Self> {
        let width = spec.shape().bytes();
        let (mut values, mut is_valid) = (Vec::new(), Vec::new());
        let items = object.try_iter().map_err(|_| {
            let kind = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            PyTypeError::new_err(format!("{name} must be a Signature, a Batch or a list of signatures, not {kind}"))
        })?;
        for (row, item) in items.enumerate() {
            let item = item?;
            if item.is_none() {
                values.resize(values.len() + width, 0);
                is_valid.push(false);
                continue;
            }
            let kind = || item.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            let one = match (item.cast::<Signature>(), bytes_of(&item)?) {
                (Err(_), None) => {
                    let message = format!("{name}, row {row}: expected a Signature, bytes or None, not {}", kind());
                    return Err(PyTypeError::new_err(message));
                }
                _ => Self::of(&item, spec, &format!("{name}, row {row}"))?,
            };
            values.extend_from_slice(one.get(0).filter(|_| one.is_single).unwrap_or_default());
            is_valid.push(true);
        }
        let nulls = Some(NullBuffer::from(is_valid)).filter(|nulls| nulls.null_count() > 0);
        let rows = values.len() / width;
        Ok(Self { values: Buffer::from_vec(values), nulls, rows, width, is_single: false })
    }
}
