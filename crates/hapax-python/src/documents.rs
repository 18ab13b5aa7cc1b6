//! The documents of an index and their ids. Decides whether an insert stores a document. In: signatures. Out:
//! judgements that name documents by their ids.

use std::num::NonZeroU64;

use hashbrown::HashTable;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::near::{Compared, Doc, Found, Looked, Near};

/// The documents of an index.
pub(crate) struct Documents {
    pub(crate) near: Near,
    pub(crate) ids: Ids,
    stored: Vec<Stored>,
}

/// The data of a document that no lookup needs.
#[derive(Clone, Copy)]
pub(crate) struct Stored {
    /// The number of shingles; `None` if its text is not known.
    pub(crate) shingles: Option<NonZeroU64>,
    pub(crate) place: Place,
}

/// The place of a document in its cluster.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// The document is alone, or represents its cluster.
    Own,
    /// The document is a link to the representative: only exact copies match the link.
    Link(Doc),
    /// The document has a representative, but is found like any other document. Only files of a server have such
    /// documents.
    Member(Doc),
}

impl Place {
    pub(crate) fn representative(self) -> Option<Doc> {
        match self {
            Self::Own => None,
            Self::Link(doc) | Self::Member(doc) => Some(doc),
        }
    }
}

impl Documents {
    pub(crate) fn new(near: Near) -> Self {
        Self { near, ids: Ids::default(), stored: Vec::new() }
    }

    /// Looks a document up and stores it, unless it is a duplicate to skip.
    pub(crate) fn insert(
        &mut self,
        id: &str,
        query: &Query,
        on_duplicate: OnDuplicate,
        limit: usize,
    ) -> Result<Judged, Refused> {
        let compared = query.compared();
        if let Some(doc) = self.ids.find(id) {
            let stored = self.near.compared(doc);
            if stored.signature == compared.signature && stored.content == compared.content {
                let looked = self.near.look_up(compared);
                let others: Vec<_> = looked.found.into_iter().filter(|found| found.doc != doc).collect();
                let looked = Looked { found: others, ..looked };
                return Ok(Judged::of(&looked, &self.ids, "unchanged", limit));
            }
            return Err(Refused::Taken);
        }
        let looked = self.near.look_up(compared);
        let (outcome, place) = match (looked.found.first(), on_duplicate) {
            (None, _) | (_, OnDuplicate::Store) => ("inserted", Some(Place::Own)),
            (Some(best), OnDuplicate::Link) => ("linked", Some(Place::Link(self.representative(best.doc)))),
            (_, OnDuplicate::Skip) => ("skipped", None),
        };
        if let Some(place) = place
            && !self.store(id, compared, query.made.map(|(_, shingles)| shingles), place)
        {
            return Err(Refused::Full);
        }
        Ok(Judged::of(&looked, &self.ids, outcome, limit))
    }

    /// Stores a document with a new id. Returns whether there was room for it.
    pub(crate) fn store(&mut self, id: &str, compared: Compared<'_>, shingles: Option<u64>, place: Place) -> bool {
        if self.near.is_full() {
            return false;
        }
        self.near.insert(compared, matches!(place, Place::Link(_)));
        self.ids.push(id);
        self.stored.push(Stored { shingles: shingles.and_then(NonZeroU64::new), place });
        true
    }

    pub(crate) fn stored(&self, doc: Doc) -> Stored {
        self.stored[doc as usize]
    }

    /// Returns the document that represents the cluster of a document. A representative has no representative itself.
    fn representative(&self, doc: Doc) -> Doc {
        self.stored(doc).place.representative().unwrap_or(doc)
    }
}

/// The treatment of a duplicate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDuplicate {
    Skip,
    Link,
    Store,
}

impl OnDuplicate {
    pub(crate) fn named(name: &str) -> PyResult<Self> {
        match name {
            "skip" => Ok(Self::Skip),
            "link" => Ok(Self::Link),
            "store" => Ok(Self::Store),
            _ => Err(PyValueError::new_err(format!(
                "on_duplicate must be \"skip\", \"link\" or \"store\", not {name:?}"
            ))),
        }
    }
}

/// A text that will be looked up: its signature and, if they are known, its content hash and its number of shingles.
pub(crate) struct Query {
    pub(crate) signature: Box<[u8]>,
    pub(crate) made: Option<(u128, u64)>,
}

impl Query {
    pub(crate) fn compared(&self) -> Compared<'_> {
        Compared { signature: &self.signature, content: self.made.map(|(content, _)| content) }
    }
}

/// A judgement with the ids of the documents that it names.
pub(crate) struct Judged {
    pub(crate) verdict: &'static str,
    pub(crate) outcome: &'static str,
    pub(crate) cited: Vec<(String, Found)>,
    pub(crate) candidates: usize,
    pub(crate) complete: bool,
}

impl Judged {
    pub(crate) fn empty(outcome: &'static str) -> Self {
        Self { verdict: "empty", outcome, cited: Vec::new(), candidates: 0, complete: true }
    }

    pub(crate) fn of(looked: &Looked, ids: &Ids, outcome: &'static str, limit: usize) -> Self {
        let cited = looked.found.iter().take(limit).map(|found| (ids.get(found.doc).to_owned(), *found)).collect();
        let (candidates, complete) = (looked.candidates, !looked.is_cut);
        Self { verdict: word(looked), outcome, cited, candidates, complete }
    }
}

fn word(looked: &Looked) -> &'static str {
    match looked.found.first() {
        None => "unique",
        Some(best) if best.same_content => "exact_duplicate",
        Some(_) => "near_duplicate",
    }
}

/// A reason why a document is not inserted.
pub(crate) enum Refused {
    /// The id is already stored with another text.
    Taken,
    Full,
}

impl Refused {
    /// Returns the exception; `place` says where the id was given.
    pub(crate) fn exception(&self, id: &str, place: &str) -> PyErr {
        match self {
            Self::Taken => PyValueError::new_err(format!(
                "{place}the id {id:?} already has another text; give this text another id"
            )),
            Self::Full => PyOverflowError::new_err("the index is full"),
        }
    }
}

/// The ids of documents. Finds the id of a document's number, and the number of an id.
#[derive(Default)]
pub(crate) struct Ids {
    text: String,
    ends: Vec<usize>,
    docs: HashTable<Doc>,
}

impl Ids {
    pub(crate) fn get(&self, doc: Doc) -> &str {
        Self::slice(&self.text, &self.ends, doc)
    }

    fn slice<'a>(text: &'a str, ends: &[usize], doc: Doc) -> &'a str {
        let doc = doc as usize;
        let start = doc.checked_sub(1).map_or(0, |before| ends[before]);
        &text[start..ends[doc]]
    }

    pub(crate) fn find(&self, id: &str) -> Option<Doc> {
        self.docs.find(xxh3_64(id.as_bytes()), |doc| self.get(*doc) == id).copied()
    }

    fn push(&mut self, id: &str) {
        let doc = self.ends.len() as Doc;
        self.text.push_str(id);
        self.ends.push(self.text.len());
        let Self { text, ends, docs } = self;
        docs.insert_unique(xxh3_64(id.as_bytes()), doc, |doc| xxh3_64(Self::slice(text, ends, *doc).as_bytes()));
    }
}
