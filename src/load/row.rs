//! A batch of rows, column by column -> the values of one row. In: a batch whose columns have the right types. Out:
//! plain values, or which column is wrong and why.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

use super::columns::{
    CONTENT_HASH, DATE, EXTRACTOR, FIRST_SEEN, HTML_HASH, ID, ID_FIRST_SEEN, LABELS, LAST_SEEN, LINKED, METADATA,
    PAYLOAD, PAYLOAD_DIGEST, PAYLOAD_SHINGLES, REPRESENTATIVE, SHINGLES, SIGNATURE, VERDICT,
};
use crate::store::Additions;
use crate::types::strict_json::compact_object;
use crate::types::{Capture, CaptureDate, DocId, Label, Labels, Metadata, PageMark, PayloadDigest, TimestampMs};

/// The last moment of the year 9999, in milliseconds. RFC 3339 knows no later one.
const TIME_MAX: i64 = 253_402_300_799_999;

/// What is wrong, and in which column.
pub(super) type Wrong = (&'static str, String);

/// The values of a row, except its verdict.
pub(super) struct Row<'a> {
    pub(super) id: DocId,
    /// `None`: the text was empty.
    pub(super) signature: Option<&'a [u8]>,
    pub(super) content: Option<u128>,
    pub(super) shingles: Option<u64>,
    pub(super) verdict: Option<&'a str>,
    pub(super) representative: Option<DocId>,
    pub(super) linked: Option<bool>,
    pub(super) first_seen: Option<TimestampMs>,
    pub(super) id_first_seen: Option<TimestampMs>,
    pub(super) last_seen: Option<TimestampMs>,
    /// The bytes of a payload, and how many distinct shingles it has.
    pub(super) payload: Option<(&'a [u8], u64)>,
    pub(super) additions: Additions,
}

/// The columns of a batch.
pub(super) struct Columns<'a>(&'a RecordBatch);

impl<'a> Columns<'a> {
    pub(super) fn new(batch: &'a RecordBatch) -> Self {
        Self(batch)
    }

    pub(super) fn rows(&self) -> usize {
        self.0.num_rows()
    }

