//! The metadata of Parquet, in the compact protocol of Thrift: walks through a value, and never allocates memory for a
//! size that the value claims. The library reads a field by its number alone and does not check its type. So a value is
//! refused if a field that the library knows has another type or occurs twice. Otherwise this file and the library
//! would read different values.

/// The largest number of elements in all lists of a value together.
const ELEMENTS_MAX: usize = 2_000_000;
/// The deepest nesting of a value.
const DEPTH_MAX: usize = 32;

/// The type of a field.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Bool,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List(&'static Kind),
    Struct(&'static [(i16, Kind)]),
}

const NOTHING: Kind = Kind::Struct(&[]);
const TIME_UNIT: Kind = Kind::Struct(&[(1, NOTHING), (2, NOTHING), (3, NOTHING)]);
const TIME: Kind = Kind::Struct(&[(1, Kind::Bool), (2, TIME_UNIT)]);
const LOGICAL_TYPE: Kind = Kind::Struct(&[
    (1, NOTHING),
    (2, NOTHING),
    (3, NOTHING),
    (4, NOTHING),
    (5, Kind::Struct(&[(1, Kind::I32), (2, Kind::I32)])),
    (6, NOTHING),
    (7, TIME),
    (8, TIME),
    (10, Kind::Struct(&[(1, Kind::Byte), (2, Kind::Bool)])),
    (11, NOTHING),
    (12, NOTHING),
    (13, NOTHING),
    (14, NOTHING),
    (15, NOTHING),
    (16, Kind::Struct(&[(1, Kind::Byte)])),
    (17, Kind::Struct(&[(1, Kind::Binary)])),
    (18, Kind::Struct(&[(1, Kind::Binary), (2, Kind::I32)])),
]);
const SCHEMA_ELEMENT: Kind = Kind::Struct(&[
    (1, Kind::I32),
    (2, Kind::I32),
    (3, Kind::I32),
    (4, Kind::Binary),
    (5, Kind::I32),
    (6, Kind::I32),
    (7, Kind::I32),
    (8, Kind::I32),
    (9, Kind::I32),
    (10, LOGICAL_TYPE),
]);
const STATISTICS: Kind = Kind::Struct(&[
    (1, Kind::Binary),
    (2, Kind::Binary),
    (3, Kind::I64),
    (4, Kind::I64),
    (5, Kind::Binary),
    (6, Kind::Binary),
    (7, Kind::Bool),
    (8, Kind::Bool),
]);
const PAIRS: Kind = Kind::List(&Kind::Struct(&[(1, Kind::Binary), (2, Kind::Binary)]));
const BOX: Kind = Kind::Struct(&[
    (1, Kind::Double),
    (2, Kind::Double),
    (3, Kind::Double),
    (4, Kind::Double),
    (5, Kind::Double),
    (6, Kind::Double),
    (7, Kind::Double),
    (8, Kind::Double),
]);
const COLUMN_METADATA: Kind = Kind::Struct(&[
    (1, Kind::I32),
    (2, Kind::List(&Kind::I32)),
    (3, Kind::List(&Kind::Binary)),
    (4, Kind::I32),
    (5, Kind::I64),
    (6, Kind::I64),
    (7, Kind::I64),
    (8, PAIRS),
    (9, Kind::I64),
    (10, Kind::I64),
    (11, Kind::I64),
    (12, STATISTICS),
    (13, Kind::List(&Kind::Struct(&[(1, Kind::I32), (2, Kind::I32), (3, Kind::I32)]))),
    (14, Kind::I64),
    (15, Kind::I32),
    (16, Kind::Struct(&[(1, Kind::I64), (2, Kind::List(&Kind::I64)), (3, Kind::List(&Kind::I64))])),
    (17, Kind::Struct(&[(1, BOX), (2, Kind::List(&Kind::I32))])),
]);
const COLUMN_CHUNK: Kind = Kind::Struct(&[
    (1, Kind::Binary),
    (2, Kind::I64),
    (3, COLUMN_METADATA),
    (4, Kind::I64),
    (5, Kind::I32),
    (6, Kind::I64),
    (7, Kind::I32),
    (8, Kind::Struct(&[(1, NOTHING), (2, Kind::Struct(&[(1, Kind::List(&Kind::Binary)), (2, Kind::Binary)]))])),
    (9, Kind::Binary),
]);
const ROW_GROUP: Kind = Kind::Struct(&[
    (1, Kind::List(&COLUMN_CHUNK)),
    (2, Kind::I64),
    (3, Kind::I64),
    (4, Kind::List(&Kind::Struct(&[(1, Kind::I32), (2, Kind::Bool), (3, Kind::Bool)]))),
    (5, Kind::I64),
    (6, Kind::I64),
    (7, Kind::I16),
]);
const CIPHER: Kind = Kind::Struct(&[(1, Kind::Binary), (2, Kind::Binary), (3, Kind::Bool)]);

