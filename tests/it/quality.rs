//! Answers are right on real text. Every corpus is streamed through a real server. All matches of each document are
//! requested and compared with the exact truth.
//!
//! The corpora are not part of the project: they are read from `HAPAX_CORPORA` or `../shared/given`. If neither exists,
//! these tests say so on stderr and pass. The small sets always run; `make quality` also runs the large ones.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::reference_tokens;
use crate::support::client::Client;
use crate::support::library::{self, Dir};
use crate::support::server::Server;

pub(crate) const THRESHOLD: f64 = 0.8;
const RECALL_AT_90: f64 = 0.99;
const RECALL_AT_85: f64 = 0.95;

/// The way in which matches are confirmed.
#[derive(Clone, Copy, PartialEq)]
enum Verified {
    Estimate,
    /// By the estimate, or by the shingles if the estimate is uncertain.
    Borderline,
    /// By exact comparison of the content that this value of `keep` stores.
    Exactly(&'static str),
}

impl Verified {
    /// A match whose exact similarity is below this is wrong.
    fn wrong_below(self) -> f64 {
        if self == Self::Estimate { THRESHOLD - 0.05 } else { THRESHOLD }
    }

    fn precision_min(self) -> f64 {
        match self {
            Self::Estimate => 0.95,
            // One in a thousand of the pairs just below the threshold may seem to be clearly above it.
            Self::Borderline => 0.998,
            Self::Exactly(_) => 1.0,
        }
    }
}

/// The source of the exact truth.
#[derive(Clone, Copy, PartialEq)]
enum Truth {
    /// The pairs file of the corpus.
    File,
    /// The join over the tokens of the reference tokeniser. Unlike hapax, the pairs files do not cut scripts without
    /// spaces, and do not keep marks.
    ReferenceTokens,
}

pub(crate) struct Document {
    pub(crate) id: String,
    pub(crate) text: String,
}

pub(crate) struct Pair {
    pub(crate) ids: (String, String),
    pub(crate) jaccard: f64,
}

/// A real server with its own folder, and a client of it.
pub(crate) struct Service {
    pub(crate) client: Client,
    _server: Server,
    _dir: Dir,
}

pub(crate) fn start() -> Service {
    let dir = library::dir();
    let server = Server::start(&dir.path().join("data"));
    Service { client: Client::new(server.url("")), _server: server, _dir: dir }
}

pub(crate) fn corpora() -> Option<PathBuf> {
    let dir = std::env::var_os("HAPAX_CORPORA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/given"), PathBuf::from);
    if dir.is_dir() {
        return Some(dir);
    }
    eprintln!("LEFT OUT: no corpora at {} (set HAPAX_CORPORA to their folder)", dir.display());
    None
}

pub(crate) fn read_zst(path: &Path) -> String {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8(zstd::decode_all(file).unwrap()).unwrap()
}

pub(crate) fn documents(path: &Path) -> Vec<Document> {
    let parse = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        Document { id: line["id"].as_str().unwrap().to_owned(), text: line["text"].as_str().unwrap().to_owned() }
    };
    read_zst(path).lines().map(parse).collect()
}

pub(crate) fn ordered(a: &str, b: &str) -> (String, String) {
    if a < b { (a.to_owned(), b.to_owned()) } else { (b.to_owned(), a.to_owned()) }
}

pub(crate) fn pairs(tsv: &str) -> Vec<Pair> {
    let parse = |line: &str| {
        let mut fields = line.split('\t');
        let ids = ordered(fields.next().unwrap(), fields.next().unwrap());
        Pair { ids, jaccard: fields.next().unwrap().parse().unwrap() }
    };
    tsv.lines().map(parse).collect()
}

