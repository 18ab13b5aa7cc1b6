//! Survivors of the estimate -> matches, by the shingles themselves.
//! A lookup probes and estimates as ever, with a bound so much below the threshold that the estimate's spread hides
//! nothing; who survives is compared shingle by shingle here. What has been compared is kept by `seq`, so a decision
//! that gives up its lock to read the disk begins again with it. Knows nothing of ids or of what becomes of the verdict.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use hapax_core::{ShingleSet, Spec, tuning, verify};

use super::judge::{Judgement, Ranked};
use super::meters::Meters;
use super::pairs::UNREADABLE;
use super::{Collection, Result};
use crate::store::{Flaw, Looked};
use crate::types::{Overlap, Payload, Seq, Verify};
use crate::verdicts::Made;
use crate::verdicts::Settings;

/// Shingles, of both sides together, that are compared in one hold of the decision lock or on an async thread: some ten
/// microseconds.
pub(crate) const IN_PASSING: u64 = 16 * 1024;

/// What is compared, and from where on two documents are alike.
#[derive(Clone, Copy)]
pub(crate) struct Exact<'a> {
    set: &'a ShingleSet,
    threshold: f64,
}

/// What one lookup has compared so far.
#[derive(Default)]
pub(crate) struct Compared {
    found: HashMap<Seq, Found>,
    /// What `found` was judged by; 0 before that.
    threshold: f64,
    read_bytes: u64,
    /// Documents whose content hash is another after all.
    pub(crate) mistaken: HashSet<Seq>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Shares(Overlap),
    /// By the numbers of shingles alone it cannot reach the threshold.
    Below,
    /// A bound kept it from being read.
    Unread,
    /// It was deleted or replaced meanwhile.
    Gone,
}

/// Equal slots from which a candidate is a match, or survives to be compared exactly.
pub(crate) fn matching_min(verify: Verify, threshold: f64, spec: &Spec) -> u32 {
    match verify {
        Verify::Estimate => verify::matching_min(threshold, spec.shape()),
        Verify::Exact => tuning::survivor_min(threshold, spec.shape(), spec.sketch()),
    }
}

/// The documents to be compared, the best first; and for each ranked document, which of these is compared in its place:
/// `None` if it has the query's content. Documents of one content are compared once.
fn one_of_each(ranked: &[Ranked]) -> (Vec<Seq>, Vec<Option<Seq>>) {
    let (mut asked, mut by_content) = (Vec::new(), HashMap::new());
    let as_whom = ranked.iter().map(|found| {
        if found.same_content {
            return None;
        }
        let first = match found.content {
            0 => found.seq,
            content => *by_content.entry((content, found.matching)).or_insert(found.seq),
        };
        if first == found.seq {
            asked.push(first);
        }
        Some(first)
    });
    let as_whom = as_whom.collect();
    (asked, as_whom)
}

impl<'a> Exact<'a> {
    /// How a document is to be compared; `None` where signatures decide. A document that was prepared before its
    /// collection came to verify exactly is judged as it was prepared.
    pub(crate) fn of(made: &'a Made, settings: &Settings, threshold: f64) -> Option<Self> {
        let set = &made.kept.as_ref().filter(|_| settings.verify == Verify::Exact)?.set;
        Some(Self { set, threshold })
    }

    /// `J <= min / max`, so documents of too different sizes need not be compared.
    fn fits(&self, shingles: u64) -> bool {
        let len = self.set.len();
        verify::reaches(len.min(shingles), len.max(shingles), self.threshold)
    }

    fn compare(&self, other: &ShingleSet) -> Found {
        if !self.fits(other.len()) {
            return Found::Below;
        }
        let both = self.set.compare(other).intersection;
        Found::Shares(Overlap { both, query: self.set.len(), found: other.len() })
    }
}

impl Compared {
    /// Whether any of these is gone; it is forgotten that they were looked at.
    pub(crate) fn take_gone(&mut self, seqs: &[Seq]) -> bool {
        let before = self.found.len();
        self.found.retain(|seq, found| *found != Found::Gone || !seqs.contains(seq));
        self.found.len() < before
    }

    /// Counts it, where anything was to be compared exactly.
    pub(crate) fn meter(&self, meters: &Meters) {
        if self.threshold == 0.0 {
            return;
        }
        let shares = self.found.values().filter(|found| matches!(found, Found::Shares(_)));
        meters.exact_compared.record(shares.count() as f64);
        meters.exact_read_bytes.increment(self.read_bytes);
    }
}

impl Collection {
    fn set_of(&self, payload: &Payload) -> std::result::Result<ShingleSet, Flaw> {
        self.preparer.set_of(payload).ok_or(UNREADABLE)
    }

