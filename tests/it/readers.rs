//! The files that `hapax dedup`, `hapax import` and `hapax check` read: tables, texts, the fields of their documents, and
//! documents without an id. Damaged parts are named, and the rest is used.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::cli::{code, path, row, run_with_input, text, words};
use crate::support::client::{Client, gzip};
use crate::support::command::{by, hapax};
use crate::support::server::Server;

/// A folder for the files of one test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        text(&std::fs::read(self.path(name)).unwrap())
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Runs `hapax` in the folder.
    fn run(&self, arguments: &[&str]) -> Output {
        hapax(arguments).current_dir(self.0.path()).output().unwrap()
    }

    /// Runs `hapax dedup`, which must succeed, and returns the kept records.
    fn dedup(&self, arguments: &[&str]) -> String {
        let run = self.run(&[&["dedup"], arguments, &["-o", "out", "--report", "report"]].concat());
        assert_eq!(code(&run), 0, "{arguments:?}: {run:?}");
        self.read("out")
    }

    /// Runs `hapax dedup`, which must fail, and returns its message.
    fn refused(&self, arguments: &[&str]) -> String {
        let run = self.run(&[&["dedup", "-o", "refused"], arguments].concat());
        assert!(code(&run) == 2 && !self.path("refused").exists(), "{arguments:?}: {run:?}");
        text(&run.stderr)
    }
}

/// Texts with a quote, a separator and a line break. The last two repeat the first two.
fn texts() -> Vec<String> {
    let odd = |n| format!("{} said \"no\", and\nthen; left\tat once", words(n));
    [0, 1, 2, 0, 1].map(odd).to_vec()
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Returns a table with the columns `url`, `body` and `score`.
fn table(separator: char, newline: &str) -> String {
    let head = ["url", "\"body\"", "score"].join(&separator.to_string());
    let record = |(n, text): (usize, &String)| format!("{newline}u{n}{separator}{}{separator}{n}", quoted(text));
    head + &texts().iter().enumerate().map(record).collect::<String>() + newline
}

const FIELDS: [&str; 4] = ["--id-field", "url", "--text-field", "body"];

fn with_fields<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &FIELDS].concat()
}

#[test]
fn records_of_a_table_are_kept_unchanged_after_its_header() {
    let folder = Folder::new();
    let record = |(n, text): (usize, &String)| json!({"url": format!("u{n}"), "body": text}).to_string() + "\n";
    folder.write("in.jsonl", texts().iter().enumerate().map(record).collect::<String>());
    folder.dedup(&with_fields(&["in.jsonl"]));
    let expected: Vec<_> = folder.lines("report").iter().map(|line| line["id"].clone()).collect();
    assert_eq!(expected, ["u3", "u4"]);
    for (separator, newline, name) in [(',', "\n", "in"), (';', "\r\n", "in.csv"), ('\t', "\n", "in.tsv")] {
        let whole = table(separator, newline);
        let kept = whole[..whole.find("u3").unwrap()].to_owned();
        folder.write(name, &whole);
        assert_eq!(folder.dedup(&with_fields(&[name])), kept, "{name}");
        let ids: Vec<_> = folder.lines("report").iter().map(|line| line["id"].clone()).collect();
        assert_eq!(ids, expected, "{name}");
        // The forms in which the same table can be stored.
        folder.write("packed", gzip(whole.as_bytes()));
        folder.write("packed.zst", zstd::encode_all(whole.as_bytes(), 1).unwrap());
        folder.write("mark", [b"\xEF\xBB\xBF", whole.as_bytes()].concat());
        folder.write("unended", whole.trim_end());
        for form in ["packed", "packed.zst", "mark", "unended"] {
            assert_eq!(folder.dedup(&with_fields(&[form])), kept, "{form} of {name}");
        }
        let piped = run_with_input(&with_fields(&["dedup", "-", "-o", "-"]), whole.as_bytes());
        assert_eq!((code(&piped), text(&piped.stdout)), (0, kept), "{name}");
    }
    // The last of the equal texts has the largest score.
    let best = folder.dedup(&with_fields(&["in.csv", "--keep", "max:score"]));
    assert_eq!(best.matches("said").count(), 3);
    assert!(best.contains("\r\nu2;") && best.contains("\r\nu3;") && best.contains("\r\nu4;"), "{best}");
    assert_eq!(folder.dedup(&with_fields(&["in.csv", "--keep", "longest"])).matches("said").count(), 3);
}

