//! The compact protocol of Thrift, in which Parquet has its metadata: walks through values, and takes no memory on their
//! word. Knows nothing of Parquet.

/// The most elements of all lists of a value together.
const ELEMENTS_MAX: usize = 2_000_000;
/// The deepest nesting of a value.
const DEPTH_MAX: usize = 32;

/// The types of the protocol.
pub(super) mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(in super::super) const I16: u8 = 4;
    pub(in super::super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(in super::super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(in super::super) const STRUCT: u8 = 12;
}

/// A walk through a value.
pub(super) struct ThriftWalk<'a> {
    rest: &'a [u8],
    elements: usize,
}

impl<'a> ThriftWalk<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, elements: 0 }
    }

    /// Returns how many bytes are behind the walk.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Walks through the fields of a struct. `each` takes the value of each field, whose number and type it is given.
    pub(super) fn fields(
        &mut self,
        depth: usize,
        each: &mut dyn FnMut(&mut Self, i16, u8) -> Option<()>,
    ) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut field = 0_i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => i16::try_from(self.integer()?).ok()?,
                delta => field.checked_add(i16::from(delta))?,
            };
            each(self, field, head & 0x0F)?;
        }
    }

    /// Walks over a value of this type.
    pub(super) fn skip(&mut self, of: u8, depth: usize) -> Option<()> {
        match of {
            kind::TRUE | kind::FALSE => Some(()),
            kind::BYTE => self.byte().map(drop),
            kind::I16..=kind::I64 => self.number().map(drop),
            kind::DOUBLE => self.take(8),
            kind::BINARY => {
                let bytes = usize::try_from(self.number()?).ok()?;
                self.take(bytes)
            }
            kind::LIST | kind::SET => {
                let (count, of) = self.list()?;
                // The elements of a list of booleans have a byte each.
                let of = if [kind::TRUE, kind::FALSE].contains(&of) { kind::BYTE } else { of };
                (0..count).try_for_each(|_| self.skip(of, depth + 1))
            }
            kind::STRUCT => self.fields(depth, &mut |walk, _, of| walk.skip(of, depth + 1)),
            // Metadata of Parquet has no maps.
            _ => None,
        }
    }

    /// Reads the head of a list: the number of its elements, and their type.
    pub(super) fn list(&mut self) -> Option<(usize, u8)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => usize::try_from(self.number()?).ok()?,
            count => usize::from(count),
        };
        self.elements = self.elements.checked_add(count).filter(|&elements| elements <= ELEMENTS_MAX)?;
        Some((count, head & 0x0F))
    }

    /// Reads an integer of any width.
    pub(super) fn integer(&mut self) -> Option<i64> {
        self.number().map(|number| (number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn take(&mut self, bytes: usize) -> Option<()> {
        self.rest = self.rest.get(bytes..)?;
        Some(())
    }
}
