//! Random requests for two servers that must answer alike.

use rand::seq::IndexedRandom as _;
use rand::{Rng, RngExt as _};
use serde_json::{Value, json};

use crate::support::client::{CHECK, Client, DOCUMENTS, encode};

const GROUPS: u64 = 40;
const WORDS: u64 = 120;
const DEFAULT: &str = "/v1/collections/default";
const OTHER: &str = "/v1/collections/other";

/// A request. Lines of bulk and plain texts are strings.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: &'static str,
    pub target: String,
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

impl Request {
    fn json(method: &'static str, target: String, body: &Value) -> Self {
        Self { method, target, content_type: "application/json", body: body.to_string().into_bytes() }
    }

    fn bare(method: &'static str, target: String) -> Self {
        Self { method, target, content_type: "application/json", body: Vec::new() }
    }

    /// Describes the request for people.
    pub fn told(&self) -> String {
        let body = String::from_utf8_lossy(&self.body);
        let short: String = body.chars().take(2000).collect();
        format!("{} {} {short}", self.method, self.target)
    }
}

/// Makes requests. It remembers contents, to send them again.
pub struct Operations<R> {
    random: R,
    ids: Vec<String>,
    /// Documents without ids.
    contents: Vec<Value>,
    /// Documents with ids.
    documents: Vec<Value>,
    /// Whether documents may be stored beside their duplicates.
    beside: bool,
    /// Signs texts.
    signer: Client,
}

impl<R: Rng> Operations<R> {
    pub fn new(random: R, signer: Client) -> Self {
        Self { random, ids: ids(), contents: Vec::new(), documents: Vec::new(), beside: false, signer }
    }

    pub fn next(&mut self) -> Request {
        match self.random.random_range(0..100) {
            0..28 => self.check(),
            28..60 => self.insert(),
            60..72 => Request::bare("DELETE", format!("{DOCUMENTS}?id={}", encode(&self.id()))),
            72..79 => Request::bare("GET", format!("{DOCUMENTS}?id={}", encode(&self.id()))),
            79..83 => self.several_ids(),
            83..87 => self.text(),
            87..93 => self.batch(),
            93..97 => self.bulk(),
            97 => self.change(),
            _ => self.other_collection(),
        }
    }

    fn check(&mut self) -> Request {
        let (query, mut document) = (self.check_query(), self.content());
        if self.random.random() {
            document["id"] = json!(self.id());
        }
        // A check takes no metadata.
        document.as_object_mut().expect("a document").remove("metadata");
        Request::json("POST", format!("{CHECK}?{query}"), &document)
    }

    fn insert(&mut self) -> Request {
        let (query, document) = (self.insert_query(), self.document());
        Request::json("POST", format!("{DOCUMENTS}?{query}"), &document)
    }

    /// From now on, documents may be stored beside their duplicates. A disk also compares with the representative of a
    /// match, even if it shares no band. Where the threshold is 0.9, duplicates always share one.
    pub fn begin_beside(&mut self) -> Request {
        self.beside = true;
        Self::threshold(0.9)
    }

    fn change(&mut self) -> Request {
        if self.random.random_range(0..3) == 0 {
            // No document expires, but each is seen.
            let ttl = [0, 1_000_000, 2_000_000].choose(&mut self.random).expect("times");
            return Request::json("PATCH", DEFAULT.to_owned(), &json!({"ttl": ttl}));
        }
        let choices = if self.beside { [0.9, 0.9, 0.95] } else { [0.6, 0.8, 0.95] };
        Self::threshold(*choices.choose(&mut self.random).expect("thresholds"))
    }

    /// Changes the threshold. The banding stays, because it cannot be changed in a cluster.
    fn threshold(threshold: f64) -> Request {
        Request::json("PATCH", DEFAULT.to_owned(), &json!({"threshold": threshold, "banding_by_hand": true}))
    }

    /// Creates, uses or drops another collection.
    fn other_collection(&mut self) -> Request {
        let documents = format!("{OTHER}/documents");
        match self.random.random_range(0..8) {
            0 => Request::json("PUT", OTHER.to_owned(), &json!({"threshold": 0.8})),
            1 => Request::json("PUT", OTHER.to_owned(), &json!({"threshold": 0.7, "banding_by_hand": true})),
            2 => Request::bare("DELETE", format!("{OTHER}?confirm=other")),
            3 => Request::bare("GET", OTHER.to_owned()),
            4 => Request::bare("GET", format!("{documents}?id={}", encode(&self.id()))),
            _ => Request::json("POST", documents, &self.document()),
        }
    }

    fn several_ids(&mut self) -> Request {
        let ids: Vec<_> = (0..self.random.random_range(1..8)).map(|_| self.id()).collect();
        let what = if self.random.random_range(0..3) == 0 { "delete" } else { "get" };
        Request::json("POST", format!("{DOCUMENTS}/{what}"), &json!({"ids": ids}))
    }

    /// Inserts or checks a plain text.
    fn text(&mut self) -> Request {
        // Texts of their own, because a plain text has no metadata.
        let group = GROUPS + self.random.random_range(0..5);
        let text = self.words(group);
        let target = match self.random.random() {
            true => format!("{DOCUMENTS}?id={}", encode(&self.id())),
            false => CHECK.to_owned(),
        };
        Request { method: "POST", target, content_type: "text/plain", body: text.into_bytes() }
    }

    fn batch(&mut self) -> Request {
        let (op, query, documents) = self.many();
        let target = format!("/v1/collections/default/batch?{query}");
        Request::json("POST", target, &json!({"op": op, "documents": documents}))
    }