#[test]
fn tables_of_one_output_have_one_header() {
    let folder = Folder::new();
    folder.write("1.csv", format!("id,text\n1,{}\n", words(1)));
    folder.write("2.csv", format!("\"id\",text\r\n2,{}\r\n3,{}\r\n", words(2), words(1)));
    folder.write("other.csv", format!("text,id\n{},4\n", words(4)));
    folder.write("lines.jsonl", json!({"text": words(5)}).to_string());
    assert_eq!(folder.dedup(&["1.csv", "2.csv"]), format!("id,text\n1,{}\n2,{}\r\n", words(1), words(2)));
    assert!(folder.refused(&["1.csv", "other.csv"]).contains("other.csv: its columns differ from those of 1.csv"));
    assert!(folder.refused(&["1.csv", "lines.jsonl"]).contains("lines.jsonl: this is not CSV, but 1.csv is"));
    // The form of a pipe is seen when it is read.
    let piped = run_with_input(&["dedup", path(&folder.path("1.csv")), "-", "-o", "-"], b"text,id\na b c,4\n");
    assert!(code(&piped) == 2 && text(&piped.stderr).contains("different headers"), "{piped:?}");
}

#[test]
fn headers_that_cannot_be_used_say_why() {
    let folder = Folder::new();
    let refused = |name: &str, header: &[u8], arguments: &[&str]| {
        folder.write(name, [header, b"\n1,a b c\n"].concat());
        folder.refused(&[&[name], arguments].concat())
    };
    let told = refused("a.csv", b"id,content", &[]);
    assert!(told.contains("no field \"text\"; there are \"id\", \"content\": use --text-field"), "{told}");
    assert!(refused("b.csv", b"text,text", &[]).contains("it has the column \"text\" twice"));
    assert!(refused("c.csv", b"id,t\xFFxt", &[]).contains("it is not valid UTF-8"));
    assert!(refused("d.csv", b"id,\"text", &[]).contains("it has a quote that is not closed"));
    assert!(refused("e.csv", &b",".repeat(10_000), &[]).contains("it has 10001 columns; the limit is 10000"));
    assert!(refused("f.csv", b"\xFF\xFEi\0d\0", &[]).contains("this is UTF-16"));
    let run = folder.run(&["import", "--server", "http://127.0.0.1:1", "a.csv", "--text-field", "content"]);
    assert!(!text(&run.stderr).contains("a.csv"), "the header has an id and a text: {run:?}");
    let run = folder.run(&["import", "--server", "http://127.0.0.1:1", "a.csv", "--id-field", "key"]);
    assert!(text(&run.stderr).contains("no field \"key\"; there are \"id\", \"content\": use --id-field"), "{run:?}");
}

