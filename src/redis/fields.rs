//! The parts of a record in bytes.

/// Most thresholds are a whole number of these parts.
const PARTS: f64 = 10_000.0;

/// Appends a number, seven bits a byte.
pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends a number from 0 to 1. With up to four decimals, most take two bytes.
pub(super) fn put_share(bytes: &mut Vec<u8>, share: f64) {
    let parts = (share * PARTS).round();
    if parts / PARTS == share {
        put(bytes, parts as u64 + 1);
    } else {
        put(bytes, 0);
        bytes.extend(share.to_le_bytes());
    }
}

pub(super) fn put_bytes(bytes: &mut Vec<u8>, more: &[u8]) {
    put(bytes, more.len() as u64);
    bytes.extend(more);
}

/// The bytes that are not read yet.
pub(super) struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all bytes that are left.
    pub(super) fn all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(super) fn some(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take::<1>()?;
            number |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn share(&mut self) -> Option<f64> {
        match self.number()? {
            0 => Some(f64::from_le_bytes(self.take()?)),
            parts => Some((parts - 1) as f64 / PARTS),
        }
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.some(length)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}
