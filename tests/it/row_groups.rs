//! Parquet files with several row groups: the rows stay in order although the groups are read ahead, and a group that
//! cannot be read in little memory is left out.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

use crate::cli::{code, path, row, text, words};
use crate::support::command::by;

/// Writes each group of texts as a row group, with the ids 0, 1 and so on.
fn write(path: &Path, groups: &[Vec<String>]) {
    let fields = ["id", "text"].map(|name| Field::new(name, DataType::Utf8, false));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_enabled(false)
        .build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), Arc::clone(&schema), Some(properties)).unwrap();
    let mut ids = 0..;
    for group in groups {
        let ids = StringArray::from_iter_values(ids.by_ref().take(group.len()).map(|id: u64| id.to_string()));
        let texts = StringArray::from_iter_values(group);
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(ids), Arc::new(texts)]).unwrap();
        writer.write(&batch).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
}

fn ids(path: &Path) -> Vec<String> {
    let batches = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    batches.flat_map(|batch| texts(&batch.unwrap())).collect()
}

fn texts(batch: &RecordBatch) -> Vec<String> {
    batch.column(0).as_string::<i32>().iter().map(|id| id.unwrap().to_owned()).collect()
}

#[test]
fn rows_of_many_groups_stay_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    // The groups differ in length. Every third text repeats an earlier one.
    let text_of = |n: usize| words(if n % 3 == 2 { n / 3 } else { n + 10_000 });
    let all: Vec<String> = (0..3000).map(text_of).collect();
    let (mut groups, mut rest) = (Vec::new(), &all[..]);
    while !rest.is_empty() {
        let (group, after) = rest.split_at(rest.len().min(1 + groups.len() * 7 % 90));
        groups.push(group.to_vec());
        rest = after;
    }
    write(&file("in.parquet"), &groups);
    let line = |(id, text): (usize, &String)| json!({"id": id.to_string(), "text": text}).to_string() + "\n";
    std::fs::write(file("in.jsonl"), all.iter().enumerate().map(line).collect::<String>()).unwrap();
    let report = |name: &str, out: &str| {
        let run = by(&[], &["dedup", name, "-o", out, "--report", "report"]).current_dir(dir.path()).output().unwrap();
        assert_eq!(code(&run), 0, "{run:?}");
        let report = std::fs::read_to_string(file("report")).unwrap();
        let fields = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            ["id", "verdict", "duplicate_of"].map(|field| line[field].as_str().map(str::to_owned))
        };
        report.lines().map(fields).collect::<Vec<_>>()
    };
    assert_eq!(report("in.parquet", "out.parquet"), report("in.jsonl", "out.jsonl"));
    let kept = std::fs::read_to_string(file("out.jsonl")).unwrap();
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(ids(&file("out.parquet")), kept.lines().map(id).collect::<Vec<_>>());
}

#[test]
fn a_row_group_with_huge_values_is_left_out_and_the_others_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let huge = |mebibytes: usize| "huge ".repeat((mebibytes << 20) / 5);
    let groups =
        [vec![words(1), words(2)], vec![words(3), huge(300)], vec![words(4), huge(20), words(5)], vec![words(6)]];
    write(&file("in.parquet"), &groups);
    // Less memory than the largest value takes twice.
    let limit = "ulimit -v 800000 && exec \"$@\"";
    let (input, output) = (file("in.parquet"), file("out.parquet"));
    let run = by(&["sh", "-c", limit, "sh"], &["dedup", path(&input), "-o", path(&output)]).output().unwrap();
    assert_eq!((code(&run), row(&run, "kept"), row(&run, "failed")), (1, 5, 2), "{run:?}");
    let said = text(&run.stderr);
    for said_so in [
        "in.parquet, row 2: the 2 rows of row group 1 are left out: the pages of column `text` have impossible sizes, or \
         more than 64 MiB",
        "in.parquet, row 5: the row has 209",
    ] {
        assert!(said.contains(said_so), "{said}");
    }
    assert_eq!(ids(&output), ["0", "1", "4", "6", "7"]);
}
