//! Example values for messages on files that are imported, and on the verb `hapax collection`. `examples.rs` says how they
//! are found.

/// A part of a path, or an error; the expression; an example.
pub const OF_FILES: &[(&str, &str, &str)] = &[
    ("cli/files.rs", "pattern", "crawl-*.warc.gz"),
    ("cli/files.rs", "field", "no field \"text\"; there are \"content\", \"body\""),
    ("cli/files.rs", "flag(&field)", "--text-field"),
    ("cli/import/outputs.rs", "input.display()", "news.jsonl"),
    ("cli/import/outputs.rs", "kept.display()", "kept.jsonl"),
    ("cli/collection/mod.rs", "name", "poems"),
    ("cli/collection/mod.rs", "setting", "shingle"),
    ("cli/collection/settings.rs", "ttl", "30"),
    ("cli/collection/settings.rs", "detail", "must be a whole number with ms, s, m, h or d, such as 60s"),
    ("input/reason.rs", "one", "\"content\""),
    ("input/reason.rs", "field", "text"),
    ("UnitError::Damaged", "io::Error", "corrupt deflate stream"),
    ("input/units.rs", "DICTIONARY_BYTES_MAX", "16777216"),
    ("input/warc/body.rs", "encodings.len()", "4"),
    ("input/warc/body.rs", "ENCODINGS_MAX", "3"),
    ("input/warc/body.rs", "encoding", "gzip"),
    ("input/warc/body.rs", "error", "corrupt deflate stream"),
    ("input/warc/mod.rs", "RECORD_BYTES_MAX", "16777216"),
    ("input/warc/page.rs", "json.len()", "100000000"),
    ("input/warc/page.rs", "JSON_BYTES_MAX", "33554432"),
    ("input/warc/stream.rs", "HEADER_BYTES_MAX", "65536"),
    ("input/warc/stream.rs", "left", "5"),
    ("input/warc/stream.rs", "missing", "5"),
    ("types/capture.rs", "ALGORITHM_BYTES_MAX", "32"),
    ("types/capture.rs", "VALUE_BYTES_MAX", "128"),
];
