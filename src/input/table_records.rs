//! The bytes of a table in CSV or TSV -> its records, with their places. Memory is bounded: a long record is read to its
//! end, but not stored. A quote that is never closed makes one long record. Knows nothing of documents.

use std::io::{self, BufRead as _};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::ahead::Ahead;
use super::lines::{BYTE_ORDER_MARK, LINE_BYTES_MAX};
use super::units::Units;

/// The most columns of a table.
pub(super) const COLUMNS_MAX: usize = 10_000;
/// The number of bytes of fields for which there is room at first.
const FIELD_BYTES: usize = 64 << 10;
/// The number of fields of which the ends are read at once and dropped, in a record with too many fields.
const EXTRA_FIELDS: usize = 64;

/// The longest record that is stored, with the newline at its end.
const STORED_BYTES_MAX: u64 = LINE_BYTES_MAX as u64 + 2;

/// The records of a table. The header is the first record.
pub(super) struct Records {
    units: Ahead,
    reader: Reader,
    /// The number of bytes that were read after decompression.
    position: u64,
    /// The unescaped fields of the present record, without a gap.
    fields: Vec<u8>,
    /// The end of each field in `fields`.
    ends: Vec<usize>,
    /// The present record as it is in the file.
    line: Vec<u8>,
}

/// The place and the form of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// The byte at which the record begins, after decompression.
    pub offset: u64,
    /// The number of bytes of the record.
    pub bytes: u64,
    pub form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A record with this many fields. If there are more than [`COLUMNS_MAX`] fields, the others are not stored.
    Fields(usize),
    /// The record has more than [`LINE_BYTES_MAX`] bytes, and is not stored.
    TooLong,
    /// The file ends inside a field that begins with a quote.
    Unclosed,
}

impl Records {
    pub(super) fn new(mut units: Units, separator: u8) -> io::Result<Self> {
        let mark =
            if units.peek(BYTE_ORDER_MARK.len())?.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        units.consume(mark);
        Ok(Self {
            units: Ahead::new(units),
            reader: ReaderBuilder::new().delimiter(separator).build(),
            position: mark as u64,
            fields: vec![0; FIELD_BYTES],
            ends: vec![0; EXTRA_FIELDS],
            line: Vec::new(),
        })
    }

    /// The number of bytes that were read from the file.
    pub(super) fn taken(&self) -> u64 {
        self.units.taken()
    }

    /// The number of bytes that were read after decompression.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The record that was found last, as it is in the file, without the newline at its end.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }

    /// A field of the record that was found last.
    pub(super) fn field(&self, at: usize) -> &[u8] {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.fields[begin..self.ends[at]]
    }

    /// Reads the next record; `None` at the end of the file. Empty lines are no records.
    pub(super) fn next(&mut self) -> io::Result<Option<Found>> {
        self.line.clear();
        let (mut filled, mut fields, mut bytes) = (0, 0, 0_u64);
        let mut offset = self.position;
        let end = loop {
            let mut input = self.units.fill_buf()?;
            let is_end = input.is_empty();
            // The last record may have no newline. Inside quotes, a newline does not end it.
            if is_end && bytes > 0 {
                input = b"\n";
            }
            if fields == self.ends.len() && fields < COLUMNS_MAX {
                self.ends.resize((2 * fields).min(COLUMNS_MAX), 0);
            }
            let mut extra = [0; EXTRA_FIELDS];
            let ends = if fields < self.ends.len() { &mut self.ends[fields..] } else { &mut extra[..] };
            let (result, read, written, ended) = self.reader.read_record(input, &mut self.fields[filled..], ends);
            fields += ended;
            if !is_end {
                // The newlines of empty lines before a record are not a part of it. The second half of the CRLF of the
                // record before is one of them.
                let blank = if bytes == 0 { newlines(&input[..read]) } else { 0 };
                offset += blank as u64;
                bytes += (read - blank) as u64;
                if bytes <= STORED_BYTES_MAX {
                    self.line.extend_from_slice(&input[blank..read]);
                }
                self.units.consume(read);
                self.position += read as u64;
            }
            filled = if bytes > STORED_BYTES_MAX { 0 } else { filled + written };
            match result {
                ReadRecordResult::InputEmpty if is_end => break End::Unclosed,
                ReadRecordResult::OutputFull if filled > 0 => self.fields.resize(2 * self.fields.len(), 0),
                // The fields of a record that is too long are overwritten.
                ReadRecordResult::InputEmpty | ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {}
                ReadRecordResult::Record => break if is_end { End::File } else { End::Newline },
                ReadRecordResult::End => return Ok(None),
            }
        };
        if end == End::Newline {
            bytes -= 1;
            self.cut_newline()?;
        }
        let form = match end {
            End::Unclosed => {
                // Otherwise, the next call would return the rest of this record.
                self.reader.reset();
                Form::Unclosed
            }
            _ if bytes > LINE_BYTES_MAX as u64 => Form::TooLong,
            End::Newline | End::File => Form::Fields(fields),
        };
        Ok(Some(Found { offset, bytes, form }))
    }

    /// Cuts the newline at the end of the record. Of CRLF, the first half stays, as in a line of JSON Lines.
    fn cut_newline(&mut self) -> io::Result<()> {
        let is_half = self.line.ends_with(b"\r") && self.units.fill_buf()?.starts_with(b"\n");
        if !is_half {
            self.line.pop();
        }
        Ok(())
    }
}

