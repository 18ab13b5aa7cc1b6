//! Reads a value of a column of integers of any width.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_schema::DataType;

/// Returns a value of a column whose type is an integer.
pub(crate) fn integer(array: &ArrayRef, at: usize) -> i128 {
    match array.data_type() {
        DataType::Int8 => value::<Int8Type>(array, at).into(),
        DataType::Int16 => value::<Int16Type>(array, at).into(),
        DataType::Int32 => value::<Int32Type>(array, at).into(),
        DataType::Int64 => value::<Int64Type>(array, at).into(),
        DataType::UInt8 => value::<UInt8Type>(array, at).into(),
        DataType::UInt16 => value::<UInt16Type>(array, at).into(),
        DataType::UInt32 => value::<UInt32Type>(array, at).into(),
        _ => value::<UInt64Type>(array, at).into(),
    }
}

fn value<T: ArrowPrimitiveType>(array: &ArrayRef, at: usize) -> T::Native {
    array.as_primitive::<T>().value(at)
}