/// Builds the exact join once, from its sources next to the corpora. It was written independently of hapax.
fn exactjoin(corpora: &Path) -> PathBuf {
    static BUILDING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = BUILDING.lock().unwrap();
    let source = corpora.join("../tools/exactjoin");
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exactjoin");
    std::fs::create_dir_all(work.join("src")).unwrap();
    for file in ["Cargo.toml", "src/main.rs"] {
        let text = std::fs::read_to_string(source.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        // The join needs its own workspace, because its folder is inside the target folder of another workspace.
        let text = if file == "Cargo.toml" { format!("{text}\n[workspace]\n") } else { text };
        std::fs::write(work.join(file), text).unwrap();
    }
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--target-dir", "target"])
        .current_dir(&work)
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .unwrap();
    assert!(built.success(), "exactjoin does not build");
    work.join("target/release/exactjoin")
}

fn joined_over_reference_tokens(corpora: &Path, documents: &[Document], mode: &str) -> Vec<Pair> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut input = String::new();
    for document in documents {
        let mut text = String::new();
        for token in reference_tokens::tokens(&document.text) {
            let next = numbers.len();
            write!(text, "t{} ", numbers.entry(token).or_insert(next)).unwrap();
        }
        writeln!(input, "{}", json!({ "id": document.id, "text": text })).unwrap();
    }
    let output = tempfile::NamedTempFile::new().unwrap();
    let mut join = Command::new(exactjoin(corpora))
        .args([mode, "0.5"])
        .arg(output.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    join.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    assert!(join.wait().unwrap().success());
    pairs(&std::fs::read_to_string(output.path()).unwrap())
}

/// Streams the documents through the server. Returns the matches of each document, in the order of the documents.
pub(crate) fn stream(service: &Service, collection: &str, documents: &[Document]) -> Vec<Vec<(String, f64)>> {
    let mut all = Vec::new();
    for part in documents.chunks(4000) {
        let mut body = String::new();
        for document in part {
            writeln!(body, "{}", json!({ "id": document.id, "text": document.text })).unwrap();
        }
        let path = format!("/v1/collections/{collection}/bulk?op=insert&on_duplicate=store&limit=1000");
        let headers = [("content-type", "application/x-ndjson")];
        let lines = service.client.send("POST", &path, &headers, body.as_bytes()).lines();
        assert_eq!(lines.len(), part.len() + 1, "an answer for each line and a summary");
        for (line, document) in lines.iter().zip(part) {
            assert_eq!(line["kind"], "verdict", "{line}");
            assert_eq!(line["id"], document.id.as_str());
            let matches = line["matches"].as_array().map_or(&[][..], Vec::as_slice);
            let found =
                |found: &Value| (found["id"].as_str().unwrap().to_owned(), found["similarity"].as_f64().unwrap());
            all.push(matches.iter().map(found).collect());
        }
    }
    all
}

/// Runs one corpus with one shingling, prints its figures and compares them with the limits.
fn judge_corpus(corpora: &Path, file: &str, mode: &str, truth: Truth) {
    judge_corpus_verified(corpora, file, mode, truth, Verified::Estimate);
}

/// Streams the documents into a collection of this shingling.
fn streamed(documents: &[Document], mode: &str, verified: Verified) -> Vec<Vec<(String, f64)>> {
    let shingle = match mode.split_at(1) {
        ("w", width) => format!("word{width}"),
        (_, width) => format!("char{width}"),
    };
    let service = start();
    let mut settings = json!({ "shingle": shingle, "threshold": THRESHOLD });
    match verified {
        Verified::Estimate => {}
        Verified::Borderline => settings["verify"] = json!("borderline"),
        Verified::Exactly(keep) => {
            settings["verify"] = json!("exact");
            settings["keep"] = json!(keep);
        }
    }
    let made = service.client.json("PUT", "/v1/collections/quality", &settings);
    assert_eq!(made.status, 201, "{}", made.text());
    stream(&service, "quality", documents)
}

fn judge_corpus_verified(corpora: &Path, file: &str, mode: &str, truth: Truth, verified: Verified) {
    let documents = documents(&corpora.join(format!("{file}.jsonl.zst")));
    let truth = match truth {
        Truth::File => pairs(&read_zst(&corpora.join(format!("{file}.{mode}.j50.tsv.zst")))),
        Truth::ReferenceTokens => joined_over_reference_tokens(corpora, &documents, mode),
    };
    let answers = streamed(&documents, mode, verified);

    let mut found: HashMap<(String, String), f64> = HashMap::new();
    let mut flagged: HashSet<&str> = HashSet::new();
    for (document, matches) in documents.iter().zip(&answers) {
        if !matches.is_empty() {
            flagged.insert(&document.id);
        }
        for (id, similarity) in matches {
            found.insert(ordered(&document.id, id), *similarity);
        }
    }
    let exact: HashMap<&(String, String), f64> = truth.iter().map(|pair| (&pair.ids, pair.jaccard)).collect();

    let pair_recall = |from: f64| {
        let at_least: Vec<&Pair> = truth.iter().filter(|pair| pair.jaccard >= from).collect();
        let hits = at_least.iter().filter(|pair| found.contains_key(&pair.ids)).count();
        (hits, at_least.len())
    };
    let verdict_recall = |from: f64| {
        let with_neighbour = later_ones(&documents, &truth, from);
        (with_neighbour.iter().filter(|id| flagged.contains(**id)).count(), with_neighbour.len())
    };
    // The truth has six decimals, and so have the answers.
    let wrong = found.keys().filter(|ids| exact.get(ids).copied().unwrap_or(0.0) < verified.wrong_below()).count();
    let errors: Vec<f64> = found.iter().filter_map(|(ids, similarity)| Some(similarity - exact.get(ids)?)).collect();
    let count = errors.len().max(1) as f64;
    let bias = errors.iter().sum::<f64>() / count;
    let rmse = (errors.iter().map(|error| error * error).sum::<f64>() / count).sqrt();
    let share = |(hits, of): (usize, usize)| if of == 0 { 1.0 } else { hits as f64 / of as f64 };
    let precision = 1.0 - wrong as f64 / found.len().max(1) as f64;

    let mut line = format!("{file:<32} {mode:<3} {:>6} docs", documents.len());
    for from in [0.9, 0.85, 0.8] {
        let (pairs, verdicts) = (pair_recall(from), verdict_recall(from));
        write!(line, " | J>={from}: pairs {:.4} of {:>5}, verdicts {:.4}", share(pairs), pairs.1, share(verdicts))
            .unwrap();
    }
    write!(line, " | precision {precision:.4} of {} | estimate bias {bias:+.4} rmse {rmse:.4}", found.len()).unwrap();
    println!("{line}");
    assert!(share(pair_recall(0.9)) >= RECALL_AT_90, "recall at J >= 0.9: {line}");
    assert!(share(pair_recall(0.85)) >= RECALL_AT_85, "recall at J >= 0.85: {line}");
    assert!(precision >= verified.precision_min(), "precision: {line}");
    if let Verified::Exactly(_) = verified {
        // The exact truth was computed without NFKC, so shingles with ligatures differ from those of hapax.
        let differ = errors.iter().filter(|error| error.abs() > 1.5e-6).count();
        assert!(differ * 100 <= errors.len() && rmse < 0.001, "{differ} similarities differ: {line}");
    }
    if verified != Verified::Estimate {
        // If too many documents are similar, some pairs are missed, but at least one similar document is found.
        assert!(share(pair_recall(THRESHOLD)) >= RECALL_AT_85, "recall at the threshold itself: {line}");
        assert!(share(verdict_recall(THRESHOLD)) >= RECALL_AT_90, "verdicts at the threshold itself: {line}");
    }
}

/// Returns the documents to which, by the truth, an earlier document has a similarity of at least `from`.
fn later_ones<'a>(documents: &'a [Document], truth: &[Pair], from: f64) -> HashSet<&'a str> {
    let place: HashMap<&str, usize> =
        documents.iter().enumerate().map(|(at, document)| (document.id.as_str(), at)).collect();
    let later = |pair: &Pair| place[pair.ids.0.as_str()].max(place[pair.ids.1.as_str()]);
    truth.iter().filter(|pair| pair.jaccard >= from).map(|pair| documents[later(pair)].id.as_str()).collect()
}