#[test]
fn records_that_are_no_rows_are_named_and_the_rest_is_read() {
    let folder = Folder::new();
    let long = "x\n".repeat(9 << 20);
    let parts: [&[u8]; 8] = [
        b"id,text\n",
        b"1,one two three four five six\n",
        b"2\n",
        b"3,a,b\n",
        b"4,caf\xE9\n",
        &[b"5,\"", long.as_bytes(), b"\"\n"].concat(),
        b"6,six seven eight nine ten eleven\n",
        b"7,\"open\n8,x\n",
    ];
    let at = |number: usize| parts[..number].iter().map(|part| part.len()).sum::<usize>();
    for name in ["in.csv", "in.csv.gz"] {
        let whole = parts.concat();
        folder.write(name, if name.ends_with("gz") { gzip(&whole) } else { whole });
        let run = folder.run(&["dedup", name, "-o", "out", "--report", "report"]);
        assert_eq!((code(&run), row(&run, "kept"), row(&run, "failed")), (1, 2, 5), "{run:?}");
        let told: Vec<_> = folder
            .lines("report")
            .iter()
            .map(|line| (line["record"].clone(), line["offset"].clone(), line["error"]["code"].clone()))
            .collect();
        let expected =
            [(2, "malformed_csv"), (3, "malformed_csv"), (4, "not_utf8"), (5, "too_large"), (7, "malformed_csv")];
        assert_eq!(told, expected.map(|(number, code)| (json!(number), json!(at(number)), json!(code))));
        for said in [
            &format!("{name}, record 2 at byte {}: the number of its fields is 1; the header has 2", at(2)),
            "the number of its fields is 3; the header has 2",
            "not valid UTF-8 (byte 6 of the record)",
            "the record has 18874372 bytes; the limit is 16777216",
            "a quote is not closed before the end of the file",
        ] {
            assert!(text(&run.stderr).contains(said), "{said}: {run:?}");
        }
    }
    // A damaged file is used up to the damage.
    let whole =
        gzip(format!("id,text\n{}", (0..9000).map(|n| format!("{n},{}\n", words(n))).collect::<String>()).as_bytes());
    folder.write("cut.csv.gz", &whole[..whole.len() / 2]);
    let told = folder.refused(&["cut.csv.gz"]);
    assert!(
        told.contains("cannot read cut.csv.gz: ") && told.contains(", in record ") && told.contains(" at byte "),
        "{told}"
    );
}

#[test]
fn each_file_of_a_folder_of_texts_is_a_document() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("texts/deep")).unwrap();
    folder.write("texts/a.txt", words(1));
    folder.write("texts/b.md", format!("\u{FEFF}{}", words(2)));
    folder.write("texts/c.txt.gz", gzip(words(1).as_bytes()));
    folder.write("texts/deep/d.html", format!("<title>D</title><p>{}</p>", words(3)));
    // It looks like other formats, but its name decides.
    folder.write("texts/e.text", format!("{{\"text\":\"x\"}}\n{}", words(4)));
    let kept = folder.dedup(&["texts"]);
    let kept: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<_> = kept.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["texts/a.txt", "texts/b.md", "texts/deep/d.html", "texts/e.text"]);
    assert_eq!(kept[1], json!({"id": "texts/b.md", "text": words(2)}));
    assert!(kept[2]["html"].as_str().unwrap().starts_with("<title>D</title>"));
    let report = folder.lines("report");
    assert_eq!(
        (&report[0]["file"], &report[0]["id"], &report[0]["duplicate_of"], &report[0]["line"]),
        (&json!("texts/c.txt.gz"), &json!("texts/c.txt.gz"), &json!("texts/a.txt"), &Value::Null)
    );

    folder.write("texts/f.txt", vec![b'a'; (16 << 20) + 1]);
    folder.write("texts/g.txt", b"caf\xE9");
    folder.write("texts/h.txt", words(5));
    let run = folder.run(&["dedup", "texts", "-o", "out"]);
    assert_eq!((code(&run), row(&run, "kept"), row(&run, "failed")), (1, 5, 2), "{run:?}");
    for said in [
        "texts/f.txt: the file has 16777217 bytes; the limit of a text is 16777216",
        "texts/g.txt: not valid UTF-8 at byte 3",
    ] {
        assert!(text(&run.stderr).contains(said), "{said}: {run:?}");
    }
}

/// A server, and a folder beside its data.
fn served() -> (Folder, Server, Client) {
    let folder = Folder::new();
    let server = Server::start(&folder.path("data"));
    let client = Client::new(server.url(""));
    (folder, server, client)
}

fn stored(client: &Client, id: &str) -> Value {
    client.get(&format!("/v1/collections/default/documents?id={id}")).ok()
}

