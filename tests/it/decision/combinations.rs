//! All combinations of the facts that a decision depends on, and those that cannot occur.

/// The facts that an insert depends on: axes and their values.
const INSERT: [(&str, &[&str]); COLUMNS] = [
    ("op", &["insert"]),
    ("content", &["text", "signature"]),
    // The verdict on the content that is sent. If the id already holds this content, it is the verdict of its first
    // insertion.
    ("verdict", &["unique", "near", "exact", "empty"]),
    // Whether there is a representative to join after the held content is removed.
    ("representative", &["none", "found"]),
    // The best match. An heir is a link that represents its cluster after the held content is removed.
    ("best", &["none", "document", "link", "heir"]),
    // The content that the id holds. If this document is a representative, it has a link, which is next in the cluster.
    ("held", &["nothing", "same_document", "same_link", "same_rep", "other_document", "other_link", "other_rep"]),
    // The metadata that is sent, compared with the held one.
    ("metadata", &["absent", "equal", "other"]),
    ("on_duplicate", &["skip", "link", "store"]),
    ("on_existing", &["conflict", "replace", "keep"]),
    ("room", &["yes", "no"]),
    ("touch", &["off", "on"]),
];

/// The facts that a delete depends on.
const DELETE: [(&str, &[&str]); COLUMNS] = [
    ("op", &["delete"]),
    ("content", &["text", "signature"]),
    ("verdict", &["-"]),
    ("representative", &["-"]),
    ("best", &["-"]),
    ("held", &["nothing", "other_document", "other_link", "other_rep"]),
    ("metadata", &["-"]),
    ("on_duplicate", &["-"]),
    ("on_existing", &["-"]),
    ("room", &["yes", "no"]),
    ("touch", &["off", "on"]),
];

pub const COLUMNS: usize = 11;

/// One value of each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    pub op: &'static str,
    pub content: &'static str,
    pub verdict: &'static str,
    pub representative: &'static str,
    pub best: &'static str,
    pub held: &'static str,
    pub metadata: &'static str,
    pub on_duplicate: &'static str,
    pub on_existing: &'static str,
    pub room: &'static str,
    pub touch: &'static str,
}

/// Returns the names of the axes.
pub fn columns() -> [&'static str; COLUMNS] {
    INSERT.map(|(name, _)| name)
}

/// Returns every combination, possible or not.
pub fn all() -> Vec<Combination> {
    [INSERT, DELETE].iter().flat_map(product).map(Combination::new).collect()
}

fn product(axes: &[(&'static str, &[&'static str]); COLUMNS]) -> Vec<[&'static str; COLUMNS]> {
    axes.iter().enumerate().fold(vec![[""; COLUMNS]], |begun, (at, (_, values))| {
        let with = |begun: [&'static str; COLUMNS]| {
            values.iter().map(move |value| {
                let mut next = begun;
                next[at] = value;
                next
            })
        };
        begun.into_iter().flat_map(with).collect()
    })
}

impl Combination {
    fn new(values: [&'static str; COLUMNS]) -> Self {
        let [op, content, verdict, representative, best, held, metadata, on_duplicate, on_existing, room, touch] =
            values;
        Self { op, content, verdict, representative, best, held, metadata, on_duplicate, on_existing, room, touch }
    }

    /// Returns the beginning of the combination's line in the table.
    pub fn key(&self) -> String {
        [
            self.op,
            self.content,
            self.verdict,
            self.representative,
            self.best,
            self.held,
            self.metadata,
            self.on_duplicate,
            self.on_existing,
            self.room,
            self.touch,
        ]
        .join("\t")
    }

    pub fn is_duplicate(&self) -> bool {
        matches!(self.verdict, "near" | "exact")
    }

    /// Whether the id holds the content that is sent.
    pub fn holds_same(&self) -> bool {
        self.held.starts_with("same_")
    }

    /// Returns the reason why the combination cannot occur, in the words of `IMPOSSIBLE`; `None` if it can.
    pub fn impossible(&self) -> Option<&'static str> {
        IMPOSSIBLE.iter().find(|(_, is_so)| is_so(self)).map(|(why, _)| *why)
    }
}

type Rule = (&'static str, fn(&Combination) -> bool);

/// The reasons why a combination cannot occur. The first that applies counts.
pub const IMPOSSIBLE: [Rule; 13] = [
    ("if nothing is like it, there is no match and nothing to join", |c| {
        matches!(c.verdict, "unique" | "empty") && (c.representative, c.best) != ("none", "none")
    }),
    ("a duplicate has a best match", |c| c.is_duplicate() && c.best == "none"),
    ("a link is found by its content alone, so it is an exact duplicate", |c| {
        c.verdict == "near" && matches!(c.best, "link" | "heir")
    }),
    ("a link is in a cluster, and every cluster has a representative", |c| {
        matches!(c.best, "link" | "heir") && c.representative == "none"
    }),
    ("a signature has no content hash to be equal by", |c| c.content == "signature" && c.verdict == "exact"),
    ("a signature is never empty", |c| c.content == "signature" && c.verdict == "empty"),
    ("an empty document is never stored, so no id holds it", |c| c.holds_same() && c.verdict == "empty"),
    ("metadata cannot equal that of nothing", |c| c.held == "nothing" && c.metadata == "equal"),
    ("nothing leaves if the id holds the same content, so no link becomes an heir", |c| {
        c.holds_same() && c.best == "heir"
    }),
    ("only a document that represents a link has an heir", |c| c.best == "heir" && c.held != "other_rep"),
    ("a link was stored as a duplicate", |c| c.held == "same_link" && c.verdict == "unique"),
    ("a link has joined a representative", |c| c.held == "same_link" && c.representative == "none"),
    ("a representative has joined no other", |c| c.held == "same_rep" && c.representative == "found"),
];
