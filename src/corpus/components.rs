//! Signed documents in any order -> connected components: two documents are in one component if a chain of duplicates
//! joins them. All documents are compared with all others, the duplicates too.

use super::forest::Forest;
use super::known::{Known, Match, Matching, SearchLimits};
use super::signer::{CorpusSigner, SignedDocument};
use crate::types::Similarity;
use crate::verdicts::Result;

/// Joins documents to components.
pub struct Components {
    known: Known,
    forest: Forest,
    links: Vec<Option<Link>>,
}

/// The most similar document that a document was compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its number: 0 for the first document that was entered.
    pub to: usize,
    pub same_content: bool,
    pub similarity: Similarity,
}

impl Link {
    /// Whether this is a link to a more similar document.
    pub(super) fn is_better(&self, old: &Self) -> bool {
        (self.same_content, self.similarity.value) > (old.same_content, old.similarity.value)
    }
}

impl Components {
    pub fn new(signer: CorpusSigner, matching: Matching, limits: SearchLimits) -> Self {
        Self { known: Known::new(signer, matching, limits), forest: Forest::default(), links: Vec::new() }
    }

    /// Returns the signer of its documents.
    pub fn signer(&self) -> &CorpusSigner {
        self.known.signer()
    }

    /// Enters the next document, unless it has no token. Returns the number of documents that were not compared with it
    /// because of a limit. Fails if the index is full.
    pub fn enter(&mut self, document: SignedDocument) -> Result<Option<u64>> {
        let (made, _) = document.into_prepared().into_parts();
        let Some(made) = made else { return Ok(None) };
        let (found, unread) = self.known.look_up(&made);
        let number = self.known.enter(made)?;
        self.forest.add();
        self.links.push(None);
        for found in found {
            self.join(number, &found);
        }
        Ok(Some(unread))
    }

    fn join(&mut self, number: usize, found: &Match) {
        let other = found.number();
        let (similarity, same_content) = (self.known.similarity(found), found.same_content());
        for (one, to) in [(number, other), (other, number)] {
            let link = Link { to, same_content, similarity };
            if self.links[one].as_ref().is_none_or(|old| link.is_better(old)) {
                self.links[one] = Some(link);
            }
        }
        self.forest.join(number as u32, other as u32);
    }

    /// Returns the component of each document, as the number of one of its documents.
    pub fn components(&mut self) -> Vec<u32> {
        (0..self.forest.len()).map(|number| self.forest.root(number)).collect()
    }

    /// Returns the most similar document of its component, or `None` if a document is alone.
    pub fn link(&self, number: usize) -> Option<&Link> {
        self.links[number].as_ref()
    }
}
