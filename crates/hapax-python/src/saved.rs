//! An index <-> rows of Arrow, in the format of `hapax load` (`docs/load.md`). Python reads and writes the Parquet around
//! them, in `pyhapax/_files.py`. Rows are stored as they are: nothing is looked up.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, FixedSizeBinaryBuilder, StringBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, RecordBatch, StructArray};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::boundary::{Given, arrow_of, capsules_of, no_panic, refused};
use crate::documents::{Documents, Place};
use crate::index::Index;
use crate::near::{Compared, Doc};
use crate::signed_batch::{CONTENT_BYTES, struct_field};
use crate::signer::Signing;
use crate::spec::Parts;

const ID: &str = "id";
const SIGNATURE: &str = "signature";
const CONTENT_HASH: &str = "content_hash";
const SHINGLES: &str = "shingles";
const REPRESENTATIVE: &str = "representative";
const LINKED: &str = "linked";

/// The largest number of rows in a batch, which becomes a row group.
const BATCH_ROWS_MAX: usize = 65_536;
/// A batch ends when it has about this many bytes.
const BATCH_BYTES: usize = 16 << 20;

/// Returns the next documents of an index from number `first` on, as the capsules of a table. If there are no further
/// documents, the table is empty.
#[pyfunction]
pub(crate) fn index_rows<'py>(
    py: Python<'py>,
    index: &Bound<'py, Index>,
    first: usize,
) -> PyResult<Bound<'py, PyTuple>> {
    let index = index.get();
    let spec = index.signing().spec();
    let width = i32::try_from(spec.shape().bytes()).expect("a signature has at most 32 KiB");
    let (columns, banding) = index.with(py, |documents| {
        let columns = no_panic(|| columns_from(documents, first, width).map_err(refused));
        columns.map(|columns| (columns, documents.near.banding()))
    })?;
    let field = |name: &str, kind: DataType, nullable| Field::new(name, kind, nullable);
    let fields: Fields = vec![
        field(ID, DataType::Utf8, false),
        field(SIGNATURE, DataType::FixedSizeBinary(width), false),
        field(CONTENT_HASH, DataType::FixedSizeBinary(CONTENT_BYTES), true),
        field(SHINGLES, DataType::UInt64, true),
        field(REPRESENTATIVE, DataType::Utf8, true),
        field(LINKED, DataType::Boolean, false),
    ]
    .into();
    let (threshold, by_hand) = (index.similarity_min(), index.is_banded_by_hand());
    let (bands, rows) = (banding.bands(), banding.rows());
    // `{:?}` writes every finite number as JSON does.
    let settings =
        format!(r#"{{"threshold":{threshold:?},"bands":{bands},"rows":{rows},"banding_by_hand":{by_hand}}}"#);
    let metadata = [
        ("hapax.spec".to_owned(), spec.text().to_owned()),
        ("hapax.fingerprint".to_owned(), spec.fingerprint().to_string()),
        ("hapax.settings".to_owned(), settings),
    ];
    let schema = Schema::new(fields).with_metadata(metadata);
    let table = RecordBatch::try_new(Arc::new(schema), columns).map_err(refused)?;
    let field = struct_field(&table);
    capsules_of(py, &StructArray::from(table), &field)
}

/// Returns the columns of some documents, in the order of the schema.
fn columns_from(documents: &Documents, first: usize, width: i32) -> Result<Vec<ArrayRef>, ArrowError> {
    let (mut id, mut representative) = (StringBuilder::new(), StringBuilder::new());
    let (mut signature, mut content) = (FixedSizeBinaryBuilder::new(width), FixedSizeBinaryBuilder::new(CONTENT_BYTES));
    let (mut shingles, mut linked) = (UInt64Builder::new(), BooleanBuilder::new());
    let mut bytes = 0;
    for doc in (first..documents.near.len()).take(BATCH_ROWS_MAX) {
        let doc = doc as Doc;
        let stored = documents.stored(doc);
        let compared = documents.near.compared(doc);
        let represents = stored.place.representative().map(|doc| documents.ids.get(doc));
        id.append_value(documents.ids.get(doc));
        signature.append_value(compared.signature)?;
        match stored.shingles {
            None => content.append_null(),
            Some(_) => content.append_value(compared.content.unwrap_or_default().to_be_bytes())?,
        }
        shingles.append_option(stored.shingles.map(NonZeroU64::get));
        representative.append_option(represents);
        linked.append_value(matches!(stored.place, Place::Link(_)));
        bytes += compared.signature.len() + documents.ids.get(doc).len() + represents.map_or(0, str::len);
        if bytes >= BATCH_BYTES {
            break;
        }
    }
    Ok(vec![
        Arc::new(id.finish()),
        Arc::new(signature.finish()),
        Arc::new(content.finish()),
        Arc::new(shingles.finish()),
        Arc::new(representative.finish()),
        Arc::new(linked.finish()),
    ])
}