    /// Makes the survivors of a judgement its matches: those whose shingles reach the threshold, best first. Compares
    /// what memory holds, up to `in_passing` shingles. Returns who has to be compared by [`Self::compare_survivors`]
    /// first; then the judgement is as it was. Reads no disk.
    pub(crate) fn settle_survivors(
        &self,
        exact: Exact<'_>,
        judgement: &mut Judgement,
        compared: &mut Compared,
        in_passing: u64,
    ) -> Vec<Seq> {
        if compared.threshold != exact.threshold {
            let mistaken = std::mem::take(&mut compared.mistaken);
            *compared = Compared { threshold: exact.threshold, mistaken, ..Compared::default() };
        }
        let reads_max = self.limits.exact_reads_max;
        let (asked, as_whom) = one_of_each(&judgement.ranked);
        let mut left: Vec<Seq> =
            asked.iter().take(reads_max).copied().filter(|seq| !compared.found.contains_key(seq)).collect();
        if !left.is_empty() {
            let mut shingles = 0;
            let sets = self.records.sets(&left);
            left = left.into_iter().zip(sets).fold(Vec::new(), |mut left, (seq, set)| {
                match set.filter(|set| shingles + exact.set.len() + set.len() <= in_passing) {
                    Some(set) => {
                        shingles += exact.set.len() + set.len();
                        compared.found.insert(seq, exact.compare(&set));
                    }
                    None => left.push(seq),
                }
                left
            });
        }
        if !left.is_empty() {
            return left;
        }
        let read = &asked[..asked.len().min(reads_max)];
        let of_read = |seq: &&Seq| compared.found.get(seq) == Some(&Found::Unread);
        let unread = (asked.len() - read.len() + read.iter().filter(of_read).count()) as u64;
        let read: HashSet<Seq> = read.iter().copied().collect();
        let mut as_whom = as_whom.into_iter();
        judgement.ranked.retain_mut(|ranked| {
            let overlap = match as_whom.next().expect("there is one for each") {
                // Equal texts have equal shingles: there is nothing to read, and no bound on reading hides it.
                None => Overlap { both: exact.set.len(), query: exact.set.len(), found: exact.set.len() },
                Some(seq) => match compared.found.get(&seq).filter(|_| read.contains(&seq)) {
                    Some(&Found::Shares(overlap)) => overlap,
                    _ => return false,
                },
            };
            ranked.overlap = Some(overlap);
            verify::reaches(overlap.both, overlap.either(), exact.threshold)
        });
        judgement.unread += unread;
        // As fractions: a/b > c/d where a·d > c·b.
        judgement.ranked.sort_unstable_by(|a, b| {
            let (x, y) = (a.overlap.expect("all have one"), b.overlap.expect("all have one"));
            let [of_x, of_y] = [(x, y), (y, x)].map(|(x, y)| u128::from(x.both) * u128::from(y.either()));
            (Reverse(a.same_content), of_y, a.seq).cmp(&(Reverse(b.same_content), of_x, b.seq))
        });
        Vec::new()
    }

    /// Compares with these documents, wherever their shingles are. Takes long: under no lock, on no async thread.
    pub(crate) fn compare_survivors(&self, exact: Exact<'_>, seqs: &[Seq], compared: &mut Compared) -> Result<()> {
        let mut stored = Vec::new();
        for (&seq, set) in seqs.iter().zip(self.records.sets(seqs)) {
            match set {
                Some(set) => drop(compared.found.insert(seq, exact.compare(&set))),
                None => stored.push(seq),
            }
        }
        let bytes = Cell::new(compared.read_bytes);
        let within = || bytes.get() < self.limits.exact_bytes_max;
        let looked = self.records.store().payloads(
            &stored,
            |shingles| match exact.fits(shingles) {
                false => Err(Found::Below),
                true if within() => Ok(()),
                true => Err(Found::Unread),
            },
            |_, payload| {
                bytes.set(bytes.get() + payload.bytes.len() as u64);
                Ok(exact.compare(&self.set_of(&payload)?))
            },
        )?;
        compared.read_bytes = bytes.get();
        compared.found.extend(looked.into_iter().map(|(seq, looked)| {
            let found = match looked {
                Looked::Gone => Found::Gone,
                Looked::At(found) => found,
            };
            (seq, found)
        }));
        Ok(())
    }

    /// What a document shares with one that is stored; `None` if that is gone. Reads the disk.
    pub(crate) fn overlap(&self, exact: Exact<'_>, seq: Seq) -> Result<Option<Overlap>> {
        let set = self.stored_set(seq)?;
        Ok(set.map(|set| Overlap {
            both: exact.set.compare(&set).intersection,
            query: exact.set.len(),
            found: set.len(),
        }))
    }

    /// The shingles of a stored document; `None` where none are kept, or the document is gone.
    pub(crate) fn stored_set(&self, seq: Seq) -> Result<Option<ShingleSet>> {
        if self.preparer.keep() == crate::types::Keep::Signature {
            return Ok(None);
        }
        if let Some(set) = self.records.sets(&[seq]).pop().flatten() {
            return Ok(Some(ShingleSet::clone(&set)));
        }
        let looked = self.records.store().payloads(&[seq], |_| Ok(()), |_, payload| self.set_of(&payload))?;
        Ok(looked.into_iter().find_map(|(_, looked)| if let Looked::At(set) = looked { Some(set) } else { None }))
    }
}