    /// Returns the values of a row. The signature has `signature_bytes`.
    pub(super) fn row(&self, at: usize, signature_bytes: usize) -> Result<Row<'a>, Wrong> {
        let id = |text: &str| DocId::new(text).map_err(|error| error.to_string());
        let of = |column, made: Result<_, String>| made.map_err(|detail| (column, detail));
        let named = self.text(ID, at).ok_or_else(|| (ID, "it has no value".to_owned()))?;
        let signature = self.bytes(SIGNATURE, at);
        if let Some(bytes) = signature.map(<[u8]>::len).filter(|&bytes| bytes != signature_bytes) {
            return Err((SIGNATURE, format!("it must have {signature_bytes} bytes, but has {bytes}")));
        }
        Ok(Row {
            id: of(ID, id(named))?,
            signature,
            content: self.hash(CONTENT_HASH, at)?,
            shingles: self.number(SHINGLES, at)?,
            verdict: self.text(VERDICT, at),
            representative: self.text(REPRESENTATIVE, at).map(|text| of(REPRESENTATIVE, id(text))).transpose()?,
            linked: self.column(LINKED, at).map(|array| array.as_boolean().value(at)),
            first_seen: self.time(FIRST_SEEN, at)?,
            id_first_seen: self.time(ID_FIRST_SEEN, at)?,
            last_seen: self.time(LAST_SEEN, at)?,
            payload: self.payload(at)?,
            additions: Additions {
                metadata: self.metadata(at)?,
                labels: self.labels(at)?,
                capture: self.capture(at)?,
                page: self.page(at)?,
            },
        })
    }

    /// Returns the array of a column; `None` if this row has no value in it.
    fn column(&self, name: &str, at: usize) -> Option<&'a ArrayRef> {
        self.0.column_by_name(name).filter(|array| array.is_valid(at))
    }

    fn text(&self, name: &str, at: usize) -> Option<&'a str> {
        self.column(name, at).map(|array| array.as_string::<i32>().value(at))
    }

    fn bytes(&self, name: &str, at: usize) -> Option<&'a [u8]> {
        self.column(name, at).map(|array| match array.data_type() {
            DataType::Binary => array.as_binary::<i32>().value(at),
            _ => array.as_fixed_size_binary().value(at),
        })
    }

    fn hash(&self, name: &'static str, at: usize) -> Result<Option<u128>, Wrong> {
        let Some(bytes) = self.bytes(name, at) else { return Ok(None) };
        match bytes.try_into() {
            Ok(bytes) => Ok(Some(u128::from_be_bytes(bytes))),
            Err(_) => Err((name, format!("it must have 16 bytes, but has {}", bytes.len()))),
        }
    }

    fn number(&self, name: &'static str, at: usize) -> Result<Option<u64>, Wrong> {
        let Some(array) = self.column(name, at) else { return Ok(None) };
        let number = match array.data_type() {
            DataType::Int8 => value::<Int8Type>(array, at).into(),
            DataType::Int16 => value::<Int16Type>(array, at).into(),
            DataType::Int32 => value::<Int32Type>(array, at).into(),
            DataType::Int64 => value::<Int64Type>(array, at).into(),
            DataType::UInt8 => value::<UInt8Type>(array, at).into(),
            DataType::UInt16 => value::<UInt16Type>(array, at).into(),
            DataType::UInt32 => value::<UInt32Type>(array, at).into(),
            _ => i128::from(value::<UInt64Type>(array, at)),
        };
        // The file of a collection has signed numbers of 64 bits.
        match i64::try_from(number) {
            Ok(number @ 0..) => Ok(Some(number as u64)),
            _ => Err((name, format!("it is {number}; it must be at least 0 and below 2^63"))),
        }
    }

    fn time(&self, name: &'static str, at: usize) -> Result<Option<TimestampMs>, Wrong> {
        let Some(array) = self.column(name, at) else { return Ok(None) };
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
            _ => Err((name, "it must be a time from 1970 to 9999".to_owned())),
        }
    }

    fn metadata(&self, at: usize) -> Result<Option<Metadata>, Wrong> {
        let Some(text) = self.text(METADATA, at) else { return Ok(None) };
        let compact = compact_object(text).map_err(|detail| (METADATA, detail.to_owned()))?;
        let metadata = Metadata::new(compact).map_err(|error| (METADATA, error.to_string()))?;
        Ok(Some(metadata).filter(|metadata| !metadata.is_empty()))
    }

    fn labels(&self, at: usize) -> Result<Option<Labels>, Wrong> {
        let Some(array) = self.column(LABELS, at) else { return Ok(None) };
        let values = array.as_list::<i32>().value(at);
        let texts = values.as_string::<i32>();
        let labels: Result<Vec<Label>, _> = texts.iter().map(|text| Label::parse(text.unwrap_or_default())).collect();
        let labels = labels.and_then(Labels::new).map_err(|error| (LABELS, error.to_string()))?;
        Ok(Some(labels).filter(|labels| !labels.is_empty()))
    }

    fn payload(&self, at: usize) -> Result<Option<(&'a [u8], u64)>, Wrong> {
        match (self.bytes(PAYLOAD, at), self.number(PAYLOAD_SHINGLES, at)?) {
            (None, _) => Ok(None),
            (Some(bytes), Some(shingles)) => Ok(Some((bytes, shingles))),
            (Some(_), None) => Err((PAYLOAD_SHINGLES, "a payload needs it".to_owned())),
        }
    }

    fn page(&self, at: usize) -> Result<Option<PageMark>, Wrong> {
        match (self.hash(HTML_HASH, at)?, self.number(EXTRACTOR, at)?) {
            (None, _) => Ok(None),
            (Some(hash), Some(extractor)) => match u32::try_from(extractor) {
                Ok(extractor) => Ok(Some(PageMark { hash, extractor })),
                Err(_) => Err((EXTRACTOR, format!("there is no version {extractor}"))),
            },
            (Some(_), None) => Err((EXTRACTOR, "an `html_hash` needs it".to_owned())),
        }
    }

    fn capture(&self, at: usize) -> Result<Capture, Wrong> {
        let date = self.text(DATE, at).map(CaptureDate::new).transpose();
        let digest = self.text(PAYLOAD_DIGEST, at).map(PayloadDigest::new).transpose();
        Ok(Capture {
            date: date.map_err(|error| (DATE, error.to_string()))?,
            digest: digest.map_err(|error| (PAYLOAD_DIGEST, error.to_string()))?,
        })
    }
}

fn value<T: ArrowPrimitiveType>(array: &ArrayRef, at: usize) -> T::Native {
    array.as_primitive::<T>().value(at)
}