/// Makes an empty index with the settings of a file. Errors about the key are those of the constructor. Other errors
/// name the file.
#[pyfunction]
#[pyo3(signature = (
    file, spec, fingerprint, threshold, bands, rows, banding_by_hand, key, key_file, key_env
))]
#[allow(clippy::too_many_arguments)] // the parts of a file, and those of a key
pub(crate) fn restore_index(
    py: Python<'_>,
    file: &str,
    spec: &str,
    fingerprint: &str,
    threshold: f64,
    bands: Option<u32>,
    rows: Option<u32>,
    banding_by_hand: bool,
    key: Option<&Bound<'_, PyAny>>,
    key_file: Option<PathBuf>,
    key_env: Option<String>,
) -> PyResult<Index> {
    let wrong = |detail: String| PyValueError::new_err(format!("{file}: {detail}"));
    let signing = Signing::new(Some(spec), Parts::default(), (key, key_file, key_env))?;
    let own = signing.spec().fingerprint().to_string();
    if fingerprint != own {
        return Err(wrong(format!("`hapax.fingerprint` is {fingerprint}, but `hapax.spec` has fingerprint {own}")));
    }
    Index::new_with(signing, threshold, (bands, rows), banding_by_hand)
        .map_err(|error| wrong(error.value(py).to_string()))
}

/// Stores rows. The first of them has the number `first` in `file`.
///
/// The columns `id`, `signature`, `content_hash` and `representative` are binary, `shingles` is int64 or uint64, and
/// `linked` is bool.
#[pyfunction]
pub(crate) fn append_rows(
    py: Python<'_>,
    index: &Bound<'_, Index>,
    rows: &Bound<'_, PyAny>,
    first: usize,
    file: &str,
) -> PyResult<()> {
    let chunks = match arrow_of(rows)? {
        Some(Given::Array(array, _)) => vec![array],
        Some(Given::Stream(stream)) => no_panic(|| stream.map(|chunk| chunk.map_err(refused)).collect())?,
        None => return Err(PyTypeError::new_err("rows must be an Arrow table")),
    };
    let mut first = first;
    for chunk in &chunks {
        let columns = Columns::of(chunk)?;
        index.get().with(py, |documents| {
            no_panic(|| {
                for at in 0..columns.rows {
                    let added = columns.row(at).and_then(|row| row.map_or(Ok(()), |row| add(documents, &row)));
                    added.map_err(|failed| failed.exception(file, first + at))?;
                }
                Ok(())
            })
        })?;
        first += columns.rows;
    }
    Ok(())
}

/// The reason why a row is not stored.
enum Failed {
    /// The column and its fault.
    Wrong(&'static str, String),
    Full,
}

impl Failed {
    fn exception(&self, file: &str, row: usize) -> PyErr {
        match self {
            Self::Wrong(column, detail) => {
                PyValueError::new_err(format!("{file}, row {row}, column `{column}`: {detail}"))
            }
            Self::Full => PyOverflowError::new_err("the index is full"),
        }
    }
}

fn wrong<T>(column: &'static str, detail: impl Into<String>) -> Result<T, Failed> {
    Err(Failed::Wrong(column, detail.into()))
}

/// The values of a row.
struct Row<'a> {
    id: &'a str,
    signature: &'a [u8],
    /// The content hash and the number of shingles.
    made: Option<(u128, u64)>,
    representative: Option<&'a str>,
    linked: Option<bool>,
}

/// The columns of a batch.
struct Columns<'a> {
    rows: usize,
    id: &'a BinaryArray,
    signature: &'a BinaryArray,
    content: &'a BinaryArray,
    shingles: &'a ArrayRef,
    representative: &'a BinaryArray,
    linked: &'a BooleanArray,
}

