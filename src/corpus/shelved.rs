//! Like `known.rs`, but the documents that were entered are on shelves, not in memory. A shelf holds bytes, which can be
//! read and written at any position. A search takes the same documents in the same order as one in the index, and the same limits apply.
//!
//! Before the first search, the caller finds out which documents share a band, and gives each band key of at least two
//! documents a list on a shelf. So no table of keys is needed, and a key of one document has no list. Another list has the
//! documents with equal signatures: the first of each content. Only the first of them is in the lists of its bands.
//!
//! A list is the number of its documents, and then their numbers, four bytes each. The row of a document has its signature
//! and the other facts that a search needs.

use std::cmp::Reverse;
use std::io;
use std::sync::Arc;

use hapax_core::{ShingleSet, verify};

use super::dedup::{Decided, Decision, Duplicate};
use super::entered::{compared_set, confirmed};
use super::known::{Found, Match, Matching, SearchLimits, ranked, terms};
use super::signer::{CorpusSigner, SignedDocument};
use crate::types::Similarity;
use crate::verdicts::{Made, Terms, similarity};

/// Bytes that can be read and written at any position. Those that were never written are 0.
pub trait Shelf {
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()>;
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;
}

/// The lists of one document. A list has the number of its first four bytes on the shelf.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// The bands that it shares with other documents, in ascending order, each with its list.
    pub of_bands: Vec<(u32, u32)>,
    /// The list of its signature, if another document has it too.
    pub of_signature: Option<u32>,
}

/// The documents that were entered.
pub struct Shelved<S> {
    signer: CorpusSigner,
    terms: Terms,
    limits: SearchLimits,
    lists: S,
    rows: S,
    sets: S,
    /// The length of the shelf of sets.
    sets_end: u64,
    count: u32,
}

/// The facts of a document that was entered.
struct Row {
    signature: Vec<u8>,
    content: u64,
    of_signature: Option<u32>,
    /// The place of its shingles on their shelf, their bytes, and their number.
    set: [u64; 3],
}

/// The number of bytes of a row besides the signature.
const FACTS: usize = 8 + 8 + 3 * 8;
const NO_LIST: u64 = u64::MAX;
/// How many numbers are read first of a list.
const FIRST_READ: usize = 64;
/// The longest list that is read as a whole if some of its documents are compared.
const READ_WHOLE_MAX: usize = 1 << 14;

/// How many bands a document shares with another one, and its number.
type Hit = (Reverse<u32>, u32);

impl<S: Shelf> Shelved<S> {
    /// The shelves are for lists, rows, and shingles. All are empty.
    pub fn new(signer: CorpusSigner, matching: Matching, limits: SearchLimits, [lists, rows, sets]: [S; 3]) -> Self {
        let terms = terms(&signer, matching);
        Self { signer, terms, limits, lists, rows, sets, sets_end: 0, count: 0 }
    }

    /// Decides on the next document: it is kept and entered if it repeats no other one.
    pub fn decide(&mut self, document: &SignedDocument, lists: &Lists) -> io::Result<Decided> {
        let Some(made) = document.prepared().made() else {
            return Ok(Decided { decision: Decision::Empty, unread: 0 });
        };
        let (found, unread) = self.look_up(made, lists)?;
        let decision = match found.first() {
            Some(best) => Decision::Duplicate(Duplicate {
                of: best.number(),
                same_content: best.same_content(),
                similarity: self.similarity(best),
            }),
            None => {
                self.enter(made, lists, &found)?;
                Decision::Kept
            }
        };
        Ok(Decided { decision, unread })
    }

