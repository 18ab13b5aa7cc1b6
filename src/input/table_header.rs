//! The header of a table in CSV or TSV. Knows nothing of files.

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