impl<'a> Columns<'a> {
    fn of(chunk: &'a ArrayRef) -> PyResult<Self> {
        let strange = |name: &str| PyTypeError::new_err(format!("column `{name}` is missing or has another type"));
        let table = chunk.as_struct_opt().ok_or_else(|| PyTypeError::new_err("rows must be an Arrow table"))?;
        let column = |name: &'static str| table.column_by_name(name).ok_or_else(|| strange(name));
        let binary = |name| column(name)?.as_binary_opt::<i32>().ok_or_else(|| strange(name));
        let shingles = column(SHINGLES)?;
        if ![DataType::Int64, DataType::UInt64].contains(shingles.data_type()) {
            return Err(strange(SHINGLES));
        }
        Ok(Self {
            rows: table.len(),
            id: binary(ID)?,
            signature: binary(SIGNATURE)?,
            content: binary(CONTENT_HASH)?,
            shingles,
            representative: binary(REPRESENTATIVE)?,
            linked: column(LINKED)?.as_boolean_opt().ok_or_else(|| strange(LINKED))?,
        })
    }

    /// Returns the values of a row. `None` if it has no signature: its text was empty.
    fn row(&self, at: usize) -> Result<Option<Row<'a>>, Failed> {
        let Some(id) = text(self.id, ID, at)? else { return wrong(ID, "it has no value") };
        if self.signature.is_null(at) {
            return Ok(None);
        }
        let content = match self.content.is_valid(at).then(|| self.content.value(at)) {
            None => None,
            Some(bytes) => match bytes.try_into() {
                Ok(bytes) => Some(u128::from_be_bytes(bytes)),
                Err(_) => return wrong(CONTENT_HASH, format!("it must have 16 bytes, but has {}", bytes.len())),
            },
        };
        let made = match (content, self.shingles(at)?) {
            (None, None) => None,
            (Some(content), Some(shingles @ 1..)) => Some((content, shingles)),
            (Some(_), _) => return wrong(SHINGLES, "a content hash needs the number of shingles, at least 1"),
            (None, Some(_)) => return wrong(CONTENT_HASH, "a number of shingles needs a content hash"),
        };
        Ok(Some(Row {
            id,
            signature: self.signature.value(at),
            made,
            representative: text(self.representative, REPRESENTATIVE, at)?,
            linked: self.linked.is_valid(at).then(|| self.linked.value(at)),
        }))
    }

    fn shingles(&self, at: usize) -> Result<Option<u64>, Failed> {
        if self.shingles.is_null(at) {
            return Ok(None);
        }
        let number = match self.shingles.data_type() {
            DataType::UInt64 => i128::from(self.shingles.as_primitive::<UInt64Type>().value(at)),
            _ => i128::from(self.shingles.as_primitive::<Int64Type>().value(at)),
        };
        match i64::try_from(number) {
            Ok(number @ 0..) => Ok(Some(number as u64)),
            _ => wrong(SHINGLES, format!("it is {number}; it must be at least 0 and below 2^63")),
        }
    }
}

/// Returns the text of a row. Parquet only claims that the text is UTF-8, so this is checked.
fn text<'a>(column: &'a BinaryArray, name: &'static str, at: usize) -> Result<Option<&'a str>, Failed> {
    if column.is_null(at) {
        return Ok(None);
    }
    let text = std::str::from_utf8(column.value(at));
    text.map(Some).or_else(|_| wrong(name, "it is not well-formed UTF-8"))
}

/// Stores a row, which may name an earlier one as its representative.
fn add(documents: &mut Documents, row: &Row<'_>) -> Result<(), Failed> {
    let Row { id, signature, made, representative, linked } = *row;
    let (width, found) = (documents.near.signature_bytes(), signature.len());
    if found != width {
        return wrong(SIGNATURE, format!("it must have {width} bytes, but has {found}"));
    }
    if documents.ids.find(id).is_some() {
        return wrong(ID, format!("an earlier row has the id {id:?}, too"));
    }
    let place = match (representative, linked) {
        (None, Some(true)) => return wrong(LINKED, "a link needs a representative"),
        (None, _) => Place::Own,
        (Some(named), _) => match documents.ids.find(named) {
            None => return wrong(REPRESENTATIVE, format!("no earlier row has the id {named:?}")),
            Some(doc) if documents.stored(doc).place.representative().is_some() => {
                return wrong(REPRESENTATIVE, format!("{named:?} has a representative itself"));
            }
            Some(doc) if linked == Some(false) => Place::Member(doc),
            Some(doc) => Place::Link(doc),
        },
    };
    let compared = Compared { signature, content: made.map(|(content, _)| content) };
    match documents.store(id, compared, made.map(|(_, shingles)| shingles), place) {
        true => Ok(()),
        false => Err(Failed::Full),
    }
}