/// The author of the set inserted copies and listed them.
fn planted_pairs_are_found(corpora: &Path, file: &str) {
    let documents = documents(&corpora.join(format!("{file}.jsonl.zst")));
    let planted = std::fs::read_to_string(corpora.join(format!("{file}.author-truth.tsv"))).unwrap();
    let service = start();
    let answers = stream(&service, "default", &documents);
    let found: HashSet<(String, String)> = documents
        .iter()
        .zip(&answers)
        .flat_map(|(document, matches)| matches.iter().map(|(id, _)| ordered(&document.id, id)))
        .collect();
    for line in planted.lines() {
        let (a, b) = line.split_once(['\t', ' ']).unwrap();
        assert!(found.contains(&ordered(a, b)), "{file}: planted pair {a} {b} was not found among {found:?}");
    }
}

#[test]
fn every_planted_pair_is_found() {
    let Some(corpora) = corpora() else { return };
    planted_pairs_are_found(&corpora, "mccormick_100");
    planted_pairs_are_found(&corpora, "mccormick_1000");
}

#[test]
fn small_corpora_meet_the_bars() {
    let Some(corpora) = corpora() else { return };
    judge_corpus(&corpora, "mccormick_1000", "w3", Truth::File);
    judge_corpus(&corpora, "mccormick_1000", "c5", Truth::File);
    judge_corpus(&corpora, "licences", "w3", Truth::File);
    judge_corpus(&corpora, "chinese_poems", "c3", Truth::File);
    judge_corpus(&corpora, "tldr_cjk_and_others", "w3", Truth::ReferenceTokens);
}