    /// Finds the documents that are duplicates of this one, best first. Also returns the number of documents that were not
    /// compared because of a limit.
    pub(super) fn look_up(&self, made: &Made, lists: &Lists) -> io::Result<(Vec<Match>, u64)> {
        let (mut hits, mut unread) = self.hits(lists)?;
        let twins = lists.of_signature.map_or(Ok(Vec::new()), |list| self.list(list))?;
        if let Some(leader) = twins.first() {
            hits.retain(|(_, number)| number != leader);
        }
        // Those that share the most bands are compared.
        let most = self.limits.candidates_max;
        if hits.len() > most {
            hits.select_nth_unstable(most);
            unread += (hits.len() - most) as u64;
            hits.truncate(most);
        }
        let mut found = Vec::new();
        for (_, number) in hits {
            let row = self.row(number)?;
            let shape = self.signer.settings().spec.shape();
            let matching = verify::matching_slots(&made.signature, &row.signature, shape);
            if matching < self.terms.matching_min {
                continue;
            }
            let equal = match row.of_signature.filter(|_| self.terms.compares_shingles()) {
                Some(list) => self.list(list)?,
                None => vec![number],
            };
            let found_of = |number: u32| Found { number: number as usize, matching, same_content: false };
            found.extend(equal.into_iter().map(found_of));
        }
        found.extend(self.twins(made, twins)?);
        Ok((self.verified(made, found)?, unread))
    }

    /// Returns the documents that share a band with one that has these lists, those that share most bands first; and how many
    /// documents were not read.
    fn hits(&self, lists: &Lists) -> io::Result<(Vec<Hit>, u64)> {
        let (max, bands) = (self.limits.bucket_read_max, self.signer.settings().banding.bands() as usize);
        let (mut numbers, mut unread) = (Vec::new(), 0);
        for &(band, list) in &lists.of_bands {
            let (len, first) = self.begin(list)?;
            if len <= max {
                numbers.extend(self.whole(list, len, first)?);
                continue;
            }
            // Spread over the list as in `index/place_list.rs`.
            let shift = band as usize * len / (max.max(1) * bands);
            let mut places = (0..max).map(|at| at * len / max + shift);
            if len <= READ_WHOLE_MAX {
                let whole = self.whole(list, len, first)?;
                numbers.extend(places.map(|at| whole[at]));
            } else {
                places.try_for_each(|at| self.number(list, at).map(|number| numbers.push(number)))?;
            }
            unread += (len - max) as u64;
        }
        numbers.sort_unstable();
        let hits = numbers.chunk_by(|one, other| one == other);
        Ok((hits.map(|same| (Reverse(same.len() as u32), same[0])).collect(), unread))
    }

    /// Returns the documents with the signature of this one that are compared with it.
    fn twins(&self, made: &Made, twins: Vec<u32>) -> io::Result<Vec<Found>> {
        let (mut found, content) = (Vec::new(), made.content_prefix());
        let matching = self.signer.settings().spec.shape().k;
        for number in twins {
            let same_content = content != 0 && self.row(number)?.content == content;
            if same_content {
                found.clear();
            } else if !found.is_empty() && !self.terms.compares_shingles() {
                continue;
            }
            found.push(Found { number: number as usize, matching, same_content });
            if same_content {
                break;
            }
        }
        Ok(found)
    }

    /// Keeps those that are duplicates. If the signatures leave a doubt, the shingles are compared.
    fn verified(&self, made: &Made, found: Vec<Found>) -> io::Result<Vec<Match>> {
        let (set, mut matches) = (compared_set(made, self.terms), Vec::new());
        for found in found {
            let set = set.filter(|_| !found.same_content);
            let is_compared = set.is_some() && found.matching < self.terms.certain_min;
            let other = if is_compared { Some(self.set(found.number as u32)?) } else { None };
            let other = || &**other.as_ref().expect("it was read, because it is compared");
            let overlap = confirmed(self.terms, set, found.matching, other);
            matches.extend(overlap.map(|overlap| Match { found, overlap }));
        }
        Ok(ranked(self.terms, matches))
    }

    pub(super) fn similarity(&self, found: &Match) -> Similarity {
        let Match { found: Found { matching, same_content, .. }, overlap } = *found;
        similarity(&self.signer.settings().spec, matching, same_content, overlap)
    }

