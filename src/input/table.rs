//! A table in CSV or TSV -> chunks of documents. Each record becomes a JSON object with the columns that have the name
//! of a field. This object is then treated like a line of JSON Lines. The code here must never know how chunks are sent.

use std::sync::Arc;

use serde_json::Value;

use super::chunk::{Chunk, Origin, Place};
use super::gather::{Gather, Part};
use super::line;
use super::lines::LINE_BYTES_MAX;
use super::reason::{InputError, NoField, Reason};
use super::table_cell::{json_of, number};
use super::table_header::TableHeader;
use super::table_records::{COLUMNS_MAX, Form, Found, Records};
use super::units::Units;
use super::wanted::{Ids, LineForm, Wanted};

/// Fields that are the content of a document, besides the text and the page.
const CONTENT_FIELDS: [&str; 2] = ["set", "signature"];

/// Passes the documents of a table to `give`, until it returns false.
pub(super) fn read(
    units: Units,
    separator: u8,
    file: &Arc<str>,
    wanted: &Wanted,
    give: &mut dyn FnMut(Chunk) -> bool,
) -> Result<(), InputError> {
    let mut records = Records::new(units, separator)?;
    let Some(header) = read_header(&mut records, separator, wanted)? else {
        return Gather::new(give).finish(records.taken());
    };
    let columns = Columns::of(&header.names, wanted);
    let mut gather = Gather::of_table(header, give);
    let (mut number, mut object, mut before) = (0, Vec::new(), 0);
    // The records before an error are used like all other records.
    let read = loop {
        number += 1;
        let found = match records.next() {
            Ok(Some(found)) => found,
            Ok(None) => break Ok(()),
            Err(error) => break Err(InputError::CutRecord { number, offset: records.position(), error }),
        };
        let origin = Origin { file: Arc::clone(file), place: Place::Record { number, offset: found.offset } };
        let document = columns.check(&records, &found).and_then(|()| {
            columns.object(&records, &mut object);
            line::document(&object, &wanted.form, &origin)
        });
        let ranked = document.is_ok().then(|| columns.ranked(&records)).flatten();
        let original = wanted.originals.then(|| records.line());
        let text_bytes = records.position() - std::mem::replace(&mut before, records.position());
        if !gather.add(Part { origin, document, original, ranked, text_bytes }, records.taken())? {
            return Ok(());
        }
    };
    gather.finish(records.taken())?;
    read
}

/// Reads the header of a table, as [`read`] does before the first record. Returns `None` if the table is empty.
pub(super) fn header(units: Units, separator: u8, wanted: &Wanted) -> Result<Option<Arc<TableHeader>>, InputError> {
    read_header(&mut Records::new(units, separator)?, separator, wanted)
}

fn read_header(records: &mut Records, separator: u8, wanted: &Wanted) -> Result<Option<Arc<TableHeader>>, InputError> {
    let refuse = |detail: String| Err(InputError::Header { detail });
    let count = match records.next()?.map(|found| found.form) {
        None => return Ok(None),
        Some(Form::Fields(count)) if count <= COLUMNS_MAX => count,
        Some(Form::Fields(count)) => return refuse(format!("it has {count} columns; the limit is {COLUMNS_MAX}")),
        Some(Form::TooLong) => return refuse(format!("it has more than {LINE_BYTES_MAX} bytes")),
        Some(Form::Unclosed) => return refuse("it has a quote that is not closed".to_owned()),
    };
    let name = |at| str::from_utf8(records.field(at)).map(|name| name.trim().to_owned());
    let Ok(names) = (0..count).map(name).collect::<Result<Vec<_>, _>>() else {
        return refuse("it is not valid UTF-8".to_owned());
    };
    let is_twice = |(at, name): (usize, &String)| wanted.reads(name) && names[..at].contains(name);
    if let Some(at) = names.iter().enumerate().position(is_twice) {
        return refuse(format!("it has the column {:?} twice", names[at]));
    }
    if let Some(field) = missing(&names, &wanted.form) {
        return Err(InputError::NoField(field));
    }
    Ok(Some(Arc::new(TableHeader { separator, names, line: records.line().to_vec() })))
}

