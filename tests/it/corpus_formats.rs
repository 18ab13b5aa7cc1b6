//! The verbs that read a corpus write whole documents, in each format that can have them, and compare numbers exactly.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Decimal128Array, ListArray, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_json::LineDelimitedWriter;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::cli::{code, row, run_with_input, text, words};
use crate::support::command::hapax;
use crate::support::jsonl::{lines, parsed};

/// A folder for the files of one test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        text(&std::fs::read(self.path(name)).unwrap())
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        parsed(self.read(name).as_bytes())
    }

    /// Runs `hapax` in the folder.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        hapax(arguments).current_dir(self.0.path()).output().unwrap()
    }

    /// Runs `hapax`, which must succeed.
    fn done(&self, arguments: &[&str]) -> Output {
        let run = self.run(arguments);
        assert_eq!(code(&run), 0, "{arguments:?}: {run:?}");
        run
    }

    /// Runs `hapax`, which must fail, and returns its message.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let run = self.run(arguments);
        assert_eq!(code(&run), 2, "{arguments:?}: {run:?}");
        text(&run.stderr)
    }
}

/// The columns `id`, `text`, `price` and `seen`.
type Row<'a> = (&'a str, String, Option<i128>, Option<i64>);

/// Writes a Parquet file with these columns and `tags`.
fn write_parquet(path: &Path, rows: &[Row<'_>]) {
    let texts =
        |of: fn(&Row<'_>) -> String| -> ArrayRef { Arc::new(StringArray::from_iter_values(rows.iter().map(of))) };
    let prices = Decimal128Array::from_iter(rows.iter().map(|row| row.2)).with_precision_and_scale(38, 2).unwrap();
    let seen = TimestampMicrosecondArray::from_iter(rows.iter().map(|row| row.3));
    let tags = rows.iter().map(|_| Some([Some(1), None, Some(3)]));
    let columns: [(&str, ArrayRef); 5] = [
        ("id", texts(|row| row.0.to_owned())),
        ("text", texts(|row| row.1.clone())),
        ("price", Arc::new(prices)),
        ("seen", Arc::new(seen)),
        ("tags", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(tags))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    std::fs::write(path, writer.into_inner().unwrap()).unwrap();
}

fn rows_of(path: &Path) -> Vec<Value> {
    let mut rows = LineDelimitedWriter::new(Vec::new());
    let file = std::fs::File::open(path).unwrap();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
        rows.write(&batch.unwrap()).unwrap();
    }
    rows.finish().unwrap();
    parsed(&rows.into_inner())
}

/// A table with a duplicate. Its second document has odd characters and an empty cell.
fn table() -> String {
    let text = |n| words(n);
    format!("id;text;note\n1;{};a,b\n2;\"{} \"\"x\"\";\ny\";\n3;{};dropped\n", text(1), text(2), text(1))
}

/// The kept documents of the table.
fn expected() -> Vec<Value> {
    vec![
        json!({"id": "1", "text": words(1), "note": "a,b"}),
        json!({"id": "2", "text": format!("{} \"x\";\ny", words(2))}),
    ]
}

#[test]
fn the_kept_documents_of_a_table_have_each_format() {
    let folder = Folder::new();
    folder.write("in.csv", table());
    for (format, out) in [("jsonl", "out.jsonl"), ("tsv", "out.tsv"), ("csv", "out.csv"), ("parquet", "out.parquet")] {
        // With another order, the files are read twice.
        for order in ["first", "longest"] {
            folder.done(&["dedup", "in.csv", "-o", out, "--format", format, "--keep", order]);
            match format {
                "jsonl" => assert_eq!(folder.lines(out), expected()),
                "parquet" => assert_eq!(rows_of(&folder.path(out)), expected()),
                _ => {
                    folder.done(&["dedup", out, "-o", "again.jsonl", "--format", "jsonl"]);
                    assert_eq!(folder.lines("again.jsonl"), expected(), "{format}");
                }
            }
        }
    }
    assert_eq!(folder.read("out.csv").lines().next(), Some("id,text,note"));
    assert!(folder.read("out.csv").contains(",\"a,b\"\n"), "{}", folder.read("out.csv"));
    // A table from a pipe is known only when it is read.
    let piped = run_with_input(&["dedup", "-", "-o", "-", "--format", "csv"], table().as_bytes());
    assert_eq!((code(&piped), text(&piped.stdout)), (0, folder.read("out.csv")), "{piped:?}");
    // Records with the same separator are written as they are.
    folder.write("same.csv", format!("id,text\r\n\"1\",{}\r\n", words(1)));
    folder.done(&["dedup", "same.csv", "-o", "same.out", "--format", "csv"]);
    assert_eq!(folder.read("same.out"), folder.read("same.csv"));
}

#[test]
fn the_kept_rows_of_parquet_have_each_format() {
    let folder = Folder::new();
    let rows =
        [("a", words(1), Some(12_345), Some(1_000_000)), ("b", words(2), None, Some(0)), ("c", words(1), None, None)];
    write_parquet(&folder.path("in.parquet"), &rows);
    let expected = vec![
        json!({"id": "a", "text": words(1), "price": 123.45, "seen": "1970-01-01T00:00:01", "tags": [1, null, 3]}),
        json!({"id": "b", "text": words(2), "seen": "1970-01-01T00:00:00", "tags": [1, null, 3]}),
    ];
    folder.done(&["dedup", "in.parquet", "-o", "out.jsonl", "--format", "jsonl"]);
    assert_eq!(folder.lines("out.jsonl"), expected);
    folder.done(&["dedup", "in.parquet", "-o", "out.csv", "--format", "csv"]);
    let csv = format!(
        "id,text,price,seen,tags\na,{},123.45,1970-01-01T00:00:01,\"[1,null,3]\"\nb,{},,1970-01-01T00:00:00,\"[1,null,3]\"\n",
        words(1),
        words(2)
    );
    assert_eq!(folder.read("out.csv"), csv);
    folder.done(&["dedup", "in.parquet", "-o", "out.parquet", "--format", "parquet"]);
    assert_eq!(rows_of(&folder.path("out.parquet")), expected);
    // Other formats can be mixed if the output is JSON Lines.
    folder.write("more.csv", format!("id,text,x\nd,{},7\n", words(4)));
    folder.write("page.txt", words(5));
    let inputs = ["in.parquet", "more.csv", "out.jsonl", "page.txt"];
    folder.done(&[&["dedup"], &inputs[..], &["-o", "mixed.jsonl", "--format", "jsonl"]].concat());
    let ids: Vec<_> = folder.lines("mixed.jsonl").iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, ["a", "b", "d", "page.txt"]);
    assert_eq!(folder.lines("mixed.jsonl")[2]["x"], "7");
}

#[test]
fn documents_without_columns_are_no_table() {
    let folder = Folder::new();
    folder.write("in.jsonl", lines(&[json!({"text": words(1)})]));
    folder.write("in.csv", table());
    write_parquet(&folder.path("in.parquet"), &[("a", words(1), None, None)]);
    for format in ["csv", "tsv", "parquet"] {
        let refused = folder.refused(&["dedup", "in.jsonl", "-o", "out", "--format", format]);
        assert!(
            refused.contains("in.jsonl is no table, so its columns are not known; only --format jsonl"),
            "{refused}"
        );
        let input = std::fs::read(folder.path("in.jsonl")).unwrap();
        let piped = run_with_input(&["dedup", "-", "-o", "-", "--format", format], &input);
        assert!(code(&piped) == 2 && text(&piped.stderr).contains("- is no table"), "{piped:?}");
    }
    let mixed = folder.refused(&["dedup", "in.parquet", "in.csv", "-o", "out", "--format", "csv"]);
    assert!(mixed.contains("in.parquet: this is not CSV, but in.csv is"), "{mixed}");
    let mixed = folder.refused(&["dedup", "in.parquet", "in.jsonl", "-o", "out", "--format", "csv"]);
    assert!(mixed.contains("in.jsonl: this is not Parquet, but other files are; with this --format"), "{mixed}");
    assert!(folder.refused(&["dedup", "in.csv", "--format", "csv"]).contains("--output"));
    let named = folder.refused(&["dedup", "in.csv", "-o", "out.csv", "--format", "jsonl"]);
    assert!(named.contains("the format of this output is JSON Lines; name a file that ends in .jsonl"), "{named}");
    folder.write("twice.csv", format!("id,text,n,n\n1,{},a,b\n", words(1)));
    let twice = folder.refused(&["dedup", "twice.csv", "-o", "out", "--format", "parquet"]);
    assert!(twice.contains("has the column \"n\" twice"), "{twice}");
    assert!(!folder.path("out").exists());
}

#[test]
fn spans_and_lists_have_all_columns() {
    let folder = Folder::new();
    folder.write("in.csv", table());
    write_parquet(&folder.path("in.parquet"), &[("a", words(1), Some(5), None), ("b", words(1), Some(6), None)]);
    let listed = folder.done(&["dedup", "in.csv"]);
    let documents: Vec<_> = parsed(&listed.stdout).iter().map(|line| line["document"].clone()).collect();
    assert_eq!(documents, expected());
    let listed = folder.done(&["dedup", "in.parquet"]);
    assert_eq!(parsed(&listed.stdout)[0]["document"]["price"], 0.05);
    folder.done(&["spans", "in.csv", "--cut", "-o", "cut.jsonl", "--ngram", "8"]);
    assert_eq!(folder.lines("cut.jsonl")[..2], expected());
    assert_eq!(folder.lines("cut.jsonl")[2], json!({"id": "3", "text": "", "note": "dropped"}));
    folder.done(&["spans", "in.parquet", "--cut", "-o", "cut.jsonl", "--ngram", "8"]);
    assert_eq!(folder.lines("cut.jsonl")[1], json!({"id": "b", "text": "", "price": 0.06, "tags": [1, null, 3]}));
}

#[test]
fn the_largest_number_is_found_exactly() {
    let folder = Folder::new();
    let best = |input: &str, field: &str| {
        let run = folder.run(&["dedup", input, "-o", "kept", "--keep", &format!("max:{field}"), "--format", "jsonl"]);
        (code(&run), folder.lines("kept").iter().map(|line| line["id"].clone()).collect::<Vec<_>>(), text(&run.stderr))
    };
    // As floating-point numbers, these are equal.
    let numbers = ["9007199254740992", "9007199254740993", "-1", "0.10000000000000000000000001"];
    let line = |(n, number): (usize, &&str)| format!("{{\"id\":\"{n}\",\"text\":\"{}\",\"n\":{number}}}\n", words(1));
    folder.write("in.jsonl", numbers.iter().enumerate().map(line).collect::<String>());
    assert_eq!(best("in.jsonl", "n").1, ["1"]);
    let record = |(n, number): (usize, &&str)| format!("{n},{},\" +{number}\"\n", words(1));
    folder.write(
        "in.csv",
        String::from("id,text,n\n") + &numbers[..2].iter().enumerate().map(record).collect::<String>(),
    );
    assert_eq!(best("in.csv", "n").1, ["1"]);
    let large = 99_999_999_999_999_999_999_i128;
    let rows =
        [("a", words(1), Some(large), Some(1)), ("b", words(1), Some(large + 1), None), ("c", words(1), None, Some(2))];
    write_parquet(&folder.path("in.parquet"), &rows);
    assert_eq!((best("in.parquet", "price").1, best("in.parquet", "seen").1), (vec![json!("b")], vec![json!("c")]));
    // A value of another type is no missing number.
    folder.write("in.jsonl", format!("{{\"text\":\"{0}\",\"n\":\"7\"}}\n{{\"id\":\"1\",\"text\":\"{0}\",\"n\":null}}\n{{\"id\":\"2\",\"text\":\"{0}\",\"n\":-5}}\n", words(1)));
    let (status, kept, told) = best("in.jsonl", "n");
    assert_eq!((status, kept), (1, vec![json!("2")]));
    assert!(told.contains("in.jsonl:1 at byte 0: n: must be a number, but is a string"), "{told}");
    folder.write("in.csv", format!("id,text,n\n1,{0},high\n2,{0},\n", words(1)));
    assert!(folder.refused(&["dedup", "in.csv", "-o", "kept", "--keep", "max:n"]).contains("no document has a number"));
}

#[test]
fn a_null_is_a_missing_field_for_each_verb() {
    let folder = Folder::new();
    let page = format!("<p>{}</p>", words(2));
    folder.write(
        "in.jsonl",
        lines(&[
            json!({"id": null, "text": words(1), "html": page}),
            json!({"id": "page", "text": null, "html": page}),
            json!({"id": "none", "text": null, "html": null}),
            json!({"id": 1.5, "text": words(3)}),
            json!({"id": "wrong", "text": ["a"]}),
        ]),
    );
    folder.write("in.csv", format!("id,text,html\n,{},x\npage,,{page}\nnone,,\n", words(1)));
    folder.write("bench.jsonl", lines(&[json!({"id": "b", "text": words(9)})]));
    let told = [
        "in.jsonl:3 at byte ",
        ": no field \"text\"",
        "in.jsonl:4 at byte ",
        ": id: must be a string or a whole number, but is 1.5",
        "in.jsonl:5 at byte ",
        ": text: must be a string, but is an array",
    ];
    for verb in [
        &["dedup", "-o", "out"][..],
        &["pairs", "-o", "out"],
        &["spans", "-o", "out"],
        &["contain", "--benchmarks", "bench.jsonl", "-o", "out"],
    ] {
        let run = folder.run(&[verb, &["in.jsonl"]].concat());
        assert_eq!((code(&run), row(&run, "failed")), (1, 3), "{run:?}");
        let said = text(&run.stderr);
        assert!(told.iter().all(|part| said.contains(part)), "{verb:?}: {said}");
        let run = folder.run(&[verb, &["in.csv"]].concat());
        assert_eq!((code(&run), row(&run, "failed")), (1, 1), "{run:?}");
        assert!(text(&run.stderr).contains("in.csv, record 3 at byte "), "{run:?}");
    }
    // The documents with a page instead of a text are used.
    folder.run(&["dedup", "in.jsonl", "in.jsonl", "-o", "out", "--report", "report"]);
    let ids: Vec<_> = folder
        .lines("report")
        .iter()
        .filter(|line| line["kind"] == "dropped")
        .map(|line| line["duplicate_of"].clone())
        .collect();
    assert_eq!(ids, ["in.jsonl:1", "page"]);
}

#[test]
fn a_null_of_a_benchmark_is_a_missing_text() {
    let folder = Folder::new();
    let (question, answer) = (words(1), words(2));
    folder.write("in.jsonl", lines(&[json!({"text": format!("{question} {answer}")})]));
    folder.write(
        "bench.jsonl",
        lines(&[json!({"id": "a", "q": question, "a": null}), json!({"id": null, "q": null, "a": answer})]),
    );
    folder.write("bench.csv", format!("id,q,a\nc,{question},\n,,{answer}\n"));
    let fields = ["--benchmark-text-field", "q", "--benchmark-text-field", "a"];
    for (bench, made) in [("bench.jsonl", "bench.jsonl:2#a"), ("bench.csv", "bench.csv:2#a")] {
        let run =
            folder.run(&[&["contain", "in.jsonl", "--benchmarks", bench, "--items", "items"], &fields[..]].concat());
        assert_eq!(code(&run), 0, "{run:?}");
        let items = folder.lines("items");
        assert_eq!((items.len(), &items[1]["id"]), (2, &json!(made)), "{items:?}");
        assert!(items.iter().all(|item| item["status"] == "found"), "{items:?}");
    }
    let twice = ["--benchmark-text-field", "q", "--benchmark-text-field", "q"];
    let refused =
        folder.refused(&[&["contain", "in.jsonl", "--benchmarks", "bench.csv", "--items", "i"], &twice[..]].concat());
    assert!(refused.contains("--benchmark-text-field q: is given twice"), "{refused}");
}

#[test]
fn the_page_of_an_item_has_a_field_of_its_own() {
    let folder = Folder::new();
    folder.write("in.jsonl", lines(&[json!({"text": words(1)}), json!({"text": words(2)})]));
    folder.write(
        "bench.jsonl",
        lines(&[json!({"markup": format!("<p>{}</p>", words(1)), "html": format!("<p>{}</p>", words(2))})]),
    );
    let found = |more: &[&str]| {
        folder.done(&[&["contain", "in.jsonl", "--benchmarks", "bench.jsonl", "--dropped", "dropped"], more].concat());
        folder.lines("dropped")[0]["line"].clone()
    };
    assert_eq!(found(&[]), 2);
    assert_eq!(found(&["--benchmark-html-field", "markup"]), 1);
    // The field of the documents is that of the items, unless there is another one.
    assert_eq!(found(&["--html-field", "markup"]), 1);
}

#[test]
fn a_field_that_no_document_has_is_told_by_each_verb() {
    let folder = Folder::new();
    folder.write("in.jsonl", lines(&[json!({"id": "1", "text": words(1)}), json!({"id": "2", "text": words(2)})]));
    folder.write("bench.jsonl", lines(&[json!({"id": "b", "q": words(9)})]));
    for verb in [
        &["dedup", "in.jsonl", "-o", "out"][..],
        &["pairs", "in.jsonl", "-o", "out"],
        &["spans", "in.jsonl", "-o", "out"],
        &["contain", "in.jsonl", "--benchmarks", "bench.jsonl", "--benchmark-text-field", "q", "-o", "out"],
    ] {
        let run = folder.done(&[verb, &["--html-field", "markup", "--id-field", "id"]].concat());
        assert_eq!(
            text(&run.stderr).lines().find(|line| line.starts_with("warning: no document")),
            Some("warning: no document has the field \"markup\" (--html-field)"),
            "{run:?}"
        );
    }
    let fields = ["--benchmark-text-field", "q", "--benchmark-text-field", "anser"];
    let run =
        folder.done(&[&["contain", "in.jsonl", "--benchmarks", "bench.jsonl", "-o", "out"], &fields[..]].concat());
    let told = "warning: no item has the field \"anser\" (--benchmark-text-field)";
    assert!(text(&run.stderr).contains(told), "{run:?}");
}

#[test]
fn a_file_is_not_compared_with_itself() {
    let folder = Folder::new();
    folder.write("in.jsonl", lines(&[json!({"text": words(1)})]));
    std::os::unix::fs::symlink("in.jsonl", folder.path("link.jsonl")).unwrap();
    for other in ["in.jsonl", "./in.jsonl", "link.jsonl"] {
        let refused = folder.refused(&["pairs", "in.jsonl", "--against", other, "-o", "out"]);
        assert!(refused.contains("in.jsonl is also a file of --against"), "{refused}");
    }
}

#[test]
fn times_with_a_zone_are_read() {
    let folder = Folder::new();
    for zone in ["UTC", "Europe/Berlin", "+02:00"] {
        let texts = |text: String| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
        let seen = TimestampMicrosecondArray::from(vec![0]).with_timezone(zone);
        let columns = [("id", texts("a".to_owned())), ("text", texts(words(1))), ("seen", Arc::new(seen) as ArrayRef)];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        std::fs::write(folder.path("in.parquet"), writer.into_inner().unwrap()).unwrap();
        folder.done(&["dedup", "in.parquet", "-o", "out.jsonl", "--format", "jsonl"]);
        let seen = folder.lines("out.jsonl")[0]["seen"].as_str().unwrap().to_owned();
        assert!(seen.starts_with("1970-01-01T0"), "{zone}: {seen}");
    }
}

#[test]
fn cells_become_strings_and_two_columns_of_one_name_no_object() {
    let folder = Folder::new();
    folder.write("in.csv", format!("id,text,set\n1,{},\"[1.50, 12345678901234567890123]\"\n", words(1)));
    folder.done(&["dedup", "in.csv", "-o", "out.jsonl", "--format", "jsonl"]);
    assert_eq!(folder.lines("out.jsonl")[0]["set"], "[1.50, 12345678901234567890123]");
    folder.write("two.csv", format!("id,text,x,x\n1,{},2,3\n", words(1)));
    let told = folder.refused(&["dedup", "two.csv", "-o", "out.jsonl", "--format", "jsonl"]);
    assert!(told.contains("two columns are named \"x\""), "{told}");
}