    /// Enters a document, and returns its number. `matches`: the result of its search.
    pub(super) fn enter(&mut self, made: &Made, lists: &Lists, matches: &[Match]) -> io::Result<u32> {
        let number = self.count;
        self.count += 1;
        // No search would list a copy.
        if matches.iter().any(Match::same_content) {
            return Ok(number);
        }
        let equal = lists.of_signature.map_or(Ok(Vec::new()), |list| self.list(list))?;
        let mut is_new = true;
        for &number in &equal {
            is_new &= self.row(number)?.content != made.content_prefix();
        }
        if let Some(list) = lists.of_signature.filter(|_| is_new) {
            self.push(list, number)?;
        }
        if equal.is_empty() {
            lists.of_bands.iter().try_for_each(|&(_, list)| self.push(list, number))?;
        }
        let set = compared_set(made, self.terms);
        let bytes = set.map(ShingleSet::to_bytes).unwrap_or_default();
        self.sets.write(self.sets_end, &bytes)?;
        let set = [self.sets_end, bytes.len() as u64, set.map_or(0, ShingleSet::len)];
        self.sets_end += bytes.len() as u64;
        let mut row = made.signature.clone();
        let of_signature = lists.of_signature.map_or(NO_LIST, u64::from);
        [made.content_prefix(), of_signature].iter().chain(&set).for_each(|fact| row.extend(fact.to_ne_bytes()));
        self.rows.write(u64::from(number) * self.row_bytes(), &row)?;
        Ok(number)
    }

    fn row_bytes(&self) -> u64 {
        (self.signer.settings().spec.shape().bytes() + FACTS) as u64
    }

    fn row(&self, number: u32) -> io::Result<Row> {
        let mut signature = vec![0; self.row_bytes() as usize];
        self.rows.read(u64::from(number) * self.row_bytes(), &mut signature)?;
        let facts = signature.split_off(signature.len() - FACTS);
        let mut facts = facts.chunks_exact(8).map(|fact| u64::from_ne_bytes(fact.try_into().expect("eight bytes")));
        let mut next = || facts.next().expect("a row has all facts");
        let (content, of_signature) = (next(), next());
        let of_signature = (of_signature != NO_LIST).then_some(of_signature as u32);
        Ok(Row { signature, content, of_signature, set: [next(), next(), next()] })
    }

    fn set(&self, number: u32) -> io::Result<Arc<ShingleSet>> {
        let [at, length, shingles] = self.row(number)?.set;
        let mut bytes = vec![0; length as usize];
        self.sets.read(at, &mut bytes)?;
        let set = ShingleSet::from_bytes(&bytes, shingles);
        set.map(Arc::new).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "shingles were damaged"))
    }

    /// Returns the documents of a list.
    fn list(&self, list: u32) -> io::Result<Vec<u32>> {
        let (len, first) = self.begin(list)?;
        self.whole(list, len, first)
    }

    /// Returns the number of documents of a list, and the first of them.
    fn begin(&self, list: u32) -> io::Result<(usize, Vec<u32>)> {
        let mut bytes = [0; 4 * FIRST_READ];
        self.lists.read(u64::from(list) * 4, &mut bytes)?;
        let mut numbers = numbers_of(&bytes);
        let len = numbers.next().expect("there is a number") as usize;
        Ok((len, numbers.take(len).collect()))
    }

    /// Returns the documents of a list, of which the first were read.
    fn whole(&self, list: u32, len: usize, first: Vec<u32>) -> io::Result<Vec<u32>> {
        let mut documents = first;
        if documents.len() < len {
            let mut bytes = vec![0; 4 * (len - documents.len())];
            self.lists.read((u64::from(list) + FIRST_READ as u64) * 4, &mut bytes)?;
            documents.extend(numbers_of(&bytes));
        }
        Ok(documents)
    }

    /// Returns the document at a place of a list.
    fn number(&self, list: u32, at: usize) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.lists.read((u64::from(list) + 1 + at as u64) * 4, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    fn push(&mut self, list: u32, number: u32) -> io::Result<()> {
        let mut len = [0; 4];
        self.lists.read(u64::from(list) * 4, &mut len)?;
        let len = u32::from_ne_bytes(len);
        self.lists.write((u64::from(list) + 1 + u64::from(len)) * 4, &number.to_ne_bytes())?;
        self.lists.write(u64::from(list) * 4, &(len + 1).to_ne_bytes())
    }
}

fn numbers_of(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(|bytes| u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
}
