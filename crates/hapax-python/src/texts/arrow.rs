//! Arrow columns of strings -> the bytes of each row, without a copy. Offsets, views and keys come from another library,
//! so they are checked when a row is read: one that points outside the data is a fault of that row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::ArrayStreamReader;
use arrow_array::types::{
    ArrowDictionaryKeyType, ByteArrayType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayReader, ArrayRef, GenericByteArray, StructArray};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, ScalarBuffer, ToByteSlice};
use arrow_schema::{DataType, Field};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::{Fault, JOB_BYTES, JOB_ROWS_MAX, Texts};
use crate::boundary::{Given, no_panic, refused};

const OUTSIDE: Fault = Fault("the column is damaged: the text is outside its data");
/// The longest text that a view itself contains (Arrow columnar format, variable-size binary view).
const IN_VIEW_MAX: usize = 12;

/// A column of strings, of any layout.
pub(super) struct TextColumn {
    rows: usize,
    nulls: Option<NullBuffer>,
    layout: Layout,
}

enum Layout {
    Offsets32(ScalarBuffer<i32>, Buffer),
    Offsets64(ScalarBuffer<i64>, Buffer),
    Views(ScalarBuffer<u128>, Arc<[Buffer]>),
    Dictionary(Vec<usize>, Box<TextColumn>),
    /// All rows are null.
    Null,
}

impl TextColumn {
    fn of(array: &ArrayRef, name: &str) -> PyResult<Self> {
        let layout = match array.data_type() {
            DataType::Utf8 => offsets(array.as_string::<i32>(), Layout::Offsets32),
            DataType::LargeUtf8 => offsets(array.as_string::<i64>(), Layout::Offsets64),
            DataType::Utf8View => {
                let views = array.as_string_view();
                Layout::Views(views.views().clone(), Arc::clone(views.data_buffers()))
            }
            DataType::Dictionary(..) => dictionary(array, name)?,
            DataType::Null => Layout::Null,
            other => return Err(no_text(name, other)),
        };
        Ok(Self { rows: array.len(), nulls: array.nulls().cloned(), layout })
    }

    /// Returns the bytes of a row. `None` if it is null.
    pub(super) fn bytes(&self, row: usize) -> Result<Option<&[u8]>, Fault> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(None);
        }
        match &self.layout {
            Layout::Offsets32(offsets, data) => between(data, offsets[row], offsets[row + 1]).map(Some),
            Layout::Offsets64(offsets, data) => between(data, offsets[row], offsets[row + 1]).map(Some),
            Layout::Views(views, buffers) => of_view(&views[row], buffers).map(Some),
            Layout::Dictionary(keys, values) => match keys[row] {
                key if key < values.rows => values.bytes(key),
                _ => Err(OUTSIDE),
            },
            Layout::Null => Ok(None),
        }
    }

    /// Returns the number of bytes of a row, or 0 if they cannot be read.
    fn len(&self, row: usize) -> usize {
        self.bytes(row).ok().flatten().map_or(0, <[u8]>::len)
    }
}

fn no_text(name: &str, kind: &DataType) -> PyErr {
    PyTypeError::new_err(format!(
        "{name}: the column has type {kind}; it must be of strings (string, large_string, string_view, or a dictionary of \
         these)"
    ))
}

fn offsets<T: ByteArrayType>(
    array: &GenericByteArray<T>,
    layout: fn(ScalarBuffer<T::Offset>, Buffer) -> Layout,
) -> Layout {
    layout(array.offsets().inner().clone(), array.values().clone())
}

fn between(data: &Buffer, start: impl ArrowNativeType, end: impl ArrowNativeType) -> Result<&[u8], Fault> {
    let (start, end) = (start.to_usize().ok_or(OUTSIDE)?, end.to_usize().ok_or(OUTSIDE)?);
    data.as_slice().get(start..end).ok_or(OUTSIDE)
}

/// Returns the text of a view. A view has a length, and then either the text itself or a buffer and an offset.
fn of_view<'a>(view: &'a u128, buffers: &'a [Buffer]) -> Result<&'a [u8], Fault> {
    let part = |at: u32| (view >> (32 * at)) as u32 as usize;
    let len = part(0);
    if len <= IN_VIEW_MAX {
        return Ok(&view.to_byte_slice()[4..4 + len]);
    }
    let buffer = buffers.get(part(2)).ok_or(OUTSIDE)?;
    buffer.as_slice().get(part(3)..part(3).saturating_add(len)).ok_or(OUTSIDE)
}

