//! The metadata at the end of a Parquet file -> whether a reader may trust its shape. The library follows the nesting of
//! the schema without a limit, and makes room for as many parts as a file says that it has: a small file could end the
//! process. So its metadata is walked here first. Knows only the encoding, the compact protocol of Thrift, and where the
//! schema is.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// The marker at both ends of a file.
const MAGIC: &[u8] = b"PAR1";
/// The longest metadata. That of 10,000 row groups with 30 columns is half as long.
const FOOTER_BYTES_MAX: u64 = 64 << 20;
/// The most elements of all lists in the metadata together.
const ELEMENTS_MAX: usize = 2_000_000;
/// The deepest nesting of the schema, and of the metadata.
const DEPTH_MAX: usize = 32;
/// The number of the field that holds the schema, in the metadata of a file; and those of an element's name and of its
/// number of children.
const SCHEMA: i16 = 2;
const CHILDREN: i16 = 5;

/// Checks the metadata of a file. The file is at its beginning afterwards.
pub(super) fn check(file: &mut File) -> Result<(), String> {
    let bytes = footer(file).map_err(|error| error.to_string())?;
    file.rewind().map_err(|error| error.to_string())?;
    Walk { rest: &bytes?, elements: 0, children: Vec::new() }.metadata()
}

fn footer(file: &mut File) -> io::Result<Result<Vec<u8>, String>> {
    let length = file.seek(SeekFrom::End(0))?;
    if length < 12 {
        return Ok(Err("it is too short".to_owned()));
    }
    let mut end = [0; 8];
    file.seek(SeekFrom::End(-8))?;
    file.read_exact(&mut end)?;
    let bytes = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
    if &end[4..] != MAGIC {
        return Ok(Err("its end is missing".to_owned()));
    }
    if bytes > length - 12 {
        return Ok(Err("its metadata is longer than the file".to_owned()));
    }
    if bytes > FOOTER_BYTES_MAX {
        return Ok(Err(format!("its metadata has {bytes} bytes, more than {FOOTER_BYTES_MAX}")));
    }
    file.seek(SeekFrom::End(-8 - bytes as i64))?;
    let mut footer = Vec::new();
    file.take(bytes).read_to_end(&mut footer)?;
    Ok(Ok(footer))
}

/// A walk through the metadata.
struct Walk<'a> {
    rest: &'a [u8],
    elements: usize,
    /// The numbers of children of the schema's elements, in their order.
    children: Vec<i64>,
}

/// The types of the compact protocol.
mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const STRUCT: u8 = 12;
}

impl Walk<'_> {
    fn metadata(mut self) -> Result<(), String> {
        let walked = self.fields(0, &mut |walk, field, of| match (field, of) {
            (SCHEMA, kind::LIST) => walk.schema(),
            (_, of) => walk.skip(of, 1),
        });
        walked.ok_or("its metadata is cut, nested too deeply, or has too many parts")?;
        self.check_schema().ok_or_else(|| "its schema is nested too deeply, or its columns are miscounted".to_owned())
    }

    /// The elements of the schema are in the order of a walk through a tree, each with the number of its children.
    fn check_schema(&self) -> Option<()> {
        let mut open: Vec<i64> = Vec::new();
        for (at, &children) in self.children.iter().enumerate() {
            if at > 0 {
                *open.last_mut()? -= 1;
            }
            if !(0..=self.children.len() as i64).contains(&children) {
                return None;
            }
            open.push(children);
            while open.pop_if(|left| *left == 0).is_some() {}
            if open.len() > DEPTH_MAX {
                return None;
            }
        }
        open.is_empty().then_some(())
    }

    fn schema(&mut self) -> Option<()> {
        let (count, of) = self.list()?;
        if of != kind::STRUCT {
            return None;
        }
        for _ in 0..count {
            let mut children = 0;
            self.fields(1, &mut |walk, field, of| match (field, of) {
                (CHILDREN, 4..=kind::I64) => walk.number().map(|number| children = zigzag(number)),
                (_, of) => walk.skip(of, 2),
            })?;
            self.children.push(children);
        }
        Some(())
    }

    /// Walks through the fields of a struct.
    fn fields(&mut self, depth: usize, each: &mut dyn FnMut(&mut Self, i16, u8) -> Option<()>) -> Option<()> {
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
                0 => i16::try_from(zigzag(self.number()?)).ok()?,
                delta => field.checked_add(i16::from(delta))?,
            };
            each(self, field, head & 0x0F)?;
        }
    }

    fn skip(&mut self, of: u8, depth: usize) -> Option<()> {
        match of {
            kind::TRUE | kind::FALSE => Some(()),
            kind::BYTE => self.byte().map(drop),
            4..=kind::I64 => self.number().map(drop),
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
    fn list(&mut self) -> Option<(usize, u8)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => usize::try_from(self.number()?).ok()?,
            count => usize::from(count),
        };
        self.elements = self.elements.checked_add(count).filter(|&elements| elements <= ELEMENTS_MAX)?;
        Some((count, head & 0x0F))
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

fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A file whose metadata has a schema of groups with these numbers of children.
    fn file(children: &[u8], count: u8) -> File {
        let mut footer = vec![0x15, 0x02, 0x19, 0xFC, count];
        for &children in children {
            footer.extend_from_slice(&[0x48, 0x01, b'a', 0x15, 2 * children, 0]);
        }
        footer.extend_from_slice(&[0x16, 0x00, 0x19, 0x0C, 0]);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"PAR1").unwrap();
        file.write_all(&footer).unwrap();
        file.write_all(&(footer.len() as u32).to_le_bytes()).unwrap();
        file.write_all(b"PAR1").unwrap();
        file
    }

    #[test]
    fn schemas_are_flat_and_counted_right() {
        assert_eq!(check(&mut file(&[2, 0, 0], 3)), Ok(()));
        assert_eq!(check(&mut file(&[2, 1, 0, 0], 4)), Ok(()));
        for (children, count) in [(&[2, 0][..], 2), (&[1, 0, 0], 3), (&[63, 0], 2), (&[0, 0], 2), (&[2, 0, 0], 100)] {
            assert!(check(&mut file(children, count)).is_err(), "{children:?}");
        }
        let mut deep = vec![1; 100];
        deep.push(0);
        assert!(check(&mut file(&deep, 101)).unwrap_err().contains("nested too deeply"));
        deep.drain(..80);
        assert_eq!(check(&mut file(&deep, 21)), Ok(()));
    }

    #[test]
    fn the_end_of_a_file_must_be_there() {
        for bytes in [&b""[..], b"PAR1PAR1", b"PAR1\0\0\0\0PARE", b"PAR1\xFF\xFF\xFF\xFFPAR1", b"PAR1\0\x01\0\0\0PAR1"]
        {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            assert!(check(&mut file).is_err(), "{bytes:?}");
        }
    }
}
