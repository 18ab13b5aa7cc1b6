//! A file of JSON Lines -> chunks of documents. The code here must never know how chunks are sent.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use super::ahead::Ahead;
use super::chunk::{Chunk, Origin, Place};
use super::gather::{Gather, Part};
use super::line;
use super::reason::{InputError, Reason};
use super::units::Units;
use super::wanted::{LineForm, Wanted};

/// The longest line that is read, in bytes. A longer line fails.
pub(super) const LINE_BYTES_MAX: usize = 16 << 20;
/// The byte order mark of UTF-8. Some editors write it at the beginning of a text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Passes the documents of a file to `give`, until it returns false.
pub(super) fn read(
    units: Units,
    file: &Arc<str>,
    wanted: &Wanted,
    give: &mut dyn FnMut(Chunk) -> bool,
) -> Result<(), InputError> {
    let mut units = Ahead::new(units);
    let (mut gather, mut number, mut end, mut buffer) = (Gather::new(give), 0, 0, Vec::new());
    // The lines before an error are used like all other lines.
    let read = loop {
        let offset = end;
        let length = match read_line(&mut units, &mut buffer) {
            Ok(0) => break Ok(()),
            Ok(length) => length,
            Err(error) => break Err(InputError::Cut { line: number + 1, offset, error }),
        };
        number += 1;
        end += length;
        let line = buffer.strip_prefix(BYTE_ORDER_MARK).filter(|_| number == 1).unwrap_or(&buffer);
        if line.trim_ascii().is_empty() {
            gather.blank(length);
            continue;
        }
        let origin = Origin { file: Arc::clone(file), place: Place::Line { number, offset } };
        let document = document(line, length, &wanted.form, &origin);
        let original = wanted.originals.then_some(line);
        let part = Part { origin, document, original, ranked: None, text_bytes: length };
        if !gather.add(part, units.taken())? {
            return Ok(());
        }
    };
    gather.finish(units.taken())?;
    read
}

fn document(line: &[u8], length: u64, form: &LineForm, origin: &Origin) -> Result<Vec<u8>, Reason> {
    if length > LINE_BYTES_MAX as u64 {
        return Err(Reason::other("too_large", format!("the line has {length} bytes; the limit is {LINE_BYTES_MAX}")));
    }
    line::document(line, form, origin)
}

/// Reads one line without its newline into `buffer`, and returns the number of bytes read; 0 at the end of the input.
/// If a line is longer than [`LINE_BYTES_MAX`], only its beginning is kept.
fn read_line(reader: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<u64> {
    buffer.clear();
    let mut length = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', buffer)? as u64;
    let mut ended = buffer.pop_if(|&mut last| last == b'\n').is_some() || length <= LINE_BYTES_MAX as u64;
    while !ended {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            break;
        }
        let end = available.iter().position(|&byte| byte == b'\n');
        let taken = end.map_or(available.len(), |end| end + 1);
        ended = end.is_some();
        reader.consume(taken);
        length += taken as u64;
    }
    Ok(length)
}