/// With exact verification, every match is a true one.
#[test]
fn exact_matches_are_matches_by_the_truth() {
    let Some(corpora) = corpora() else { return };
    for keep in ["shingles", "text"] {
        let exactly = Verified::Exactly(keep);
        judge_corpus_verified(&corpora, "mccormick_1000", "w3", Truth::File, exactly);
        judge_corpus_verified(&corpora, "mccormick_1000", "c5", Truth::File, exactly);
        judge_corpus_verified(&corpora, "licences", "w3", Truth::File, exactly);
        judge_corpus_verified(&corpora, "chinese_poems", "c3", Truth::File, exactly);
        judge_corpus_verified(&corpora, "tldr_cjk_and_others", "w3", Truth::ReferenceTokens, exactly);
    }
}

/// With borderline verification, nearly every match is a true one, and the number of matches is that of exact
/// verification.
#[test]
fn borderline_matches_are_matches_by_the_truth() {
    let Some(corpora) = corpora() else { return };
    judge_corpus_verified(&corpora, "mccormick_1000", "w3", Truth::File, Verified::Borderline);
    judge_corpus_verified(&corpora, "mccormick_1000", "c5", Truth::File, Verified::Borderline);
    judge_corpus_verified(&corpora, "licences", "w3", Truth::File, Verified::Borderline);
    judge_corpus_verified(&corpora, "chinese_poems", "c3", Truth::File, Verified::Borderline);
    judge_corpus_verified(&corpora, "tldr_cjk_and_others", "w3", Truth::ReferenceTokens, Verified::Borderline);
}

#[test]
#[ignore = "minutes; `make quality` runs it"]
fn large_corpora_meet_the_bars() {
    let Some(corpora) = corpora() else { return };
    judge_corpus(&corpora, "licences", "c5", Truth::File);
    judge_corpus(&corpora, "chinese_poems", "c5", Truth::File);
    judge_corpus(&corpora, "django_docs_5_versions", "w3", Truth::File);
    judge_corpus(&corpora, "django_docs_5_versions", "c5", Truth::File);
    judge_corpus(&corpora, "boost_html_2_versions.text", "w3", Truth::File);
    judge_corpus(&corpora, "tldr_cjk_and_others", "c5", Truth::File);
}

