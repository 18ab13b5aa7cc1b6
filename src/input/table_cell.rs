//! A cell of a table -> the JSON of its value. Knows nothing of records.

use serde_json::Value;

use crate::types::strict_json::compact_object;

/// Fields whose values are no strings. A cell has their JSON.
const JSON_FIELDS: [&str; 4] = ["metadata", "labels", "set", "shingles"];

/// Returns the object or the array that a cell has, in one line, if the cells of this column have such values. Any other
/// text is sent as a string. The server refuses it, and its error names the field.
pub(super) fn json_of(column: &str, cell: &str) -> Option<String> {
    let is_array = |value: &Value| value.is_array();
    let array = || serde_json::from_str(cell).ok().filter(is_array).map(|array| array.to_string());
    if JSON_FIELDS.contains(&column) { compact_object(cell).ok().or_else(array) } else { None }
}

/// Returns the object that a cell has, if the cells of this column have objects. All its digits stay.
pub(super) fn object_of(column: &str, cell: &str) -> Option<String> {
    if ["metadata", "labels"].contains(&column) { compact_object(cell).ok() } else { None }
}

/// Returns the number that a cell has, as JSON and with all its digits. Spaces around it do not count.
pub(super) fn number(cell: &str) -> Option<String> {
    let cell = cell.trim();
    let (sign, digits) = match cell.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", cell.strip_prefix('+').unwrap_or(cell)),
    };
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let power = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let is_number = are_digits(whole) && are_digits(fraction) && are_digits(power);
    if !is_number || power.is_empty() || whole.len() + fraction.len() == 0 {
        return None;
    }
    // JSON has no zeros at the beginning of a number.
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    Some(format!("{sign}{whole}.{fraction}e{exponent}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_a_number_with_all_its_digits() {
        let of = |cell: &str| number(cell);
        assert_eq!(of(" 9007199254740993 ").as_deref(), Some("9007199254740993.0e0"));
        assert_eq!(of("-007.250").as_deref(), Some("-7.250e0"));
        assert_eq!((of("+.5").as_deref(), of("5.E-3").as_deref()), (Some("0.5e0"), Some("5.0e-3")));
        for cell in ["", " ", ".", "-", "1e", "1,5", "inf", "NaN", "0x1", "--1", "1e1.5", "2026-11-30"] {
            assert_eq!(of(cell), None, "{cell}");
        }
    }

    #[test]
    fn only_some_columns_have_json() {
        assert_eq!(json_of("labels", "{ \"a\": 1 }").as_deref(), Some("{\"a\":1}"));
        assert_eq!(json_of("set", "[1, 2]").as_deref(), Some("[1,2]"));
        assert_eq!((json_of("text", "{}"), json_of("labels", "a"), json_of("set", "1")), (None, None, None));
    }
}
