//! The answers that a single client would receive.

pub(super) const IDS: u8 = 5;
pub(super) const FAMILIES: u8 = 2;
pub(super) const VARIANTS: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Insert { id: u8, family: u8, variant: u8, on_duplicate: &'static str, on_existing: &'static str },
    Delete { id: u8 },
    DeleteVariant { variant: u8 },
    Get { id: u8 },
    Check { family: u8, variant: u8 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Judged {
        outcome: String,
        matches: Vec<u8>,
        representative: Option<u8>,
    },
    Unchanged,
    Conflict,
    Deleted(u64),
    /// The variant, and whether the document is a link.
    Read(Option<(u8, bool)>),
    Checked(Vec<u8>),
}

/// The number of slots that the signatures of two variants of a family have in common.
pub(super) struct Texts(Vec<usize>);

impl Texts {
    pub(super) fn new(slots: impl Fn(u8, (u8, u8)) -> usize) -> Self {
        let pairs = (0..VARIANTS).flat_map(|one| (0..VARIANTS).map(move |other| (one, other)));
        Self(
            (0..FAMILIES)
                .flat_map(|family| pairs.clone().map(move |pair| (family, pair)))
                .map(|(family, pair)| slots(family, pair))
                .collect(),
        )
    }

    fn slots(&self, family: u8, one: u8, other: u8) -> usize {
        self.0[((family * VARIANTS + one) * VARIANTS + other) as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Document {
    id: u8,
    family: u8,
    variant: u8,
    linked: bool,
    /// The clusters are numbered in the order of their first documents.
    cluster: u8,
}

/// The documents, in the order in which they were stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State(Vec<Document>);

impl State {
    /// Returns the answer, and changes the state.
    pub(super) fn ask(&mut self, texts: &Texts, ask: Ask) -> Answer {
        match ask {
            Ask::Insert { .. } => self.insert(texts, ask),
            Ask::Delete { id } => Answer::Deleted(u64::from(self.remove(|document| document.id == id))),
            Ask::DeleteVariant { variant } => {
                Answer::Deleted(u64::from(self.remove(|document| document.variant == variant)))
            }
            Ask::Get { id } => Answer::Read(self.held(id).map(|held| (held.variant, held.linked))),
            Ask::Check { family, variant } => {
                Answer::Checked(self.matches(texts, (family, variant), None).iter().map(|found| found.id).collect())
            }
        }
    }

    fn held(&self, id: u8) -> Option<Document> {
        self.0.iter().find(|document| document.id == id).copied()
    }

    fn first(&self, cluster: u8, except: Option<u8>) -> Option<Document> {
        self.0.iter().find(|document| document.cluster == cluster && Some(document.id) != except).copied()
    }

    /// Removes documents. The first remaining document of a cluster is no longer a link.
    fn remove(&mut self, which: impl Fn(&Document) -> bool) -> u8 {
        let before = self.0.len();
        self.0.retain(|document| !which(document));
        for cluster in 0..u8::MAX {
            let Some(first) = self.first(cluster, None) else { continue };
            let first = self.0.iter_mut().find(|document| document.id == first.id).unwrap();
            first.linked = false;
        }
        self.number_clusters();
        (before - self.0.len()) as u8
    }

    fn number_clusters(&mut self) {
        let mut names = Vec::new();
        for document in &mut self.0 {
            let known = names.iter().position(|&name| name == document.cluster);
            let number = known.unwrap_or(names.len());
            if known.is_none() {
                names.push(document.cluster);
            }
            document.cluster = number as u8;
        }
    }

    /// Returns the documents that a lookup finds, best first. Links are found only if they have exactly the same text.
    fn matches(&self, texts: &Texts, (family, variant): (u8, u8), own: Option<u8>) -> Vec<Document> {
        let is_found = |document: &&Document| {
            let is_alike = document.family == family && (!document.linked || document.variant == variant);
            is_alike && Some(document.id) != own
        };
        let mut found: Vec<Document> = self.0.iter().filter(is_found).copied().collect();
        // Equally similar documents stay in the order in which they were stored.
        found.sort_by_key(|found| (found.variant != variant, usize::MAX - texts.slots(family, variant, found.variant)));
        found
    }

    fn insert(&mut self, texts: &Texts, ask: Ask) -> Answer {
        let Ask::Insert { id, family, variant, on_duplicate, on_existing } = ask else { unreachable!() };
        let held = self.held(id);
        if held.is_some_and(|held| (held.family, held.variant) == (family, variant)) {
            return Answer::Unchanged;
        }
        if held.is_some() && on_existing == "conflict" {
            return Answer::Conflict;
        }
        let matches = self.matches(texts, (family, variant), Some(id));
        let of_link = matches.first().filter(|best| best.linked).and_then(|best| self.first(best.cluster, Some(id)));
        let represents =
            |found: &&Document| self.first(found.cluster, Some(id)).is_some_and(|first| first.id == found.id);
        let to_join = of_link.or_else(|| matches.iter().find(represents).copied());
        let names_link = of_link.filter(|of_link| of_link.id != matches[0].id);
        let told = |outcome: &str, representative: Option<Document>| Answer::Judged {
            outcome: outcome.to_owned(),
            matches: matches.iter().map(|found| found.id).collect(),
            representative: representative.map(|representative| representative.id),
        };
        if held.is_some() && on_existing == "keep" {
            return told("skipped", names_link);
        }
        if !matches.is_empty() && on_duplicate == "skip" {
            self.remove(|document| document.id == id);
            return told(if held.is_some() { "removed" } else { "skipped" }, names_link);
        }
        self.remove(|document| document.id == id);
        let linked = on_duplicate == "link" && to_join.is_some();
        // The numbers of clusters may have changed.
        let cluster = to_join.and_then(|to_join| self.held(to_join.id)).map_or(u8::MAX - 1, |joined| joined.cluster);
        self.0.push(Document { id, family, variant, linked, cluster });
        self.number_clusters();
        let outcome = if linked {
            "linked"
        } else if held.is_some() {
            "replaced"
        } else {
            "inserted"
        };
        told(outcome, to_join)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A promotion as a single client sees it.
    #[test]
    fn the_first_link_takes_the_place_of_its_original() {
        let texts = Texts::new(|_, (one, other)| if one == other { 256 } else { 240 });
        let mut state = State::default();
        let mut insert = |id, variant| {
            let ask = Ask::Insert { id, family: 0, variant, on_duplicate: "link", on_existing: "replace" };
            state.ask(&texts, ask)
        };
        insert(0, 0);
        insert(1, 1);
        insert(2, 1);
        let mut check = |ask| state.ask(&texts, ask);
        assert_eq!(check(Ask::Check { family: 0, variant: 2 }), Answer::Checked(vec![0]));
        assert_eq!(check(Ask::Check { family: 0, variant: 1 }), Answer::Checked(vec![1, 2, 0]));
        assert_eq!(check(Ask::Delete { id: 0 }), Answer::Deleted(1));
        assert_eq!(check(Ask::Check { family: 0, variant: 2 }), Answer::Checked(vec![1]));
        assert_eq!(check(Ask::Get { id: 2 }), Answer::Read(Some((1, true))));
    }
}