/// Odd inputs: each gets a verdict or a clear error. A 500 or a hang never occurs.
#[test]
fn odd_inputs_get_a_verdict_or_a_clear_error() {
    let Some(corpora) = corpora() else { return };
    let service = start();
    let check = |name: &str, content_type: &str, encoding: Option<&str>, body: &[u8], query: &str| {
        let mut headers = vec![("content-type", content_type)];
        headers.extend(encoding.map(|encoding| ("content-encoding", encoding)));
        let path = format!("/v1/collections/default/check{query}");
        let answer = service.client.send("POST", &path, &headers, body);
        let (status, answer) = (answer.status, answer.json());
        match status {
            200 => assert!(answer["verdict"].is_string(), "{name}: {answer}"),
            400..500 => assert!(answer["code"].is_string() && answer["detail"].is_string(), "{name}: {answer}"),
            _ => panic!("{name}: {status} {answer}"),
        }
        (status, answer)
    };
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(corpora.join("adversarial/raw")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = std::fs::read(&path).unwrap();
        let bytes = if name.ends_with(".zst") { zstd::decode_all(&bytes[..]).unwrap() } else { bytes };
        let (status, answer) = if name.ends_with(".gz") {
            check(&name, "text/plain", Some("gzip"), &bytes, "")
        } else if name.ends_with(".html") {
            check(&name, "text/html", None, &bytes, "")
        } else {
            check(&name, "text/plain", None, &bytes, "")
        };
        let expected = match name.as_str() {
            "empty.txt" | "only_punctuation.txt" | "only_whitespace.txt" | "emoji.txt" => Some((200, "empty")),
            "bad_utf8.txt" | "latin1_french.txt" | "shift_jis.txt" | "image.png" | "random_64k.bin" => Some((422, "")),
            // The text is one token. It is read to its end, but is never completely in memory.
            "bomb_100MB_of_a.txt.gz" => Some((200, "unique")),
            _ if name.starts_with("udhr_") => Some((200, "unique")),
            _ => None,
        };
        if let Some((expected, verdict)) = expected {
            assert_eq!(status, expected, "{name}: {answer}");
            assert!(verdict.is_empty() || answer["verdict"] == verdict, "{name}: {answer}");
        }
        let (status, answer) = check(&name, "text/plain", None, &bytes, "?invalid=replace");
        assert!(status == 200 || status == 413, "{name}: {answer}");
    }
    bad_lines_are_answered_one_by_one(&corpora, &service);
    for document in documents(&corpora.join("adversarial/odd_docs.jsonl.zst")) {
        let body = json!({ "id": document.id, "text": document.text }).to_string();
        check(&document.id, "application/json", None, body.as_bytes(), "");
    }
}

fn bad_lines_are_answered_one_by_one(corpora: &Path, service: &Service) {
    for bad in ["bad_lines.jsonl", "naughty.jsonl"] {
        let bytes = std::fs::read(corpora.join("adversarial/raw").join(bad)).unwrap();
        let headers = [("content-type", "application/x-ndjson")];
        let lines = service.client.send("POST", "/v1/collections/default/bulk?op=insert", &headers, &bytes).lines();
        let summary = lines.last().unwrap();
        assert_eq!(summary["kind"], "summary", "{bad}: {summary}");
        for line in &lines[..lines.len() - 1] {
            match line["kind"].as_str() {
                Some("verdict") => assert!(line["verdict"].is_string(), "{bad}: {line}"),
                Some("error") => {
                    let status = line["error"]["status"].as_u64().unwrap();
                    assert!((400..500).contains(&status), "{bad}: {line}");
                }
                _ => panic!("{bad}: {line}"),
            }
        }
    }
}

/// Pairs of texts that are equal only after folding.
#[test]
fn forms_of_one_text_are_one_text() {
    let Some(corpora) = corpora() else { return };
    let service = start();
    for (stored, asked) in
        [("utf8_plain.txt", "utf8_bom_crlf.txt"), ("vie_nfc.txt", "vie_nfd.txt"), ("udhr_kor.txt", "kor_nfd.txt")]
    {
        let read = |name: &str| std::fs::read(corpora.join("adversarial/raw").join(name)).unwrap();
        let path = format!("/v1/collections/default/documents?id={stored}&on_duplicate=store");
        assert_eq!(service.client.text(&path, &read(stored)).status, 200);
        let answer = service.client.text("/v1/collections/default/check", &read(asked)).json();
        assert_eq!(answer["verdict"], "exact_duplicate", "{asked} against {stored}: {answer}");
        assert_eq!(answer["duplicate_of"], stored);
    }
}