#[test]
fn rows_and_texts_are_stored_with_their_fields() {
    let (folder, server, client) = served();
    let url = server.url("");
    let table = format!(
        "key;page;body;site;year;metadata;labels\n1;<p>{};;a.example;2026;\"{{\"\"n\"\": [1,\n2]}}\";\n\
         2;;{};;;;\"{{\"\"crawl\"\": \"\"x\"\"}}\"\n3;;{};b.example;;none;\n",
        words(1),
        words(2),
        words(3)
    );
    folder.write("pages.csv", table);
    folder.write("a.txt", words(4));
    let fields = ["--id-field", "key", "--text-field", "body", "--html-field", "page"];
    let labels = ["--label-field", "site", "--label-field", "of=year"];
    let options = ["import", "--server", &url, "--verdicts", "verdicts", "pages.csv", "a.txt"];
    let run = folder.run(&[&options[..], &fields, &labels].concat());
    assert_eq!((code(&run), row(&run, "unique"), row(&run, "failed")), (1, 3, 1), "{run:?}");
    let [one, two, four] = ["1", "2", "a.txt"].map(|id| stored(&client, id));
    assert_eq!(
        (&one["metadata"], &one["labels"]),
        (&json!({"n": [1, 2]}), &json!({"site": "a.example", "of": "2026"}))
    );
    assert_eq!((&two["labels"], &four["id"]), (&json!({"crawl": "x"}), &json!("a.txt")));
    let verdicts = folder.lines("verdicts");
    assert_eq!((&verdicts[2]["record"], &verdicts[2]["error"]["code"]), (&json!(3), &json!("invalid_value")));
    assert_eq!((&verdicts[3]["file"], &verdicts[3]["id"]), (&json!("a.txt"), &json!("a.txt")));
    // `check` finds the stored documents, except one with the same id.
    let check = |name: &str, arguments: &[&str]| folder.run(&[&["check", "--server", &url, name], arguments].concat());
    assert_eq!(code(&check("a.txt", &[])), 0);
    folder.write("b.txt", words(4));
    let found = check("b.txt", &[]);
    assert!(code(&found) == 1 && text(&found.stdout).contains("\"duplicate_of\":\"a.txt\""), "{found:?}");
    assert!(serde_json::from_slice::<Value>(&found.stdout).unwrap()["line"].is_null());
}

#[test]
fn kept_rows_of_an_import_follow_the_header() {
    let (folder, server, _) = served();
    let url = server.url("");
    folder.write("in.csv", table(',', "\r\n"));
    folder.write("lines.jsonl", json!({"url": "x", "body": words(9)}).to_string());
    let import = ["import", "--server", &url, "--connections", "1", "--kept", "kept.csv", "in.csv"];
    let run = folder.run(&with_fields(&import));
    assert_eq!((code(&run), row(&run, "unique"), row(&run, "exact")), (0, 3, 2), "{run:?}");
    let whole = folder.read("in.csv");
    assert_eq!(folder.read("kept.csv"), whole[..whole.find("u3").unwrap()]);
    let run = folder.run(&with_fields(&[&import[..], &["lines.jsonl"]].concat()));
    assert!(code(&run) == 2 && text(&run.stderr).contains("lines.jsonl: this is not CSV, but in.csv is"), "{run:?}");
}

