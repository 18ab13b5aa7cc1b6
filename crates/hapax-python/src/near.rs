//! Signatures in memory -> the documents similar to a signature, best first. This is the judgement of the service,
//! within a single process.
//!
//! A pair is a match if it shares a band and at least [`matching_min`] slots are equal, as in the server. Documents
//! with equal signatures are one candidate, so that boilerplate stays cheap. Bands store document numbers and no keys:
//! a key is computed again from the signature when a table grows. Knows nothing of Python, ids or texts.

use std::cmp::Reverse;

use hapax_core::verify::{matching_min, matching_slots};
use hapax_core::{Banding, SignatureShape};
use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// The most documents that a check reads of one bucket, the newest first: as many as the server's `bucket_read_max`.
pub(crate) const BUCKET_READ_MAX: usize = 256;
/// The end of a list.
const NONE: u32 = u32::MAX;
/// The most documents with the same signature that a check names. All of them are equally similar.
const MEMBERS_MAX: usize = 1024;
/// Signatures are stored in pieces of this many, so that growth copies at most one piece.
const PIECE: usize = 4096;

/// The number of a document, in the order of insertion.
pub(crate) type Doc = u32;

/// The properties by which a document is compared.
#[derive(Clone, Copy)]
pub(crate) struct Compared<'a> {
    pub signature: &'a [u8],
    /// The content hash, if the text is known.
    pub content: Option<u128>,
}

/// A document at or above the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub doc: Doc,
    pub matching: u32,
    /// Whether the canonical texts of both are equal.
    pub same_content: bool,
}

/// The result of a lookup.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// Best first: equal contents, then more equal slots, then the older document.
    pub found: Vec<Found>,
    /// How many documents were compared. Documents with equal signatures count as one.
    pub candidates: usize,
    /// Whether a bucket had more documents than are read.
    pub is_cut: bool,
}

/// The signatures of the documents.
struct Arena {
    pieces: Vec<Vec<u8>>,
    bytes: usize,
}

impl Arena {
    fn get(&self, doc: Doc) -> &[u8] {
        let (piece, row) = (doc as usize / PIECE, doc as usize % PIECE);
        &self.pieces[piece][row * self.bytes..(row + 1) * self.bytes]
    }

    fn push(&mut self, signature: &[u8]) {
        match self.pieces.last_mut() {
            Some(last) if last.len() < PIECE * self.bytes => last.extend_from_slice(signature),
            _ => self.pieces.push(signature.to_vec()),
        }
    }
}

/// Lists of documents. All documents of a list have a property in common, and the hash of the list is computed from
/// this property.
#[derive(Default)]
struct Lists {
    /// The newest document of each list.
    newest: HashTable<Doc>,
    /// For each document, the next older document of the same list; [`NONE`] if there is none, or if the document is in
    /// no list.
    older: Vec<Doc>,
}

impl Lists {
    /// Returns the documents of a list, the newest first.
    fn list(&self, hash: u64, is_of_it: impl Fn(Doc) -> bool) -> impl Iterator<Item = Doc> {
        let newest = self.newest.find(hash, |doc| is_of_it(*doc)).copied();
        std::iter::successors(newest, |doc| Some(self.older[*doc as usize]).filter(|doc| *doc != NONE))
    }

    /// Adds the next document to a list.
    fn push(&mut self, doc: Doc, hash: u64, is_of_it: impl Fn(Doc) -> bool, hash_of: impl Fn(Doc) -> u64) {
        match self.newest.find_mut(hash, |other| is_of_it(*other)) {
            Some(newest) => self.older.push(std::mem::replace(newest, doc)),
            None => {
                self.older.push(NONE);
                self.newest.insert_unique(hash, doc, |doc| hash_of(*doc));
            }
        }
    }

    /// Adds the next document without putting it into a list.
    fn skip(&mut self) {
        self.older.push(NONE);
    }
}

/// The index.
pub(crate) struct Near {
    shape: SignatureShape,
    banding: Banding,
    matching_min: u32,
    arena: Arena,
    /// The content hashes; 0 for documents whose text is not known.
    contents: Vec<u128>,
    /// For each band, lists of the documents with equal rows. Of documents with equal signatures, only the first is in
    /// a list.
    bands: Vec<Lists>,
    /// The documents with equal signatures, without links.
    equal: Lists,
    /// The documents with equal contents, including links.
    exact: Lists,
    candidates: Vec<Doc>,
}

impl Near {
    pub(crate) fn new(shape: SignatureShape, banding: Banding, threshold: f64) -> Self {
        Self {
            shape,
            banding,
            matching_min: matching_min(threshold, shape),
            arena: Arena { pieces: Vec::new(), bytes: shape.bytes() },
            contents: Vec::new(),
            bands: (0..banding.bands()).map(|_| Lists::default()).collect(),
            equal: Lists::default(),
            exact: Lists::default(),
            candidates: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.contents.len()
    }

    pub(crate) fn banding(&self) -> Banding {
        self.banding
    }

    pub(crate) fn signature_bytes(&self) -> usize {
        self.shape.bytes()
    }

    /// Returns whether there is no room for another document.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= NONE as usize
    }