/// Returns the field that all documents of a table would lack.
fn missing(names: &[String], form: &LineForm) -> Option<NoField> {
    let has = |name: &str| names.iter().any(|column| column == name);
    let lack = |field: &str, is_id| Some(line::no_field(field, is_id, names.iter().map(String::as_str)));
    if form.ids == Ids::Required && !has(&form.id_field) {
        return lack(&form.id_field, true);
    }
    let has_content = has(&form.text_field) || has(&form.html_field) || CONTENT_FIELDS.into_iter().any(has);
    if has_content { None } else { lack(&form.text_field, false) }
}

/// The columns of a table that are read.
struct Columns {
    /// The number of columns of the table.
    count: usize,
    read: Vec<Column>,
    /// The place of the column with the number that documents are ranked by, and its name as JSON.
    ranked: Option<(usize, String)>,
}

struct Column {
    at: usize,
    /// The name, as the key of a JSON object with its colon.
    key: String,
    name: String,
}

impl Columns {
    fn of(names: &[String], wanted: &Wanted) -> Self {
        let key = |name: &String| format!("{}:", Value::from(name.as_str()));
        let column = |(at, name): (usize, &String)| Column { at, key: key(name), name: name.clone() };
        let ranked = names.iter().position(|name| wanted.also.as_ref() == Some(name));
        Self {
            count: names.len(),
            read: names.iter().enumerate().filter(|(_, name)| wanted.reads(name)).map(column).collect(),
            ranked: ranked.map(|at| (at, key(&names[at]))),
        }
    }

    /// Returns the reason why a record is no row of the table, if it is none.
    fn check(&self, records: &Records, found: &Found) -> Result<(), Reason> {
        let malformed = |detail| Err(Reason::other("malformed_csv", detail));
        let (bytes, count) = (found.bytes, self.count);
        match found.form {
            Form::Unclosed => malformed(format!(
                "a quote is not closed before the end of the file, so the last {bytes} bytes are one record"
            )),
            Form::TooLong => Err(Reason::other(
                "too_large",
                format!("the record has {bytes} bytes; the limit is {LINE_BYTES_MAX}. Is a quote not closed?"),
            )),
            Form::Fields(fields) if fields != count => {
                malformed(format!("the number of its fields is {fields}; the header has {count}"))
            }
            Form::Fields(_) => str::from_utf8(records.line()).map(drop).map_err(|error| {
                let at = error.valid_up_to() + 1;
                Reason::other("not_utf8", format!("not valid UTF-8 (byte {at} of the record)"))
            }),
        }
    }

    /// Writes a row as a JSON object. An empty cell is a missing field, as a `null` is in a line of JSON.
    fn object(&self, records: &Records, object: &mut Vec<u8>) {
        let is_filled = |column: &Column| !records.field(column.at).is_empty();
        object.clear();
        for column in self.read.iter().filter(|column| is_filled(column)) {
            object.push(if object.is_empty() { b'{' } else { b',' });
            object.extend_from_slice(column.key.as_bytes());
            let cell = str::from_utf8(records.field(column.at)).expect("it was checked");
            match json_of(&column.name, cell) {
                Some(value) => object.extend_from_slice(value.as_bytes()),
                None => serde_json::to_writer(&mut *object, cell).expect("a string is JSON"),
            }
        }
        object.extend_from_slice(if object.is_empty() { b"{}" } else { b"}" });
    }

    /// Returns the number that a row is ranked by, as a JSON object. A cell that has no number is a string.
    fn ranked(&self, records: &Records) -> Option<Vec<u8>> {
        let (at, key) = self.ranked.as_ref()?;
        let cell = str::from_utf8(records.field(*at)).ok()?;
        let value = || number(cell).unwrap_or_else(|| Value::from(cell).to_string());
        let ranked = if cell.trim().is_empty() { "{}".to_owned() } else { format!("{{{key}{}}}", value()) };
        Some(ranked.into_bytes())
    }
}
