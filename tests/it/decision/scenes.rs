//! A combination -> the requests that set it up, and their contents.
//!
//! Contents are steps on a line. A content is similar only to its neighbours on this line: step 0 is similar to steps
//! -1 and 1, but not to 2. Each combination has two lines: one for the documents to find and one for the content that
//! its id holds. Nothing is random: a content is a function of its line and step.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64 as xxh3;

use super::combinations::Combination;

/// The number of words of a text, and the number of words that one step replaces. Two neighbours have 20 shingles each,
/// of which 16 are equal.
const WORDS: i64 = 24;
const WORDS_A_STEP: i64 = 4;
/// The number of slots of a signature, and the number of its parts. Each step changes one part. Neighbours have at
/// least 54 of 64 slots in common, and a match needs 52. Contents that are two steps apart have at most 46 in common,
/// except by chance.
const SLOTS: usize = 64;
const PARTS: i64 = 7;
/// A step far from all other steps that are used.
const ORIGIN: i64 = 1000;

/// Returns the settings of a collection of texts or of signatures, in which neighbours are always found.
pub fn settings(content: &str, touch: &str) -> Value {
    // The ttl is so long that no last-seen time is written to disk during the test.
    let (ttl, touch) = (1e8, touch == "on");
    match content {
        "text" => {
            json!({"threshold": 0.55, "banding": {"bands": 64, "rows": 4}, "ttl": ttl, "touch": touch})
        }
        _ => json!({
            "spec": "external:decision:64x8", "threshold": 0.8, "banding": {"bands": 32, "rows": 2}, "ttl": ttl,
            "touch": touch,
        }),
    }
}

/// The content of a document.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    Empty,
    Found { step: i64 },
    Held { step: i64 },
}

/// A step in setting up a combination.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Insert { role: &'static str, content: Content, on_duplicate: &'static str },
    Delete { role: &'static str },
}

/// The setup of a combination.
#[derive(Debug)]
pub struct Scene {
    pub steps: Vec<Step>,
    /// The content that is sent; `None` for a delete.
    pub sent: Option<Content>,
    /// The content that the id held before.
    pub held: Option<Content>,
    /// A content that is similar to the heir, but to no other document stored before.
    pub like_heir: Option<Content>,
}

/// The document whose id is sent. The other constants name documents that only some combinations have.
pub const SELF: &str = "self";
/// The representative that is found.
const REPRESENTATIVE: &str = "rep";
/// A document of the cluster of `REPRESENTATIVE`.
const MEMBER: &str = "member";
/// A link to `REPRESENTATIVE`.
const LINK: &str = "link";
/// The document that the held link points to.
const HOST: &str = "host";
/// A link to the document that the id holds.
pub const HEIR: &str = "heir";
/// The founder of a cluster. The setup deletes it again.
const FOUNDER: &str = "founder";
const ROLES: [&str; 7] = [SELF, REPRESENTATIVE, MEMBER, LINK, HOST, HEIR, FOUNDER];

/// Returns the role that has this name.
pub fn role(name: &str) -> &'static str {
    ROLES.into_iter().find(|role| *role == name).expect("a role")
}

fn plain(role: &'static str, content: Content) -> Step {
    Step::Insert { role, content, on_duplicate: "skip" }
}

fn linked(role: &'static str, content: Content) -> Step {
    Step::Insert { role, content, on_duplicate: "link" }
}

fn stored(role: &'static str, content: Content) -> Step {
    Step::Insert { role, content, on_duplicate: "store" }
}

fn found(step: i64) -> Content {
    Content::Found { step }
}

fn held(step: i64) -> Content {
    Content::Held { step }
}

impl Scene {
    pub fn new(combination: &Combination) -> Self {
        let mut scene = Self { steps: to_find(combination), sent: None, held: None, like_heir: None };
        scene.sent = match (combination.op, combination.verdict) {
            ("delete", _) => None,
            (_, "empty") => Some(Content::Empty),
            _ => Some(found(0)),
        };
        if combination.best == "heir" {
            // `to_find` has already set up these documents.
            (scene.held, scene.like_heir) = (Some(found(1)), Some(found(-1)));
            return scene;
        }
        let steps = match combination.held {
            "nothing" => return scene,
            "same_document" => vec![stored(SELF, found(0))],
            "same_link" => vec![linked(SELF, found(0))],
            "same_rep" => vec![stored(SELF, found(0)), linked(HEIR, found(-1))],
            "other_document" => vec![plain(SELF, held(0))],
            "other_link" => vec![plain(HOST, held(1)), linked(SELF, held(0))],
            "other_rep" => vec![plain(SELF, held(0)), linked(HEIR, held(1))],
            other => unreachable!("{other}"),
        };
        scene.steps.extend(steps);
        scene.held = Some(if combination.holds_same() { found(0) } else { held(0) });
        scene.like_heir = match combination.held {
            "same_rep" => Some(found(-2)),
            "other_rep" => Some(held(2)),
            _ => None,
        };
        scene
    }

    /// Returns the documents that may exist before or afterwards.
    pub fn roles(&self) -> BTreeSet<&'static str> {
        let of = |step: &Step| match *step {
            Step::Insert { role, .. } | Step::Delete { role } => role,
        };
        self.steps.iter().map(of).chain([SELF]).collect()
    }
}

/// Sets up the documents that a lookup of step 0 finds.
fn to_find(combination: &Combination) -> Vec<Step> {
    match (combination.verdict, combination.representative, combination.best) {
        ("near", "found", "document") => vec![plain(REPRESENTATIVE, found(1))],
        ("near", "none", "document") => vec![plain(REPRESENTATIVE, found(2)), stored(MEMBER, found(1))],
        ("exact", "found", "document") => vec![plain(REPRESENTATIVE, found(0))],
        // The cluster of the document is represented by another member, which is not similar to the document.
        ("exact", "none", "document") => vec![
            plain(FOUNDER, found(1)),
            stored(REPRESENTATIVE, found(2)),
            stored(MEMBER, found(0)),
            Step::Delete { role: FOUNDER },
        ],
        ("exact", "found", "link") => vec![plain(REPRESENTATIVE, found(1)), linked(LINK, found(0))],
        ("exact", "found", "heir") => vec![plain(SELF, found(1)), linked(HEIR, found(0))],
        _ => Vec::new(),
    }
}

impl Content {
    /// Returns the fields of a document in the collection of a combination with this number.
    pub fn fields(self, number: usize, combination: &Combination) -> Value {
        let (line, step) = match self {
            Self::Empty => return json!({"text": "?!"}),
            Self::Found { step } => (2 * number, ORIGIN + step),
            Self::Held { step } => (2 * number + 1, ORIGIN + step),
        };
        match combination.content {
            "text" => json!({"text": text(line, step)}),
            _ => json!({"signature": STANDARD.encode(signature(line, step))}),
        }
    }
}

fn text(line: usize, step: i64) -> String {
    let first = step * WORDS_A_STEP;
    (first..first + WORDS).map(|word| format!("w{line}x{word}")).collect::<Vec<_>>().join(" ")
}

fn signature(line: usize, step: i64) -> [u8; SLOTS] {
    std::array::from_fn(|slot| {
        let version = (step - slot as i64 % PARTS).div_euclid(PARTS);
        let mixed = xxh3(&[line as u64, slot as u64, version as u64].map(u64::to_le_bytes).concat());
        mixed as u8
    })
}
