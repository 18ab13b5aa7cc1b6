//! The header of a table in CSV or TSV, and one record of the table -> its cells. Knows nothing of files.

use csv_core::{ReadRecordResult, ReaderBuilder};
use serde_json::Value;

use super::table_cell::object_of;

/// The characters that may separate the fields of a table.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// The header of a table.
#[derive(Clone, Debug)]
pub struct TableHeader {
    pub(super) separator: u8,
    /// The names of the columns.
    pub(super) names: Vec<String>,
    /// The record as it is in the file, without the end of its line.
    pub(super) line: Vec<u8>,
}

impl TableHeader {
    /// The record as it is in the file, without a byte order mark.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// The names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn separator(&self) -> u8 {
        self.separator
    }

    /// Returns the cells of a record, which is given as it is in the file.
    pub fn cells(&self, record: &[u8]) -> Vec<String> {
        let mut reader = ReaderBuilder::new().delimiter(self.separator).build();
        // Unescaping makes fields shorter. The last field ends with the end of the input.
        let (mut fields, mut ends) = (vec![0; record.len() + 1], vec![0; self.names.len() + 1]);
        let (result, read, mut written, mut ended) = reader.read_record(record, &mut fields, &mut ends);
        if result != ReadRecordResult::Record {
            let (_, _, more, last) = reader.read_record(&record[read..], &mut fields[written..], &mut ends[ended..]);
            (written, ended) = (written + more, ended + last);
        }
        fields.truncate(written);
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let cell = |(begin, end): (usize, &usize)| String::from_utf8_lossy(&fields[begin..*end]).into_owned();
        begins.zip(&ends[..ended]).map(cell).collect()
    }

    /// Returns a record as a JSON object with all columns, whose cells are strings, except for the
    /// objects of metadata and labels. An empty cell is a missing field.
    pub fn object(&self, record: &[u8]) -> Vec<u8> {
        let cells = self.cells(record);
        let mut object = String::from("{");
        for (name, cell) in self.names.iter().zip(&cells).filter(|(_, cell)| !cell.is_empty()) {
            object.push_str(if object.len() > 1 { "," } else { "" });
            object.push_str(&Value::from(name.as_str()).to_string());
            object.push(':');
            object.push_str(&object_of(name, cell).unwrap_or_else(|| Value::from(cell.as_str()).to_string()));
        }
        object.push('}');
        object.into_bytes()
    }
}

/// Two headers are equal if a record of one table has the same meaning in the other.
impl PartialEq for TableHeader {
    fn eq(&self, other: &Self) -> bool {
        (self.separator, &self.names) == (other.separator, &other.names)
    }
}

impl Eq for TableHeader {}

/// Returns the separator of the fields of a first line, if the line is a header with one of these columns.
pub(super) fn separator_of(line: &[u8], columns: &[&str]) -> Option<u8> {
    let is_one = |cell: &[u8]| columns.iter().any(|name| unquoted(cell.trim_ascii()) == name.as_bytes());
    let has_column = |separator: &&u8| line.contains(separator) && line.split(|byte| byte == *separator).any(is_one);
    SEPARATORS.iter().find(has_column).copied()
}

/// Returns the separator that is most frequent in a first line.
pub(super) fn frequent_separator(line: &[u8]) -> u8 {
    let count = |separator: &u8| line.iter().filter(|byte| *byte == separator).count();
    // Of several, the last one would be returned, so the comma comes last.
    *SEPARATORS.iter().rev().max_by_key(|separator| count(separator)).expect("there are separators")
}

fn unquoted(cell: &[u8]) -> &[u8] {
    cell.strip_prefix(b"\"").and_then(|cell| cell.strip_suffix(b"\"")).unwrap_or(cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_an_object_with_all_its_columns() {
        let names = ["id", "text", "site", "labels"].map(str::to_owned).to_vec();
        let header = TableHeader { separator: b';', names, line: Vec::new() };
        let object = |record: &str| String::from_utf8(header.object(record.as_bytes())).unwrap();
        assert_eq!(
            object("1;\"a \"\"b\"\";\nc\";x,y;\"{\"\"k\"\": \"\"v\"\"}\"\r"),
            r#"{"id":"1","text":"a \"b\";\nc","site":"x,y","labels":{"k":"v"}}"#
        );
        assert_eq!(object(";t;;"), r#"{"text":"t"}"#);
        assert_eq!(header.cells(b"1;;\"\";4"), ["1", "", "", "4"]);
    }

    #[test]
    fn the_column_of_the_text_tells_the_separator() {
        let of = |line: &str| separator_of(line.as_bytes(), &["text", "html"]).map(char::from);
        assert_eq!(of("id,text\r"), Some(','));
        assert_eq!(of("\"id\"; \"html\""), Some(';'));
        assert_eq!(of("a,b\ttext"), Some('\t'));
        assert_eq!((of("text"), of("id,texts"), of("")), (None, None, None));
        assert_eq!(frequent_separator(b"a;b;c,d"), b';');
        assert_eq!((frequent_separator(b"a;b,c"), frequent_separator(b"a")), (b',', b','));
    }
}