    fn bulk(&mut self) -> Request {
        let (op, query, documents) = self.many();
        let lines: String = documents.iter().map(|document| format!("{document}\n")).collect();
        Request {
            method: "POST",
            target: format!("/v1/collections/default/bulk?op={op}&{query}"),
            content_type: "application/x-ndjson",
            body: lines.into_bytes(),
        }
    }

    fn many(&mut self) -> (&'static str, String, Vec<Value>) {
        let count = self.random.random_range(1..8);
        match self.random.random_range(0..4) {
            0 => {
                let mut documents: Vec<_> = (0..count).map(|_| self.content()).collect();
                for document in documents.iter_mut().filter_map(Value::as_object_mut) {
                    document.remove("metadata");
                }
                ("check", self.check_query(), documents)
            }
            1 => ("delete", String::new(), (0..count).map(|_| json!({"id": self.id()})).collect()),
            _ => ("insert", self.insert_query(), (0..count).map(|_| self.document()).collect()),
        }
    }

    fn check_query(&mut self) -> String {
        let threshold = match self.random.random_range(0..5) {
            0 => "&threshold=0.5",
            1 => "&threshold=0.9",
            2 => "&threshold=1",
            _ => "",
        };
        format!("{}{threshold}", self.query())
    }

    fn insert_query(&mut self) -> String {
        let on_duplicate = if self.beside && self.random.random_range(0..3) == 0 { "store" } else { "skip" };
        let on_existing = ["keep", "conflict", "replace"].choose(&mut self.random).expect("options");
        format!("{}&on_duplicate={on_duplicate}&on_existing={on_existing}", self.query())
    }

    fn query(&mut self) -> String {
        let limit = ["1", "2", "3", "10", "1000"].choose(&mut self.random).expect("limits");
        let with = if self.random.random() { "metadata" } else { "none" };
        format!("limit={limit}&with={with}")
    }

    fn id(&mut self) -> String {
        self.ids.choose(&mut self.random).expect("ids").clone()
    }

    fn document(&mut self) -> Value {
        if !self.documents.is_empty() && self.random.random_range(0..4) == 0 {
            // Those that were sent last are most likely to be stored still.
            let last = self.documents.len().saturating_sub(60);
            let mut again = self.documents[last..].choose(&mut self.random).expect("documents").clone();
            match self.random.random_range(0..4) {
                0 => again["metadata"] = json!({"again": self.random.random_range(0..3)}),
                1 => _ = again.as_object_mut().expect("a document").remove("metadata"),
                2 => again["metadata"] = json!({}),
                _ => {}
            }
            return again;
        }
        let mut document = self.content();
        document["id"] = json!(self.id());
        self.documents.push(document.clone());
        document
    }

    /// Returns a content that is new, or was sent before.
    fn content(&mut self) -> Value {
        if !self.contents.is_empty() && self.random.random_range(0..5) < 2 {
            return self.contents.choose(&mut self.random).expect("contents").clone();
        }
        let group = self.random.random_range(0..GROUPS);
        let mut content = match self.random.random_range(0..20) {
            0 => {
                let empty = *["", " \n", "\u{3000}"].choose(&mut self.random).expect("texts");
                json!({"text": empty})
            }
            1 => return json!({"text": format!("short {}", group % 4)}),
            2 | 3 => self.set(group),
            4 | 5 => self.signature(group),
            6 => json!({"html": format!("<title>x</title><p>{}</p>", self.words(group))}),
            7 => json!({"text": self.words(group).to_uppercase()}),
            _ => json!({"text": self.words(group)}),
        };
        match group % 4 {
            0 => {}
            1 => content["metadata"] = json!({}),
            _ => content["metadata"] = json!({"group": group, "name": "Größe"}),
        }
        self.contents.push(content.clone());
        content
    }

    /// Returns words of a group, of which up to a fifth are changed.
    fn words(&mut self, group: u64) -> String {
        let changes = [0, 0, 1, 2, 3, 5, 8, 24].choose(&mut self.random).copied().expect("numbers");
        let changed: Vec<u64> = (0..changes).map(|_| self.random.random_range(0..WORDS)).collect();
        let word = |at| if changed.contains(&at) { format!("c{group}x{at}") } else { format!("g{group}é{at}") };
        (0..WORDS).map(word).collect::<Vec<_>>().join(" ")
    }

    fn set(&mut self, group: u64) -> Value {
        let changes: u64 = self.random.random_range(0..8);
        let element = |at: u64| {
            let at = if at < changes { at + 1000 } else { at };
            if at % 2 == 0 { json!(format!("s{group}x{at}")) } else { json!(group * 10_000 + at) }
        };
        json!({"set": (0..60).map(element).collect::<Vec<_>>()})
    }

    /// Returns the signature of a text, alone or with what makes it count as the text.
    fn signature(&mut self, group: u64) -> Value {
        let text = self.words(group);
        let signed = self.signer.post("/v1/collections/default/sign", &json!({"text": text})).ok();
        let mut content = json!({"signature": signed["signature"], "fingerprint": signed["fingerprint"]});
        if self.random.random() {
            content["content_hash"] = signed["content_hash"].clone();
            content["shingles"] = signed["shingles"].clone();
        }
        content
    }
}

fn ids() -> Vec<String> {
    let mut ids: Vec<String> = (0..120).map(|number| format!("https://a.example/{number}?q=ü#{number}")).collect();
    let hostile =
        ["..", "/", "//", "a//b", "%2F", "%00", "a b", "?", "#", "&id=other", "\0", "\n", "{a}", "{", "é", "e\u{301}"];
    ids.extend(hostile.map(str::to_owned));
    ids.push("🦀".repeat(512));
    ids.push("x".repeat(2048));
    ids
}
