//! A batch of rows, column by column -> the values of each row. In: a batch whose columns have the right types. Out:
//! plain values, or which column is wrong and why.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

use super::columns::{COLUMNS, Column};
use super::integer::integer;
use crate::store::Additions;
use crate::types::strict_json::compact_object;
use crate::types::{Capture, CaptureDate, DocId, Label, Labels, Metadata, PageMark, PayloadDigest, TimestampMs};

/// The last moment of the year 9999, in milliseconds. RFC 3339 cannot express a later one.
const TIME_MAX: i64 = 253_402_300_799_999;

/// The column of a wrong value, and the fault of the value.
pub(super) type Wrong = (Column, String);

/// The values of a row. The verdict is still the unchecked text from the file.
pub(super) struct Row {
    pub(super) id: DocId,
    /// `None` if the text was empty.
    pub(super) signature: Option<Vec<u8>>,
    pub(super) content: Option<u128>,
    pub(super) shingles: Option<u64>,
    pub(super) verdict: Option<String>,
    pub(super) representative: Option<DocId>,
    pub(super) linked: Option<bool>,
    pub(super) first_seen: Option<TimestampMs>,
    pub(super) id_first_seen: Option<TimestampMs>,
    pub(super) last_seen: Option<TimestampMs>,
    /// The bytes of a payload, and how many distinct shingles it has.
    pub(super) payload: Option<(Vec<u8>, u64)>,
    pub(super) additions: Additions,
}

/// Returns the values of all rows. If a row is wrong, the result ends with the fault of this row, and the rows after it
/// are not read. Each signature must have `signature_bytes` bytes.
pub(super) fn rows(batch: &RecordBatch, signature_bytes: usize) -> Vec<Result<Row, Wrong>> {
    let columns = Columns { arrays: COLUMNS.map(|doc| batch.column_by_name(doc.name)) };
    let mut rows = Vec::with_capacity(batch.num_rows());
    for at in 0..batch.num_rows() {
        rows.push(columns.row(at, signature_bytes));
        if rows[at].is_err() {
            break;
        }
    }
    rows
}

struct Columns<'a> {
    /// The array of each column, indexed by [`Column`]; `None` if the batch does not have the column.
    arrays: [Option<&'a ArrayRef>; COLUMNS.len()],
}

impl<'a> Columns<'a> {
    fn row(&self, at: usize, signature_bytes: usize) -> Result<Row, Wrong> {
        let id = |text: &str| DocId::new(text).map_err(|error| error.to_string());
        let of = |column, made: Result<_, String>| made.map_err(|detail| (column, detail));
        let named = self.text(Column::Id, at).ok_or_else(|| (Column::Id, "it has no value".to_owned()))?;
        let signature = self.bytes(Column::Signature, at);
        if let Some(bytes) = signature.map(<[u8]>::len).filter(|&bytes| bytes != signature_bytes) {
            return Err((Column::Signature, format!("it must have {signature_bytes} bytes, but has {bytes}")));
        }
        Ok(Row {
            id: of(Column::Id, id(named))?,
            signature: signature.map(<[u8]>::to_vec),
            content: self.hash(Column::ContentHash, at)?,
            shingles: self.number(Column::Shingles, at)?,
            verdict: self.text(Column::Verdict, at).map(str::to_owned),
            representative: self
                .text(Column::Representative, at)
                .map(|text| of(Column::Representative, id(text)))
                .transpose()?,
            linked: self.column(Column::Linked, at).map(|array| array.as_boolean().value(at)),
            first_seen: self.time(Column::FirstSeen, at)?,
            id_first_seen: self.time(Column::IdFirstSeen, at)?,
            last_seen: self.time(Column::LastSeen, at)?,
            payload: self.payload(at)?,
            additions: Additions {
                metadata: self.metadata(at)?,
                labels: self.labels(at)?,
                capture: self.capture(at)?,
                page: self.page(at)?,
            },
        })
    }

