//! An argument such as `4GiB` -> a number of bytes.

use std::fmt;

const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];

/// The memory that may be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    bytes: usize,
}

impl Memory {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let shift = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, shift)| *shift);
        let bytes = number.parse::<usize>().ok().zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
        let wanted = || "must be a whole number with KiB, MiB, GiB or TiB, such as 512MiB".to_owned();
        bytes.map(|bytes| Self { bytes }).ok_or_else(wanted)
    }

    pub(super) fn bytes(self) -> usize {
        self.bytes
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, shift): &&(&str, u32)| self.bytes.trailing_zeros() >= *shift;
        let (name, shift) = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[0]);
        write!(f, "{}{name}", self.bytes >> shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit() {
        assert_eq!(Memory::parse("512MiB").unwrap().bytes(), 512 << 20);
        assert_eq!(
            ["2048KiB", "3GiB", "1025MiB"].map(|text| Memory::parse(text).unwrap().to_string()),
            ["2MiB", "3GiB", "1025MiB"]
        );
        for text in ["", "5", "GiB", "5 GiB", "-1GiB", "1.5GiB", "5GB", "99999999999999999999KiB", "99999999999TiB"] {
            assert!(Memory::parse(text).is_err(), "{text}");
        }
    }
}
