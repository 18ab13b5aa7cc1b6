//! Writes members of JSON objects: the same bytes that serde writes. A name is passed with its quotes and its colon,
//! and with the comma before it if it is not the first name. Names are not escaped.

use std::io::{self, Write};

use serde::Serialize;

use super::values::timestamp;
use crate::types::{TimestampMs, write_json_text};

/// Writes a member with any value.
pub(super) fn value(out: &mut impl Write, name: &str, value: &impl Serialize) -> io::Result<()> {
    out.write_all(name.as_bytes())?;
    Ok(serde_json::to_writer(out, value)?)
}

/// Writes a string.
#[inline]
pub(super) fn string(out: &mut impl Write, name: &str, text: &str) -> io::Result<()> {
    out.write_all(name.as_bytes())?;
    write_json_text(out, text)
}

/// Writes a number. Numbers below 1 with at most six decimals, such as similarities, are written here. serde writes all
/// other numbers.
#[inline]
pub(super) fn number(out: &mut impl Write, name: &str, number: f64) -> io::Result<()> {
    let millionths = (number * 1e6 + 0.5) as u32;
    // serde writes numbers below 0.00001 with an exponent.
    if !(10..1_000_000).contains(&millionths) || f64::from(millionths) / 1e6 != number {
        return value(out, name, &number);
    }
    let (digits, len) = decimals(millionths);
    out.write_all(name.as_bytes())?;
    out.write_all(b"0.")?;
    out.write_all(&digits[..len])
}

/// Writes a time as RFC 3339, in UTC.
#[inline]
pub(super) fn time(out: &mut impl Write, name: &str, at: TimestampMs) -> io::Result<()> {
    out.write_all(name.as_bytes())?;
    out.write_all(b"\"")?;
    match calendar(at) {
        Some((text, len)) => out.write_all(&text[..len])?,
        None => out.write_all(timestamp(at).as_bytes())?,
    }
    out.write_all(b"\"")
}

/// Returns the six decimals of a number of millionths, and how many of them come before the zeros at the end.
fn decimals(millionths: u32) -> ([u8; 6], usize) {
    let mut digits = [b'0'; 6];
    put(&mut digits, millionths);
    let len = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    (digits, len)
}

/// Writes the last digits of a number into `zeros`, which has only the digit 0.
fn put(zeros: &mut [u8], number: u32) {
    let mut rest = number;
    for digit in zeros.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
}

/// Returns a time from 1970 to 9998 as text, and the length of the text; `None` for other times. The date is computed
/// as in Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn calendar(TimestampMs(at): TimestampMs) -> Option<([u8; 24], usize)> {
    const YEAR_9999: u64 = 253_370_764_800_000;
    let at = u64::try_from(at).ok().filter(|&at| at < YEAR_9999)?;
    let (days, ms) = ((at / 86_400_000) as u32, (at % 86_400_000) as u32);
    // Years begin in March, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    let year = era * 400 + year_of_era + u32::from(month <= 2);

    let mut text = *b"0000-00-00T00:00:00.000Z";
    put(&mut text[..4], year);
    put(&mut text[5..7], month);
    put(&mut text[8..10], day);
    put(&mut text[11..13], ms / 3_600_000);
    put(&mut text[14..16], ms / 60_000 % 60);
    put(&mut text[17..19], ms / 1000 % 60);
    put(&mut text[20..23], ms % 1000);
    // Zeros at the end of the fraction are left out, and so is an empty fraction.
    let end = match text[20..23].iter().rposition(|&digit| digit != b'0') {
        Some(last) => 20 + last + 1,
        None => 19,
    };
    text[end] = b'Z';
    Some((text, end + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn said(value: &impl Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn six_decimals_are_written_as_serde_writes_them() {
        for millionths in (0..=100_000u32).chain((100_000..=1_000_000).step_by(17)) {
            let number = f64::from(millionths) / 1e6;
            assert_eq!(text(|out| super::number(out, "", number)), said(&number));
        }
        for number in [0.1 + 0.2, 0.75 + 1e-9, 1.5, -0.5, -0.0, 1e-300, 1e300, f64::NAN, f64::INFINITY, f64::EPSILON] {
            assert_eq!(text(|out| super::number(out, "", number)), said(&number));
        }
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_serde_writes_them(number in any::<f64>(), fraction in 0.0..=1.0) {
            for number in [number, fraction] {
                prop_assert_eq!(text(|out| super::number(out, "", number)), said(&number));
            }
        }

        #[test]
        fn strings_are_written_as_serde_writes_them(any in any::<String>(), plain in "[ -~]{0,80}") {
            for string in [&any, &plain] {
                prop_assert_eq!(text(|out| super::string(out, "", string)), said(string));
            }
        }

        #[test]
        fn times_are_written_as_jiff_writes_them(
            ms in -100_000_000_000_000..260_000_000_000_000i64,
            s in 0..253_402_300_800i64,
        ) {
            for at in [ms, s * 1000, s * 1000 + 500, s * 1000 + 250].map(TimestampMs) {
                prop_assert_eq!(text(|out| time(out, "", at)), said(&timestamp(at)));
            }
        }
    }

    #[test]
    fn times_at_the_edges_are_written_as_jiff_writes_them() {
        let edges = [253_370_764_800_000, 253_402_207_200_000, 253_402_300_800_000, 0, i64::MIN + 2, i64::MAX - 2];
        for at in edges.into_iter().flat_map(|edge| edge - 2..=edge + 2).map(TimestampMs) {
            assert_eq!(text(|out| time(out, "", at)), said(&timestamp(at)));
        }
    }

    #[test]
    fn days_are_written_as_jiff_writes_them() {
        for day in (0..=100_000).chain(2_932_500..=2_932_600) {
            let at = TimestampMs(day * 86_400_000 + 1);
            assert_eq!(text(|out| time(out, "", at)), said(&timestamp(at)));
        }
    }
}
