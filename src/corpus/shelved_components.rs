//! Like `components.rs`, but the documents and their links are on shelves. In memory, a document takes four bytes.

use std::io;

use super::components::Link;
use super::forest::Forest;
use super::shelved::{Lists, Shelf, Shelved};
use super::signer::SignedDocument;
use crate::types::{Method, Similarity};

/// Joins documents to components.
pub struct ShelvedComponents<S> {
    known: Shelved<S>,
    forest: Forest,
    links: S,
}

/// A link is five numbers: 1 and the number of the other document, or 0 if there is none; flags; the similarity and the
/// ends of its interval.
const LINK_BYTES: usize = 40;
const SAME_CONTENT: u64 = 1;
const IS_EXACT: u64 = 2;

impl<S: Shelf> ShelvedComponents<S> {
    /// `links`: an empty shelf.
    pub fn new(known: Shelved<S>, links: S) -> Self {
        Self { known, forest: Forest::default(), links }
    }

    /// Enters the next document, unless it has no token. Returns the number of documents that were not compared with it
    /// because of a limit.
    pub fn enter(&mut self, document: &SignedDocument, lists: &Lists) -> io::Result<Option<u64>> {
        let Some(made) = document.prepared().made() else { return Ok(None) };
        let (found, unread) = self.known.look_up(made, lists)?;
        let number = self.known.enter(made, lists, &found)?;
        self.forest.add();
        for found in found {
            let (other, similarity) = (found.number(), self.known.similarity(&found));
            for (one, to) in [(number as usize, other), (other, number as usize)] {
                let link = Link { to, same_content: found.same_content(), similarity };
                if self.link(one as u32)?.is_none_or(|old| link.is_better(&old)) {
                    self.set_link(one as u32, &link)?;
                }
            }
            self.forest.join(number, other as u32);
        }
        Ok(Some(unread))
    }

    /// Returns the number of documents.
    pub fn documents(&self) -> u32 {
        self.forest.len()
    }

    /// Returns the component of a document, as the number of its first document.
    pub fn component(&mut self, number: u32) -> u32 {
        self.forest.root(number)
    }

    /// Returns the most similar document of its component, or `None` if a document is alone.
    pub fn link(&self, number: u32) -> io::Result<Option<Link>> {
        let mut bytes = [0; LINK_BYTES];
        self.links.read(u64::from(number) * LINK_BYTES as u64, &mut bytes)?;
        let number = |at: usize| u64::from_ne_bytes(bytes[8 * at..][..8].try_into().expect("eight bytes"));
        let (to, flags) = (number(0), number(1));
        let [value, low, high] = [2, 3, 4].map(|at| f64::from_bits(number(at)));
        let method = if flags & IS_EXACT == 0 { Method::Estimate } else { Method::Exact };
        let similarity = Similarity { value, low, high, method };
        Ok(to.checked_sub(1).map(|to| Link { to: to as usize, same_content: flags & SAME_CONTENT != 0, similarity }))
    }

    fn set_link(&mut self, number: u32, link: &Link) -> io::Result<()> {
        let Link { to, same_content, similarity: Similarity { value, low, high, method } } = *link;
        let flag = |is: bool, flag: u64| if is { flag } else { 0 };
        let flags = flag(same_content, SAME_CONTENT) | flag(method == Method::Exact, IS_EXACT);
        let numbers = [to as u64 + 1, flags, value.to_bits(), low.to_bits(), high.to_bits()];
        let bytes: Vec<u8> = numbers.into_iter().flat_map(u64::to_ne_bytes).collect();
        self.links.write(u64::from(number) * LINK_BYTES as u64, &bytes)
    }
}