/// The end of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Newline,
    File,
    /// The file ends inside quotes.
    Unclosed,
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(bytes: &[u8]) -> Records {
        let units = Units::open(Box::new(io::Cursor::new(bytes.to_vec())), 20).unwrap();
        Records::new(units, b',').unwrap()
    }

    /// The records with their offsets, their lines and their fields.
    fn all(bytes: &[u8]) -> Vec<(u64, String, Vec<String>)> {
        let (mut records, mut all) = (records(bytes), Vec::new());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        while let Some(found) = records.next().unwrap() {
            let Form::Fields(count) = found.form else { panic!("{found:?}") };
            assert!(found.bytes.abs_diff(records.line().len() as u64) <= 1, "{found:?}");
            let fields = (0..count).map(|at| text(records.field(at))).collect();
            all.push((found.offset, text(records.line()), fields));
        }
        assert_eq!(records.position(), bytes.len() as u64);
        all
    }

    #[test]
    fn records_have_their_places_their_lines_and_their_fields() {
        let of = |offset, line: &str, fields: &[&str]| {
            (offset, line.to_owned(), fields.iter().map(|&field| field.to_owned()).collect::<Vec<_>>())
        };
        let expected = [
            of(0, "id,text", &["id", "text"]),
            of(9, "1,\"a \"\"b\"\"\nc\"", &["1", "a \"b\"\nc"]),
            of(25, ",", &["", ""]),
        ];
        assert_eq!(all(b"id,text\n\n1,\"a \"\"b\"\"\nc\"\n\r\n,"), expected);
        let expected = [of(3, "id\r", &["id"]), of(9, "x\r", &["x"]), of(12, "\"\"", &[""])];
        assert_eq!(all(b"\xEF\xBB\xBFid\r\n\r\nx\r\n\"\""), expected);
        assert_eq!(all(b"a,b\rc,d\r"), [of(0, "a,b", &["a", "b"]), of(4, "c,d", &["c", "d"])]);
        assert!(all(b"").is_empty() && all(b"\n\r\n").is_empty());
    }

    #[test]
    fn a_carriage_return_ends_a_record_except_inside_quotes() {
        let fields = |bytes: &[u8]| all(bytes).into_iter().map(|(_, _, fields)| fields).collect::<Vec<_>>();
        assert_eq!(fields(b"a,\"b\rc\r\nd\ne\"\rf,g\r\nh,i\n"), [["a", "b\rc\r\nd\ne"], ["f", "g"], ["h", "i"]]);
    }

    #[test]
    fn records_are_the_same_in_small_pieces() {
        let mut table = b"id,text\n".to_vec();
        for number in 0..300 {
            table.extend_from_slice(format!("{number},\"{}\"\r\n", "a \"\"b\"\",\n".repeat(number % 30)).as_bytes());
        }
        let frames: Vec<u8> = table.chunks(7).flat_map(|piece| zstd::encode_all(piece, 1).unwrap()).collect();
        let mut records = records(&frames);
        for (offset, line, fields) in all(&table) {
            let found = records.next().unwrap().unwrap();
            assert_eq!((found.offset, records.line()), (offset, line.as_bytes()));
            assert_eq!(found.form, Form::Fields(2));
            assert_eq!(records.field(1), fields[1].as_bytes());
        }
        assert!(records.next().unwrap().is_none());
    }

    #[test]
    fn a_quote_that_is_not_closed_ends_with_the_file() {
        let mut records = records(b"id,text\n1,\"a\n2,b\n");
        assert_eq!(records.next().unwrap().unwrap().form, Form::Fields(2));
        let found = records.next().unwrap().unwrap();
        assert_eq!((found.offset, found.form), (8, Form::Unclosed));
        assert!(records.next().unwrap().is_none());
    }

    #[test]
    fn a_long_record_is_not_stored_and_the_next_one_is_read() {
        let long = |bytes: usize| [b"1,\"", &*vec![b'\n'; bytes - 4], b"\"\r\n2,b\r\n"].concat();
        for (bytes, form) in [(LINE_BYTES_MAX, Form::Fields(2)), (3 * LINE_BYTES_MAX, Form::TooLong)] {
            let mut records = records(&long(bytes));
            let found = records.next().unwrap().unwrap();
            assert_eq!(found.form, form);
            assert!(records.line.capacity() < 3 * LINE_BYTES_MAX && records.fields.len() < 3 * LINE_BYTES_MAX);
            let next = records.next().unwrap().unwrap();
            assert_eq!((next.offset, next.form, records.field(1)), (bytes as u64 + 2, Form::Fields(2), &b"b"[..]));
        }
    }

    #[test]
    fn a_record_of_many_fields_is_counted() {
        let mut records = records(&[&*vec![b','; COLUMNS_MAX + 500], b"\nlast"].concat());
        assert_eq!(records.next().unwrap().unwrap().form, Form::Fields(COLUMNS_MAX + 501));
        assert!(records.ends.len() <= COLUMNS_MAX);
        assert_eq!(records.next().unwrap().unwrap().form, Form::Fields(1));
        assert_eq!(records.field(0), b"last");
    }
}
