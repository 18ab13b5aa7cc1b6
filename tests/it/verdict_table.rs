//! The verdicts of an import in a Parquet file are those of its lines.

use std::fs::File;

use arrow_json::LineDelimitedWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use crate::cli::text;
use crate::dedup::corpus;
use crate::support::command::{hapax, run};
use crate::support::server::Server;

/// Leaves only the fields that the table has.
fn shortened(mut verdict: Value) -> Value {
    for found in verdict.get_mut("matches").and_then(Value::as_array_mut).into_iter().flatten() {
        let fields = found.as_object_mut().expect("an object");
        fields.retain(|name, _| ["id", "similarity", "low", "high", "method"].contains(&name.as_str()));
    }
    if let Some(error) = verdict.get_mut("error").and_then(Value::as_object_mut) {
        error.retain(|name, _| ["code", "detail"].contains(&name.as_str()));
    }
    verdict
}

#[test]
fn verdicts_in_a_table_are_those_of_lines() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let mut lines: Vec<_> = corpus(2500, 61).iter().map(Value::to_string).collect();
    lines[7] = "broken".to_owned();
    std::fs::write(file("in.jsonl"), lines.join("\n")).unwrap();
    let import = |name: &str| {
        let server = Server::start(&dir.path().join(format!("data-{name}")));
        let url = server.url("");
        let arguments =
            ["import", &file("in.jsonl"), "--server", &url, "--connections", "1", "--verdicts", &file(name)];
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        std::fs::read(file(name)).unwrap()
    };
    let expected: Vec<Value> = text(&import("verdicts.jsonl"))
        .lines()
        .map(|line| shortened(serde_json::from_str(line).expect("JSON")))
        .collect();
    import("verdicts.parquet");
    let table = ParquetRecordBatchReaderBuilder::try_new(File::open(file("verdicts.parquet")).unwrap()).unwrap();
    let mut rows = LineDelimitedWriter::new(Vec::new());
    for batch in table.build().unwrap() {
        rows.write(&batch.unwrap()).unwrap();
    }
    rows.finish().unwrap();
    let rows: Vec<Value> =
        text(&rows.into_inner()).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 2500);
    for (row, line) in rows.iter().zip(&expected) {
        assert_eq!(row, line);
    }
    let verdicts = file("other.parquet");
    let resumed = hapax(&["import", &file("in.jsonl"), "--resume", "--verdicts", &verdicts]).output().unwrap();
    assert!(text(&resumed.stderr).contains("cannot be a Parquet file"), "{resumed:?}");
}
