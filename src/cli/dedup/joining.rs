//! Signed documents -> connected components -> the document of each that is kept.

use std::collections::HashMap;

use anyhow::Result;

use super::report::Original;
use super::results::Results;
use crate::cli::corpus::named::Named;
use crate::cli::corpus::rank::Rank;
use crate::cli::corpus::signing::Document;
use crate::corpus::{Components, CorpusSigner, Duplicate, Link};

/// The documents that were joined so far.
pub(super) struct Joining {
    components: Components,
    documents: Vec<Joined>,
}

/// A document with at least one token.
struct Joined {
    /// The number of its file.
    file: usize,
    named: Named,
    rank: Rank,
    /// The number of documents that were not compared with it because of a limit.
    unread: u64,
}

impl Joining {
    pub(super) fn new(components: Components) -> Self {
        Self { components, documents: Vec::new() }
    }

    pub(super) fn signer(&self) -> &CorpusSigner {
        self.components.signer()
    }

    /// The number of documents with at least one token.
    pub(super) fn documents(&self) -> u64 {
        self.documents.len() as u64
    }

    /// Joins a document to those that it repeats. `results` gets it only if it is empty.
    pub(super) fn take(&mut self, document: Document, results: &mut Results) -> Result<()> {
        let Document { file, origin, id, rank, signed, .. } = document;
        let named = Named { origin, id };
        match self.components.enter(signed)? {
            Some(unread) => self.documents.push(Joined { file, named, rank, unread }),
            None => results.empty(file, &named),
        }
        Ok(())
    }

    /// Returns whether no document has a rank.
    pub(super) fn lacks_ranks(&self) -> bool {
        !self.documents.is_empty() && self.documents.iter().all(|document| document.rank.is_missing())
    }

    /// Keeps the document of the highest rank of each component. Of equal ranks, it is the first document.
    pub(super) fn finish(&mut self, results: &mut Results) {
        let components = self.components.components();
        let mut kept: HashMap<u32, (usize, u64)> = HashMap::new();
        for (number, component) in components.iter().enumerate() {
            let (best, size) = kept.entry(*component).or_insert((number, 0));
            *size += 1;
            if self.documents[number].rank > self.documents[*best].rank {
                *best = number;
            }
        }
        results.tally_mut().components(kept.values().map(|(_, size)| *size));
        for (number, Joined { file, named, unread, .. }) in self.documents.iter().enumerate() {
            let (of, _) = kept[&components[number]];
            match self.components.link(number).filter(|_| of != number) {
                None => results.kept(*file, named, *unread),
                Some(&Link { to, same_content, similarity }) => {
                    let duplicate = Duplicate { of, same_content, similarity };
                    let similar_to = Some(&self.documents[to].named);
                    let Joined { file: of_file, named: kept, .. } = &self.documents[of];
                    let original = Original { file: *of_file, kept, similar_to, duplicate };
                    results.duplicate(*file, named, original, *unread);
                }
            }
        }
    }
}