#[test]
fn labels_come_from_fields_of_lines() {
    let (folder, server, client) = served();
    let url = server.url("");
    let lines = [
        json!({"id": "1", "text": words(1), "site": "a", "year": 2026, "tags": ["x"], "labels": {"own": "y"}}),
        json!({"id": "2", "text": words(2), "site": null}),
        json!({"id": "3", "text": words(3), "tags": ["x", "y"]}),
        json!({"id": "4", "text": words(4), "site": "a", "labels": {"site": "b"}}),
        json!({"id": "5", "text": words(5), "site": true}),
    ];
    folder.write("in.jsonl", lines.map(|line| line.to_string()).join("\n"));
    let labels = ["--label-field", "site", "--label-field", "year", "--label-field", "tags"];
    let run = folder.run(&[&["import", "--server", &url, "in.jsonl"], &labels[..]].concat());
    assert_eq!((code(&run), row(&run, "unique"), row(&run, "failed")), (1, 2, 3), "{run:?}");
    assert_eq!(stored(&client, "1")["labels"], json!({"own": "y", "site": "a", "year": "2026", "tags": "x"}));
    assert!(stored(&client, "2")["labels"].is_null());
    for said in [
        ": tags: a label is a string, a number or a list of one string",
        ": site: its label site is also in the field labels",
        ": site: a label is",
    ] {
        assert!(text(&run.stderr).contains(said), "{said}: {run:?}");
    }
    for (wrong, why) in [("Site", "write LABEL=FIELD"), ("site=", "must be FIELD or LABEL=FIELD")] {
        let run = folder.run(&["import", "--label-field", wrong, "in.jsonl"]);
        assert!(code(&run) == 2 && text(&run.stderr).contains(why), "{run:?}");
    }
}

#[test]
fn a_document_without_an_id_gets_one_from_its_place() {
    let (folder, server, client) = served();
    let url = server.url("");
    folder.write("in.jsonl", [1, 2].map(|n| json!({"text": words(n)}).to_string()).join("\n\n"));
    folder.write("in.csv", format!("id,text\n,{}\nown,{}\n", words(3), words(4)));
    let refused = folder.run(&["import", "--server", &url, "in.jsonl"]);
    assert!(code(&refused) == 2 && text(&refused.stderr).contains("no field \"id\""), "{refused:?}");
    let run = folder.run(&["import", "--server", &url, "--made-ids", "in.jsonl", "in.csv"]);
    assert_eq!((code(&run), row(&run, "unique")), (0, 4), "{run:?}");
    for id in ["in.jsonl:1", "in.jsonl:3", "in.csv:1", "own"] {
        assert_eq!(stored(&client, id)["id"], id);
    }
    // With the same rule, a document does not count as its own duplicate.
    let own = |arguments: &[&str]| code(&folder.run(&[&["check", "--server", &url, "in.jsonl"], arguments].concat()));
    assert_eq!((own(&["--made-ids"]), own(&[])), (0, 1));
    assert_eq!(client.get("/v1/collections/default").ok()["documents"], 4);
    folder.write("twice.jsonl", [1, 1].map(|n| json!({"text": words(n)}).to_string()).join("\n"));
    folder.dedup(&["twice.jsonl"]);
    assert_eq!(folder.lines("report")[0]["id"], "twice.jsonl:2");
}

/// Passes `count` blocks to the stdin of `hapax dedup`, which may use only this much memory.
fn dedup_within(kilobytes: u64, name: &Path, before: &str, block: &[u8], count: usize) -> Output {
    let limit = format!("ulimit -v {kilobytes} && exec \"$@\"");
    let arguments = ["dedup", "-", "-o", path(name)];
    let mut child = by(&["sh", "-c", &limit, "sh"], &arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(before.as_bytes()).unwrap();
    for _ in 0..count {
        stdin.write_all(block).unwrap();
    }
    stdin.write_all(b"\n").unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

#[test]
fn a_record_of_any_length_takes_little_memory() {
    let folder = Folder::new();
    let block = vec![b'x'; 1 << 20];
    let out = folder.path("out");
    let line = json!({"text": words(1)}).to_string();
    for (before, said) in [
        (format!("{line}\n{{\"text\":\""), "-:2 at byte 131: the line has "),
        (format!("id,text\n1,{}\n2,\"", words(1)), "-, record 2 at byte "),
    ] {
        // More than the memory that it may use.
        let run = dedup_within(600_000, &out, &before, &block, 800);
        assert_eq!((code(&run), row(&run, "kept"), row(&run, "failed")), (1, 1, 1), "{run:?}");
        assert!(text(&run.stderr).contains(said), "{run:?}");
    }
}
