//! A value of a column of Parquet -> the number that its row is ranked by, as JSON. Knows nothing of rows.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use serde_json::Number;

const NANOSECONDS_A_SECOND: i128 = 1_000_000_000;
const SECONDS_A_DAY: i128 = 86_400;
/// An infinite number, as JSON: larger than each number of a file.
const INFINITE: &str = "1e2000000000";

/// Returns the number for types that have another form in JSON. A time is the number of its nanoseconds, so times of
/// several units can be compared. A NaN is no number: the object without it has no such field.
pub(super) fn number(array: &ArrayRef, at: usize) -> Option<String> {
    let nanoseconds = |value: i128, a_second: i128| Some((value * (NANOSECONDS_A_SECOND / a_second)).to_string());
    match array.data_type() {
        DataType::Float32 => float(array.as_primitive::<Float32Type>().value(at).into()),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(at)),
        DataType::Date32 => nanoseconds(i128::from(array.as_primitive::<Date32Type>().value(at)) * SECONDS_A_DAY, 1),
        DataType::Timestamp(TimeUnit::Second, _) => {
            nanoseconds(array.as_primitive::<TimestampSecondType>().value(at).into(), 1)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            nanoseconds(array.as_primitive::<TimestampMillisecondType>().value(at).into(), 1_000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            nanoseconds(array.as_primitive::<TimestampMicrosecondType>().value(at).into(), 1_000_000)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            nanoseconds(array.as_primitive::<TimestampNanosecondType>().value(at).into(), NANOSECONDS_A_SECOND)
        }
        _ => None,
    }
}

fn float(number: f64) -> Option<String> {
    let infinite = || Some(format!("{}{INFINITE}", if number < 0.0 { "-" } else { "" })).filter(|_| !number.is_nan());
    Number::from_f64(number).map(|number| number.to_string()).or_else(infinite)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Date32Array, Float64Array, Int64Array, TimestampMicrosecondArray, TimestampSecondArray};

    use super::*;

    #[test]
    fn times_are_nanoseconds_whatever_their_unit() {
        let first = |array: ArrayRef| number(&array, 0);
        let seconds = first(Arc::new(TimestampSecondArray::from(vec![86_400])));
        assert_eq!(seconds.as_deref(), Some("86400000000000"));
        assert_eq!(seconds, first(Arc::new(TimestampMicrosecondArray::from(vec![86_400_000_000]))));
        assert_eq!(seconds, first(Arc::new(Date32Array::from(vec![1]))));
        assert_eq!(first(Arc::new(TimestampSecondArray::from(vec![i64::MIN]))).map(|number| number.len()), Some(29));
        assert_eq!(first(Arc::new(Int64Array::from(vec![7]))), None, "it has this form in JSON");
    }

    #[test]
    fn infinite_numbers_are_the_largest_and_nan_is_none() {
        let of = |value: f64| number(&(Arc::new(Float64Array::from(vec![value])) as ArrayRef), 0);
        assert_eq!(of(0.1).as_deref(), Some("0.1"));
        assert_eq!(of(f64::INFINITY).as_deref(), Some(INFINITE));
        assert_eq!((of(f64::NEG_INFINITY), of(f64::NAN)), (Some(format!("-{INFINITE}")), None));
    }
}
