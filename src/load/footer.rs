//! The metadata at the end of a Parquet file -> whether a reader may trust its shape. The library follows the nesting
//! of the schema without a limit, and allocates memory for as many parts as a file claims to have. So a small file
//! could end the process. Therefore the metadata is checked here first. This file interprets only the schema;
//! `thrift.rs` walks through all other parts.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::thrift::{FILE_METADATA, SCHEMA, ThriftWalk};

/// The marker at both ends of a file.
const MAGIC: &[u8] = b"PAR1";
/// The longest metadata that is read. The metadata of 10,000 row groups with 30 columns is half as long.
const FOOTER_BYTES_MAX: u64 = 64 << 20;
/// The deepest nesting of the schema.
const SCHEMA_DEPTH_MAX: usize = 32;
/// The field, in an element of the schema, with the number of the element's children.
const CHILDREN: i16 = 5;

/// Checks the metadata of a file. The file is at its beginning afterwards.
pub(super) fn check(file: &mut File) -> Result<(), String> {
    let bytes = footer(file).map_err(|error| error.to_string())?;
    file.rewind().map_err(|error| error.to_string())?;
    walk(&bytes?)
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

/// Walks through the metadata, and checks the schema.
fn walk(bytes: &[u8]) -> Result<(), String> {
    let mut children = Vec::new();
    let integers = |path: &[i16], number| match path {
        [SCHEMA, 0] => children.push(0),
        [SCHEMA, 0, CHILDREN] => children.last_mut().into_iter().for_each(|count| *count = number),
        _ => {}
    };
    let walked = ThriftWalk::new(bytes, integers).walk(FILE_METADATA);
    walked.ok_or("its metadata is cut, nested too deeply, of wrong types, or has too many parts")?;
    is_flat(&children).ok_or_else(|| "its schema is nested too deeply, or its columns are miscounted".to_owned())
}

/// Checks that the schema is a tree of limited depth. `children` has the number of children of each element, in the
/// order of a walk through the tree.
fn is_flat(children: &[i64]) -> Option<()> {
    let mut open: Vec<i64> = Vec::new();
    for (at, &count) in children.iter().enumerate() {
        if at > 0 {
            *open.last_mut()? -= 1;
        }
        if !(0..=children.len() as i64).contains(&count) {
            return None;
        }
        open.push(count);
        while open.pop_if(|left| *left == 0).is_some() {}
        if open.len() > SCHEMA_DEPTH_MAX {
            return None;
        }
    }
    (open.is_empty() && !children.is_empty()).then_some(())
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
        let misread = [
            // The schema as a set.
            b"\x15\x02\x1A\x1C\x48\x01a\x15\x00\x00\x00".to_vec(),
            // A number of children as a byte.
            b"\x15\x02\x19\x1C\x48\x01a\x13\x00\x00\x00".to_vec(),
            // A second schema.
            b"\x15\x02\x19\x1C\x48\x01a\x15\x00\x00\x09\x04\x1C\x48\x01a\x15\x00\x00\x00".to_vec(),
        ];
        for footer in misread {
            assert!(walk(&footer).is_err(), "{footer:?}");
        }
        for bytes in [&b""[..], b"PAR1PAR1", b"PAR1\0\0\0\0PARE", b"PAR1\xFF\xFF\xFF\xFFPAR1", b"PAR1\0\x01\0\0\0PAR1"]
        {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            assert!(check(&mut file).is_err(), "{bytes:?}");
        }
    }
}
