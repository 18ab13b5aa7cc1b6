//! A load of a faulty file names the fault, and leaves nothing behind.

use std::fs;
use std::path::Path;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, StringArray, TimestampMillisecondArray,
};

use super::table::Table;
use super::text;
use crate::support::command::run;
use crate::support::library::{Dir, dir};

fn three() -> Table {
    Table::of((0..3).map(|n| (format!("page/{n}"), text(n))))
}

/// Loads a file into an empty data directory, and returns the error.
fn refusal(dir: &Dir, bytes: &[u8]) -> String {
    let (file, data) = (dir.path().join("bad.parquet"), dir.path().join("data"));
    fs::write(&file, bytes).unwrap();
    let (file, data) = (file.to_str().unwrap(), data.to_str().unwrap());
    let output = run(&["load", file, "--collection", "bad", "--data-dir", data]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let left = Path::new(data).join("collections");
    let left: Vec<_> = fs::read_dir(left).into_iter().flatten().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_wrong_row_is_named_with_its_column() {
    let labels = |label: &str| {
        let mut labels = ListBuilder::new(StringBuilder::new());
        for label in ["site:a", "site:b", label] {
            labels.values().append_value(label);
            labels.append(true);
        }
        labels.finish()
    };
    let texts = |third: &'static str| StringArray::from(vec![None, None, Some(third)]);
    let numbers = |third: i64| Int64Array::from(vec![Some(5), Some(5), Some(third)]);
    let binary = |third: &'static [u8]| BinaryArray::from(vec![&[0; 16][..], &[1; 16][..], third]);
    let cases: Vec<(&'static str, ArrayRef, &str)> = vec![
        ("id", array(StringArray::from(vec!["a", "b", "a"])), "an earlier row has the same id \"a\""),
        ("id", array(StringArray::from(vec![Some("a"), Some("b"), None])), "it has no value"),
        ("id", array(StringArray::from(vec!["a", "b", ""])), "an id must not be empty"),
        (
            "signature",
            array(BinaryArray::from(vec![&[0; 256][..], &[1; 256][..], &[2; 255][..]])),
            "must have 256 bytes",
        ),
        ("content_hash", array(binary(&[2; 15])), "it must have 16 bytes, but has 15"),
        ("shingles", array(numbers(-1)), "it is -1; it must be at least 0"),
        ("shingles", array(numbers(0)), "needs the number of shingles, at least 1"),
        ("metadata", array(texts("[1]")), "must be an object"),
        ("metadata", array(texts("{\"a\":1,\"a\":2}")), "has the same key twice"),
        ("labels", array(labels("nothing")), "colon"),
        ("date", array(texts("yesterday")), "must be a time in UTC"),
        ("payload_digest", array(texts("abc")), "must be a digest"),
        ("representative", array(texts("page/9")), "no earlier row has the id \"page/9\""),
        ("linked", array(BooleanArray::from(vec![false, false, true])), "a link needs a representative"),
        ("verdict", array(texts("{}")), "missing field"),
        ("verdict", array(texts(r#"{"verdict":"unique","threshold":2}"#)), "`threshold` must be a number above 0"),
        ("verdict", array(texts(r#"{"verdict":"near_duplicate","threshold":0.8}"#)), "has `duplicate_of`"),
        (
            "verdict",
            array(texts(r#"{"verdict":"unique","threshold":0.8,"matches":[{"id":"page/9"}]}"#)),
            "a match names the id \"page/9\", but no earlier row has this id",
        ),
        (
            "verdict",
            array(texts(r#"{"verdict":"unique","threshold":0.8,"matches":[{"id":"page/0","shingles":[0,0,0]}]}"#)),
            "the numbers of shingles of a match contradict each other",
        ),
        ("first_seen", array(TimestampMillisecondArray::from(vec![0, 0, -1])), "must be a time from 1970 to 9999"),
    ];
    for (column, values, expected) in cases {
        let mut table = three();
        table.columns.retain(|(name, _)| *name != column);
        table.columns.push((column, values));
        let error = refusal(&dir(), &table.bytes());
        assert!(error.contains(expected), "{column}: {error}");
        assert!(error.contains(&format!("bad.parquet, row 2, column `{column}`")), "{error}");
    }
}

/// Equal labels take a few bytes in the file, but the library builds them in memory.
#[test]
fn lists_that_expand_a_lot_are_read_in_small_batches_or_refused() {
    let lists = |lengths: [usize; 3], label: &str| {
        let mut labels = ListBuilder::new(StringBuilder::new());
        for length in lengths {
            (0..length).for_each(|_| labels.values().append_value(label));
            labels.append(length > 0);
        }
        labels.finish()
    };
    let long = format!("a:{}", "b".repeat(10_000));
    for (labels, expected) in [
        (lists([0, 1, 2000], "a:b"), "row 2, column `labels`: a document has at most 8 labels, but this one has 2000"),
        (lists([0, 9, 0], "a:b"), "row 1, column `labels`: a document has at most 8 labels, but this one has 9"),
        (lists([1, 30_000, 0], &long), "a row has a list that may take more than 256 MiB; write shorter lists or"),
    ] {
        let error = refusal(&dir(), &three().with("labels", labels).bytes());
        assert!(error.contains(expected), "{error}");
    }
}

/// Rows are read in batches, and looked up in groups.
#[test]
fn an_error_names_the_row_in_the_file() {
    for row in [1, 63, 64, 65, 128, 4095, 4096, 4097, 4999] {
        let id = |n| if n == row { "page/0".to_owned() } else { format!("page/{n}") };
        let error = refusal(&dir(), &Table::of((0..5000).map(|n| (id(n), text(n)))).bytes());
        assert!(error.contains(&format!("row {row}, column `id`: an earlier row has the same id")), "{error}");
    }
}

fn array(values: impl arrow_array::Array + 'static) -> ArrayRef {
    std::sync::Arc::new(values)
}

#[test]
fn a_link_represents_nothing() {
    let links = StringArray::from(vec![None, Some("page/0"), Some("page/1")]);
    let error = refusal(&dir(), &three().with("representative", links).bytes());
    assert!(error.contains("row 2, column `representative`: \"page/1\" has a representative itself"), "{error}");
}

#[test]
fn a_wrong_column_is_named() {
    let mut missing = three();
    missing.columns.retain(|(name, _)| *name != "signature");
    let cases = [
        (missing, "column `signature`: it is missing"),
        (
            three().with("shingles", Float64Array::from(vec![1.0; 3])),
            "column `shingles`: it must have the type integer",
        ),
        (three().with("id", Int64Array::from(vec![1; 3])), "column `id`: it must have the type string"),
    ];
    for (table, expected) in cases {
        let error = refusal(&dir(), &table.bytes());
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_spec_must_be_there_and_fit_its_fingerprint() {
    let with = |key: &str, value: Option<&str>| {
        let mut table = three();
        match value {
            Some(value) => table.metadata.insert(key.to_owned(), value.to_owned()),
            None => table.metadata.remove(key),
        };
        refusal(&dir(), &table.bytes())
    };
    assert!(with("hapax.spec", None).contains("its metadata has no `hapax.spec`"));
    assert!(with("hapax.fingerprint", None).contains("its metadata has no `hapax.fingerprint`"));
    assert!(with("hapax.spec", Some("hapax9;nonsense")).contains("`hapax.spec`"));
    assert!(with("hapax.fingerprint", Some(&"0".repeat(32))).contains("`hapax.fingerprint` is 000"));
    assert!(with("hapax.settings", Some("{}")).contains("`hapax.settings`: missing field"));
}

#[test]
fn a_file_that_is_cut_or_no_parquet_is_named() {
    let whole = three().bytes();
    for bytes in [&b""[..], b"PAR1", b"{\"id\": \"a\"}", &whole[..whole.len() / 2], &whole[..whole.len() - 1]] {
        let error = refusal(&dir(), bytes);
        assert!(error.contains("bad.parquet: it is not Parquet, or it is cut or damaged"), "{error}");
    }
}

#[test]
fn files_of_one_collection_have_one_spec() {
    let dir = dir();
    let (one, other) = (dir.path().join("one.parquet"), dir.path().join("other.parquet"));
    three().write(&one);
    let mut external = three();
    let spec = hapax_core::Spec::parse("hapax1;external:ours:128x16").unwrap();
    external.metadata.insert("hapax.spec".to_owned(), spec.to_string());
    external.metadata.insert("hapax.fingerprint".to_owned(), spec.fingerprint().to_string());
    external.write(&other);
    let data = dir.path().join("data");
    let (one, other, data) = (one.to_str().unwrap(), other.to_str().unwrap(), data.to_str().unwrap());
    let output = run(&["load", one, other, "--collection", "bad", "--data-dir", data]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("other.parquet: its spec or its settings are not those of"), "{error}");
}

/// docs/load.md lists the columns of the format, and the format contains all data of a collection's tables.
#[test]
fn the_page_and_the_tables_have_the_columns_of_the_format() {
    let read = |path: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let page = read("docs/load.md");
    let (_, table) = page.split_once("<!-- columns -->\n").unwrap();
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    let expected = hapax::load::COLUMNS
        .iter()
        .map(|column| format!("| `{}` | {} | {} | {} |", column.name, column.kind, column.meaning, column.absent));
    assert!(rows.iter().copied().eq(expected), "docs/load.md lists other columns: {rows:#?}");

    // The column of the format for each column of the tables. `None`: the value follows from other columns.
    let places = [
        ("seq", None),
        ("id_fingerprint", None),
        ("content_prefix", None),
        ("sum", None),
        ("size_sum", None),
        ("kind", None),
        ("flags", Some("linked")),
        ("cluster", Some("representative")),
        ("seen_ms", Some("last_seen")),
        ("labels", Some("labels")),
        ("id", Some("id")),
        ("metadata", Some("metadata")),
        ("content_hash", Some("content_hash")),
        ("first_seen_ms", Some("first_seen")),
        ("shingles", Some("shingles")),
        ("verdict", Some("verdict")),
        ("id_first_seen_ms", Some("id_first_seen")),
        ("page_hash", Some("html_hash")),
        ("extractor", Some("extractor")),
        ("capture_date", Some("date")),
        ("payload_digest", Some("payload_digest")),
    ];
    let source = read("src/store/format/tables.rs");
    let mut columns = 0;
    for name in ["signature", "document", "payload"] {
        let (_, table) = source.split_once(&format!("CREATE TABLE {name} (\n")).unwrap();
        for line in table.lines().take_while(|line| line.starts_with("    ")) {
            let column = line.split_whitespace().next().unwrap();
            let bytes = if name == "signature" { "signature" } else { "payload" };
            let place = match column {
                "bytes" => Some(bytes),
                "shingles" if name == "payload" => Some("payload_shingles"),
                _ => places.iter().find(|(own, _)| *own == column).unwrap_or_else(|| panic!("{name}.{column}")).1,
            };
            let known = |place: &str| hapax::load::COLUMNS.iter().any(|column| column.name == place);
            assert!(place.is_none_or(known), "{name}.{column}");
            columns += 1;
        }
    }
    assert_eq!(columns, 9 + 14 + 6);
}