    /// Returns a document as it was inserted.
    pub(crate) fn compared(&self, doc: Doc) -> Compared<'_> {
        let content = self.contents[doc as usize];
        Compared { signature: self.arena.get(doc), content: Some(content).filter(|content| *content != 0) }
    }

    /// Finds the documents similar to this one.
    pub(crate) fn look_up(&mut self, query: Compared<'_>) -> Looked {
        let mut looked = Looked::default();
        let mut candidates = std::mem::take(&mut self.candidates);
        looked.is_cut = self.propose(query.signature, &mut candidates);
        // Documents with the query's own signature are always found, even if a bucket has too many documents.
        self.members(query.signature, self.shape.k, query, &mut looked);
        for signature in candidates.iter().map(|doc| self.arena.get(*doc)).filter(|found| *found != query.signature) {
            looked.candidates += 1;
            let matching = matching_slots(query.signature, signature, self.shape);
            if matching >= self.matching_min {
                self.members(signature, matching, query, &mut looked);
            }
        }
        looked.candidates += usize::from(self.of_signature(query.signature).next().is_some());
        self.copies(query, &mut looked);
        looked.found.sort_unstable_by_key(|found| (!found.same_content, Reverse(found.matching), found.doc));
        self.candidates = candidates;
        looked
    }

    /// Collects the documents that share a band with a signature. Returns whether a bucket had more documents than are
    /// read.
    fn propose(&self, signature: &[u8], candidates: &mut Vec<Doc>) -> bool {
        candidates.clear();
        let mut is_cut = false;
        for (number, band) in (0u32..).zip(&self.bands) {
            let range = self.banding.row_bytes(self.shape, number);
            let rows = &signature[range.clone()];
            let before = candidates.len();
            let bucket =
                band.list(Banding::key_of_rows(rows, number).0, |doc| self.arena.get(doc)[range.clone()] == *rows);
            candidates.extend(bucket.take(BUCKET_READ_MAX + 1));
            if candidates.len() - before > BUCKET_READ_MAX {
                candidates.pop();
                is_cut = true;
            }
        }
        candidates.sort_unstable();
        candidates.dedup();
        is_cut
    }

    /// Adds a document. Only exact copies match a link later.
    pub(crate) fn insert(&mut self, compared: Compared<'_>, is_link: bool) -> Doc {
        assert!(!self.is_full(), "the caller has asked");
        let doc = self.len() as Doc;
        let Compared { signature, content } = compared;
        let is_first = self.of_signature(signature).next().is_none();
        self.arena.push(signature);
        self.contents.push(content.unwrap_or_default());
        let Self { arena, contents, bands, banding, shape, equal, exact, .. } = self;
        for (number, band) in (0u32..).zip(bands) {
            if is_link || !is_first {
                band.skip();
                continue;
            }
            let range = banding.row_bytes(*shape, number);
            let key = |rows: &[u8]| Banding::key_of_rows(&rows[range.clone()], number).0;
            let has_rows = |other| arena.get(other)[range.clone()] == signature[range.clone()];
            band.push(doc, key(signature), has_rows, |doc| key(arena.get(doc)));
        }
        match is_link {
            true => equal.skip(),
            false => {
                let has_signature = |other| arena.get(other) == signature;
                equal.push(doc, xxh3_64(signature), has_signature, |doc| xxh3_64(arena.get(doc)));
            }
        }
        match content {
            None => exact.skip(),
            Some(content) => {
                let has_content = |other: Doc| contents[other as usize] == content;
                exact.push(doc, content as u64, has_content, |doc| contents[doc as usize] as u64);
            }
        }
        doc
    }

    /// Returns the documents with this signature that are no links, the newest first.
    fn of_signature(&self, signature: &[u8]) -> impl Iterator<Item = Doc> {
        self.equal.list(xxh3_64(signature), move |doc| self.arena.get(doc) == signature)
    }

    /// Adds the documents of one signature, except exact copies of the query.
    fn members(&self, signature: &[u8], matching: u32, query: Compared<'_>, looked: &mut Looked) {
        let is_copy = |doc: Doc| query.content.is_some_and(|content| content == self.contents[doc as usize]);
        let others = self.of_signature(signature).take(MEMBERS_MAX).filter(|doc| !is_copy(*doc));
        looked.found.extend(others.map(|doc| Found { doc, matching, same_content: false }));
    }

    /// Adds the exact copies of the query, including links.
    fn copies(&self, query: Compared<'_>, looked: &mut Looked) {
        let Some(content) = query.content else { return };
        let copies = self.exact.list(content as u64, |doc| self.contents[doc as usize] == content);
        let copies = copies.take(MEMBERS_MAX).filter(|doc| self.arena.get(*doc) == query.signature);
        looked.found.extend(copies.map(|doc| Found { doc, matching: self.shape.k, same_content: true }));
    }
}