/// The metadata of a file. Field [`SCHEMA`] has the elements of the schema.
pub(super) const FILE_METADATA: Kind = Kind::Struct(&[
    (1, Kind::I32),
    (SCHEMA, Kind::List(&SCHEMA_ELEMENT)),
    (3, Kind::I64),
    (4, Kind::List(&ROW_GROUP)),
    (5, PAIRS),
    (6, Kind::Binary),
    (7, Kind::List(&Kind::Struct(&[(1, NOTHING)]))),
    (8, Kind::Struct(&[(1, CIPHER), (2, CIPHER)])),
    (9, Kind::Binary),
]);
pub(super) const SCHEMA: i16 = 2;

/// The header of a page.
pub(super) const PAGE_HEADER: Kind = Kind::Struct(&[
    (1, Kind::I32),
    (2, Kind::I32),
    (3, Kind::I32),
    (4, Kind::I32),
    (5, Kind::Struct(&[(1, Kind::I32), (2, Kind::I32), (3, Kind::I32), (4, Kind::I32), (5, STATISTICS)])),
    (6, NOTHING),
    (7, Kind::Struct(&[(1, Kind::I32), (2, Kind::I32), (3, Kind::Bool)])),
    (
        8,
        Kind::Struct(&[
            (1, Kind::I32),
            (2, Kind::I32),
            (3, Kind::I32),
            (4, Kind::I32),
            (5, Kind::I32),
            (6, Kind::I32),
            (7, Kind::Bool),
            (8, STATISTICS),
        ]),
    ),
]);

/// The numbers of the protocol's types.
mod wire {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const STRUCT: u8 = 12;
}

impl Kind {
    /// Whether a field of this kind may have this type number of the protocol.
    fn has(self, of: u8) -> bool {
        match self {
            Self::Bool => [wire::TRUE, wire::FALSE].contains(&of),
            Self::Byte => of == wire::BYTE,
            Self::I16 => of == wire::I16,
            Self::I32 => of == wire::I32,
            Self::I64 => of == wire::I64,
            Self::Double => of == wire::DOUBLE,
            Self::Binary => of == wire::BINARY,
            Self::List(_) => of == wire::LIST,
            Self::Struct(_) => of == wire::STRUCT,
        }
    }
}

/// A walk through a value. `integers` receives each integer field of a struct, with the path of fields to it.
pub(super) struct ThriftWalk<'a, F> {
    rest: &'a [u8],
    elements: usize,
    path: Vec<i16>,
    integers: F,
}

impl<'a, F: FnMut(&[i16], i64)> ThriftWalk<'a, F> {
    pub(super) fn new(bytes: &'a [u8], integers: F) -> Self {
        Self { rest: bytes, elements: 0, path: Vec::new(), integers }
    }

    /// Walks through a struct, and returns the number of bytes after it. Returns `None` if the bytes are not such a
    /// struct.
    pub(super) fn walk(mut self, kind: Kind) -> Option<usize> {
        self.value(wire::STRUCT, Some(kind))?;
        Some(self.rest.len())
    }

    fn value(&mut self, of: u8, kind: Option<Kind>) -> Option<()> {
        match of {
            wire::TRUE | wire::FALSE => Some(()),
            wire::BYTE => self.byte().map(drop),
            wire::I16..=wire::I64 => {
                let number = self.number()?;
                (self.integers)(&self.path, (number >> 1) as i64 ^ -((number & 1) as i64));
                Some(())
            }
            wire::DOUBLE => self.take(8),
            wire::BINARY => {
                let bytes = usize::try_from(self.number()?).ok()?;
                self.take(bytes)
            }
            wire::LIST | wire::SET => self.list(match kind {
                Some(Kind::List(element)) => Some(*element),
                _ => None,
            }),
            wire::STRUCT => self.fields(match kind {
                Some(Kind::Struct(fields)) => fields,
                _ => &[],
            }),
            // Metadata of Parquet has no maps.
            _ => None,
        }
    }

    fn fields(&mut self, known: &[(i16, Kind)]) -> Option<()> {
        if self.path.len() >= DEPTH_MAX {
            return None;
        }
        let (mut field, mut seen) = (0_i16, 0_u64);
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => i16::try_from(self.number().map(|number| (number >> 1) as i64 ^ -((number & 1) as i64))?).ok()?,
                delta => field.checked_add(i16::from(delta))?,
            };
            let of = head & 0x0F;
            let kind = known.iter().find(|(number, _)| *number == field).map(|(_, kind)| *kind);
            if let Some(kind) = kind {
                let mark = 1 << field;
                if seen & mark != 0 || !kind.has(of) {
                    return None;
                }
                seen |= mark;
            }
            self.path.push(field);
            self.value(of, kind)?;
            self.path.pop();
        }
    }

    fn list(&mut self, element: Option<Kind>) -> Option<()> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => usize::try_from(self.number()?).ok()?,
            count => usize::from(count),
        };
        self.elements = self.elements.checked_add(count).filter(|&elements| elements <= ELEMENTS_MAX)?;
        let of = head & 0x0F;
        if element.is_some_and(|element| !element.has(of)) {
            return None;
        }
        // The elements of a list of booleans have a byte each.
        let of = if [wire::TRUE, wire::FALSE].contains(&of) { wire::BYTE } else { of };
        // An element of a list has no field number, so 0 marks its beginning in the path.
        self.path.push(0);
        for _ in 0..count {
            (self.integers)(&self.path, 0);
            self.value(of, element)?;
        }
        self.path.pop();
        Some(())
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
