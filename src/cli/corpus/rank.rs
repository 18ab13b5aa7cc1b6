//! A number as it is written -> a rank that is compared exactly: whole numbers above 2^53 and decimals have all their
//! digits.

/// The most digits of a number, without zeros at its ends. It is that of the longest usual decimals.
const DIGITS_MAX: usize = 38;

/// The place of a document in the order of decisions. Documents of a higher rank come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct Rank {
    // The fields are compared in this order.
    class: Class,
    /// The place of the decimal point: 1 for a number from 1 to 9. It is negated for a negative number.
    exponent: i32,
    /// The digits, followed by zeros, as one number in two halves. They are complemented for a negative number.
    digits: [u64; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// The document has no number.
    #[default]
    Missing,
    Negative,
    Zero,
    Positive,
}

impl Rank {
    /// The rank of a document of this length.
    pub(in crate::cli) fn of_length(bytes: u64) -> Self {
        Self { class: Class::Positive, exponent: 0, digits: [0, bytes] }
    }

    /// The rank of a number in the form of JSON.
    pub(in crate::cli) fn of_number(number: &str) -> Result<Self, String> {
        let (number, is_negative) = number.strip_prefix('-').map_or((number, false), |number| (number, true));
        let (number, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        let first = digits.bytes().take_while(|&digit| digit == b'0').count();
        let digits = digits[first..].trim_end_matches('0');
        if digits.is_empty() {
            return Ok(Self { class: Class::Zero, ..Self::default() });
        }
        if digits.len() > DIGITS_MAX {
            return Err(format!("has {} digits; the limit is {DIGITS_MAX}", digits.len()));
        }
        let point = exponent_of(exponent) + whole.len() as i64 - first as i64;
        let point = point.clamp(-i64::from(i32::MAX), i64::from(i32::MAX)) as i32;
        let digits: u128 = format!("{digits:0<DIGITS_MAX$}").parse().expect("38 digits fit");
        let halves = [(digits >> 64) as u64, digits as u64];
        Ok(match is_negative {
            true => Self { class: Class::Negative, exponent: -point, digits: halves.map(|half| !half) },
            false => Self { class: Class::Positive, exponent: point, digits: halves },
        })
    }

    /// The rank as numbers that are compared one after another.
    pub(in crate::cli) fn words(self) -> [u64; 3] {
        let exponent = self.exponent.cast_unsigned() ^ 1 << 31;
        [(self.class as u64) << 32 | u64::from(exponent), self.digits[0], self.digits[1]]
    }

    /// Makes a rank again from its words. `None` if no rank has them.
    pub(in crate::cli) fn of_words(words: [u64; 3]) -> Option<Self> {
        let [first, high, low] = words;
        let class = [Class::Missing, Class::Negative, Class::Zero, Class::Positive];
        let class = *class.get((first >> 32) as usize)?;
        Some(Self { class, exponent: (first as u32 ^ 1 << 31).cast_signed(), digits: [high, low] })
    }

    pub(in crate::cli) fn is_missing(self) -> bool {
        self.class == Class::Missing
    }
}

/// Returns an exponent. One that does not fit is cut to the largest one.
fn exponent_of(text: &str) -> i64 {
    text.parse::<i32>().map_or_else(|_| i64::from(if text.starts_with('-') { i32::MIN } else { i32::MAX }), i64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_exactly_and_missing_ones_come_last() {
        let ascending = [
            "-1e999999999999",
            "-10000000000000000000000000000000000001",
            "-9007199254740993",
            "-9007199254740992",
            "-1.05",
            "-1.0499999999999999999999999",
            "-1e-7",
            "0",
            "1e-999999999999",
            "0.1",
            "0.10000000000000000000000001",
            "1.5",
            "9007199254740992",
            "9007199254740993",
            "18446744073709551615",
            "1e20",
            "99999999999999999999999999999999999999",
            "1e400",
        ];
        let ranks: Vec<_> = ascending.iter().map(|number| Rank::of_number(number).unwrap()).collect();
        assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
        assert!(ranks.iter().all(|rank| Rank::default() < *rank) && Rank::default().is_missing());
        let words: Vec<_> = ranks.iter().map(|rank| rank.words()).collect();
        assert!(words.is_sorted_by(|a, b| a < b) && Rank::default().words() < words[0]);
        assert!(ranks.iter().chain([&Rank::default()]).all(|rank| Rank::of_words(rank.words()) == Some(*rank)));
    }

    #[test]
    fn equal_numbers_have_equal_ranks() {
        let equal = |numbers: &[&str]| {
            let ranks: Vec<_> = numbers.iter().map(|number| Rank::of_number(number).unwrap()).collect();
            ranks.iter().all(|rank| *rank == ranks[0])
        };
        assert!(equal(&["0", "-0", "0.0", "-0e7"]) && equal(&["100", "1e2", "100.00", "0.1e3", "1000E-1"]));
        assert!(equal(&["-0.5", "-5e-1", "-0.50"]));
    }

    #[test]
    fn a_number_of_more_digits_is_refused() {
        let digits = |count: usize| "1".repeat(count);
        assert!(Rank::of_number(&digits(38)).is_ok() && Rank::of_number(&format!("0.{}000", digits(38))).is_ok());
        assert_eq!(Rank::of_number(&digits(39)), Err("has 39 digits; the limit is 38".to_owned()));
    }

    #[test]
    fn longer_documents_have_higher_ranks() {
        assert!(Rank::of_length(0) < Rank::of_length(1) && Rank::of_length(9) < Rank::of_length(u64::MAX));
    }
}