    /// Returns the array of a column; `None` if this row has no value in the column.
    fn column(&self, column: Column, at: usize) -> Option<&'a ArrayRef> {
        self.arrays[column as usize].filter(|array| array.is_valid(at))
    }

    fn text(&self, column: Column, at: usize) -> Option<&'a str> {
        self.column(column, at).map(|array| array.as_string::<i32>().value(at))
    }

    fn bytes(&self, column: Column, at: usize) -> Option<&'a [u8]> {
        self.column(column, at).map(|array| match array.data_type() {
            DataType::Binary => array.as_binary::<i32>().value(at),
            _ => array.as_fixed_size_binary().value(at),
        })
    }

    fn hash(&self, column: Column, at: usize) -> Result<Option<u128>, Wrong> {
        let Some(bytes) = self.bytes(column, at) else { return Ok(None) };
        match bytes.try_into() {
            Ok(bytes) => Ok(Some(u128::from_be_bytes(bytes))),
            Err(_) => Err((column, format!("it must have 16 bytes, but has {}", bytes.len()))),
        }
    }

    fn number(&self, column: Column, at: usize) -> Result<Option<u64>, Wrong> {
        let Some(array) = self.column(column, at) else { return Ok(None) };
        let number = integer(array, at);
        // The file of a collection has signed numbers of 64 bits.
        match i64::try_from(number) {
            Ok(number @ 0..) => Ok(Some(number as u64)),
            _ => Err((column, format!("it is {number}; it must be at least 0 and below 2^63"))),
        }
    }

    fn time(&self, column: Column, at: usize) -> Result<Option<TimestampMs>, Wrong> {
        let Some(array) = self.column(column, at) else { return Ok(None) };
        let ms = match array.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => value::<TimestampSecondType>(array, at).checked_mul(1000),
            DataType::Timestamp(TimeUnit::Millisecond, _) => Some(value::<TimestampMillisecondType>(array, at)),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Some(value::<TimestampMicrosecondType>(array, at).div_euclid(1000))
            }
            _ => Some(value::<TimestampNanosecondType>(array, at).div_euclid(1_000_000)),
        };
        match ms {
            Some(ms @ 0..=TIME_MAX) => Ok(Some(TimestampMs(ms))),
            _ => Err((column, "it must be a time from 1970 to 9999".to_owned())),
        }
    }

    fn metadata(&self, at: usize) -> Result<Option<Metadata>, Wrong> {
        let Some(text) = self.text(Column::Metadata, at) else { return Ok(None) };
        let compact = compact_object(text).map_err(|detail| (Column::Metadata, detail.to_owned()))?;
        let metadata = Metadata::new(compact).map_err(|error| (Column::Metadata, error.to_string()))?;
        Ok(Some(metadata).filter(|metadata| !metadata.is_empty()))
    }

    fn labels(&self, at: usize) -> Result<Option<Labels>, Wrong> {
        let Some(array) = self.column(Column::Labels, at) else { return Ok(None) };
        let values = array.as_list::<i32>().value(at);
        let texts = values.as_string::<i32>();
        let labels: Result<Vec<Label>, _> = texts.iter().map(|text| Label::parse(text.unwrap_or_default())).collect();
        let labels = labels.and_then(Labels::new).map_err(|error| (Column::Labels, error.to_string()))?;
        Ok(Some(labels).filter(|labels| !labels.is_empty()))
    }

    fn payload(&self, at: usize) -> Result<Option<(Vec<u8>, u64)>, Wrong> {
        match (self.bytes(Column::Payload, at), self.number(Column::PayloadShingles, at)?) {
            (None, _) => Ok(None),
            (Some(bytes), Some(shingles)) => Ok(Some((bytes.to_vec(), shingles))),
            (Some(_), None) => Err((Column::PayloadShingles, "it has no value, but the row has a payload".to_owned())),
        }
    }

    fn page(&self, at: usize) -> Result<Option<PageMark>, Wrong> {
        match (self.hash(Column::HtmlHash, at)?, self.number(Column::Extractor, at)?) {
            (None, _) => Ok(None),
            (Some(hash), Some(extractor)) => match u32::try_from(extractor) {
                Ok(extractor) => Ok(Some(PageMark { hash, extractor })),
                Err(_) => Err((Column::Extractor, format!("there is no version {extractor}"))),
            },
            (Some(_), None) => Err((Column::Extractor, "it has no value, but the row has an `html_hash`".to_owned())),
        }
    }

    fn capture(&self, at: usize) -> Result<Capture, Wrong> {
        let date = self.text(Column::Date, at).map(CaptureDate::new).transpose();
        let digest = self.text(Column::PayloadDigest, at).map(PayloadDigest::new).transpose();
        Ok(Capture {
            date: date.map_err(|error| (Column::Date, error.to_string()))?,
            digest: digest.map_err(|error| (Column::PayloadDigest, error.to_string()))?,
        })
    }
}

fn value<T: ArrowPrimitiveType>(array: &ArrayRef, at: usize) -> T::Native {
    array.as_primitive::<T>().value(at)
}