fn dictionary(array: &ArrayRef, name: &str) -> PyResult<Layout> {
    let any = array.as_any_dictionary();
    let keys = match any.keys().data_type() {
        DataType::Int8 => keys::<Int8Type>(any.keys()),
        DataType::Int16 => keys::<Int16Type>(any.keys()),
        DataType::Int32 => keys::<Int32Type>(any.keys()),
        DataType::Int64 => keys::<Int64Type>(any.keys()),
        DataType::UInt8 => keys::<UInt8Type>(any.keys()),
        DataType::UInt16 => keys::<UInt16Type>(any.keys()),
        DataType::UInt32 => keys::<UInt32Type>(any.keys()),
        DataType::UInt64 => keys::<UInt64Type>(any.keys()),
        other => return Err(PyTypeError::new_err(format!("{name}: the keys of a dictionary cannot be {other}"))),
    };
    Ok(Layout::Dictionary(keys, Box::new(TextColumn::of(any.values(), name)?)))
}

/// Returns the keys as indexes. A negative key becomes an index that no dictionary has.
fn keys<K: ArrowDictionaryKeyType>(keys: &dyn Array) -> Vec<usize> {
    keys.as_primitive::<K>().values().iter().map(|key| key.to_usize().unwrap_or(usize::MAX)).collect()
}

/// The chunks of a column, job by job.
pub(super) struct ArrowTexts {
    name: String,
    stream: Option<ArrayStreamReader>,
    chunk: Option<Arc<TextColumn>>,
    /// The next row of the chunk.
    next: usize,
}

impl ArrowTexts {
    /// Returns the column, and the name that exceptions use for it.
    pub(super) fn of(given: Given) -> PyResult<(Self, String)> {
        let (field, array, stream) = match given {
            Given::Array(array, field) => (field, Some(array), None),
            Given::Stream(stream) => (stream.field().as_ref().clone(), None, Some(stream)),
        };
        let name = name_of(&field)?;
        let chunk = array.map(|array| column_of(&array, &name)).transpose()?;
        Ok((Self { name: name.clone(), stream, chunk, next: 0 }, name))
    }

    /// Returns the next rows, and about how many bytes they have.
    pub(super) fn next(&mut self, py: Python<'_>) -> PyResult<Option<(Texts, usize)>> {
        loop {
            if let Some(chunk) = &self.chunk {
                let (start, mut end, mut bytes) = (self.next, self.next, 0);
                while end < chunk.rows && end - start < JOB_ROWS_MAX && bytes < JOB_BYTES {
                    bytes += chunk.len(end);
                    end += 1;
                }
                if end > start {
                    self.next = end;
                    return Ok(Some((Texts::Column { column: Arc::clone(chunk), rows: start..end }, bytes)));
                }
            }
            let Some(stream) = &mut self.stream else { return Ok(None) };
            // To make the next chunk, the producer may run queries on threads that need the interpreter.
            let Some(array) = py.detach(|| no_panic(|| Ok(stream.next())))? else { return Ok(None) };
            self.chunk = Some(column_of(&array.map_err(refused)?, &self.name)?);
            self.next = 0;
        }
    }
}

/// Returns how exceptions name a column. A table must have only one column.
fn name_of(field: &Field) -> PyResult<String> {
    let named = |name: &str| if name.is_empty() { "texts".to_owned() } else { format!("column {name:?}") };
    match field.data_type() {
        DataType::Struct(columns) => match columns.as_ref() {
            [column] => Ok(named(column.name())),
            columns => {
                let names: Vec<_> = columns.iter().map(|column| column.name().as_str()).collect();
                Err(PyValueError::new_err(format!(
                    "texts must be one column, but the table has {}: {}; pass one of them",
                    names.len(),
                    names.join(", ")
                )))
            }
        },
        _ => Ok(named(field.name())),
    }
}

fn column_of(array: &ArrayRef, name: &str) -> PyResult<Arc<TextColumn>> {
    no_panic(|| match array.as_struct_opt() {
        Some(table) => of_table(table, name),
        None => Ok(Arc::new(TextColumn::of(array, name)?)),
    })
}

fn of_table(table: &StructArray, name: &str) -> PyResult<Arc<TextColumn>> {
    let mut column = TextColumn::of(table.column(0), name)?;
    column.nulls = NullBuffer::union(column.nulls.as_ref(), table.nulls());
    Ok(Arc::new(column))
}
