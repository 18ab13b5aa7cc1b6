//! The rules of a write: what the client asks for, what its id holds, what the lookup found -> what is answered and what
//! is to be done. Pure: it knows nothing of the index, the store, locks or time.
//!
//! The caller asks in this order and stops at the first plan:
//! 1. [`of_empty`] if the content has no token: it is never stored, and no lookup is made.
//! 2. [`before_lookup`]: content that the id holds already is answered before a conflict, and a conflict before the
//!    lookup.
//! 3. [`after_lookup`].
//!
//! Only a plan that [stores](Effect::stores) a document needs room. If there is none, [`Plan::without_room`] takes its
//! place.

use crate::types::{OnDuplicate, OnExisting, Outcome};

/// What the client asks for, and what the collection is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTerms {
    pub on_duplicate: OnDuplicate,
    pub on_existing: OnExisting,
    /// Whether a document counts as seen when a duplicate of it is inserted.
    pub touch: bool,
}

/// What the id holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Nothing,
    /// The content that was sent.
    Same {
        /// How the metadata that was sent compares with what is held.
        metadata: SentMetadata,
        /// Whether the first verdict, which is repeated, names a duplicate.
        was_duplicate: bool,
    },
    Other {
        /// Whether it represents a cluster whose next document is a link.
        heir_is_link: bool,
    },
}

/// The metadata that was sent, compared with what the id holds. `{}` is the same as none, but it is not absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentMetadata {
    Absent,
    Equal,
    Other,
}

/// Which duplicates the lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// No document at or above the threshold.
    None,
    Found {
        best: BestMatch,
        /// Whether a document to join was found: the representative of the best match if that is a link, else the best
        /// match that is a representative. Both as things stand once the held content has left.
        representative: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BestMatch {
    Document,
    /// A link to another document.
    Link,
    /// A link that represents its cluster itself once the held content has left.
    Heir,
}

/// What is answered and what is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub result: Result<Outcome, Refusal>,
    pub named: Named,
    pub effect: Effect,
    pub seen_again: SeenAgain,
}

/// Why a document is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The id holds other content, and the client did not say what is to become of it.
    Conflict,
    /// The memory budget has no room for a document more.
    NoRoom,
}

/// Which representative the answer names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Nothing,
    /// That of the held document, if it does not represent its cluster itself.
    OfHeld,
    /// That of the cluster which the new document joins.
    Joined,
    /// That of the best match, which is a link.
    OfBestMatch,
}

/// What changes in the collection. What leaves does so before its successor enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// The held document gets the metadata that was sent.
    Update,
    /// The new document enters.
    Insert(Arrival),
    /// The held document leaves, the new one enters.
    Replace(Departure, Arrival),
    /// The held document leaves.
    Remove(Departure),
}

/// How the held document leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    /// The next document of its cluster is a link, and becomes an ordinary document in its place.
    pub promotes: bool,
}

/// How the new document enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// As a link, which is not found by likeness.
    pub linked: bool,
    /// Into the cluster of the representative that was found; else it founds one of its own.
    pub joins: bool,
}

/// Which documents count as seen again. They do even if the write is refused for want of room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenAgain {
    pub held: bool,
    /// The best match of the verdict that is answered, if it is still there.
    pub best: bool,
    /// The representative of the best match, which is a link.
    pub representative: bool,
}

impl Effect {
    /// Whether a document enters, for which there must be room.
    pub(crate) fn stores(self) -> bool {
        matches!(self, Self::Insert(_) | Self::Replace(..))
    }
}

impl Plan {
    /// Whether the answer says that this content is held under this id now.
    pub(crate) fn stored(&self) -> bool {
        match self.result {
            Err(_) => false,
            Ok(Outcome::Checked | Outcome::Skipped | Outcome::Removed) => false,
            Ok(Outcome::Inserted | Outcome::Replaced | Outcome::Unchanged | Outcome::Updated | Outcome::Linked) => true,
        }
    }

    /// In place of a plan that stores a document for which there is no room.
    pub(crate) fn without_room(self) -> Self {
        let nothing = Self::new(Err(Refusal::NoRoom), Effect::Nothing);
        Self { seen_again: self.seen_again, ..nothing }
    }

    fn new(result: Result<Outcome, Refusal>, effect: Effect) -> Self {
        Self { result, named: Named::Nothing, effect, seen_again: SeenAgain::default() }
    }
}

/// For content without a token. It is never stored, so at most the content that the id holds goes.
pub(crate) fn of_empty(on_existing: OnExisting, held: Held) -> Plan {
    match (on_existing, held) {
        (OnExisting::Replace, Held::Other { heir_is_link }) => {
            Plan::new(Ok(Outcome::Removed), Effect::Remove(Departure { promotes: heir_is_link }))
        }
        _ => Plan::new(Ok(Outcome::Skipped), Effect::Nothing),
    }
}

/// Before the lookup: the plan, if what the id holds settles it.
pub(crate) fn before_lookup(terms: WriteTerms, held: Held) -> Option<Plan> {
    match held {
        Held::Same { metadata, was_duplicate } => {
            let updates = metadata == SentMetadata::Other && terms.on_existing != OnExisting::Keep;
            let (outcome, effect) = match updates {
                true => (Outcome::Updated, Effect::Update),
                false => (Outcome::Unchanged, Effect::Nothing),
            };
            let seen_again = SeenAgain { held: true, best: terms.touch && was_duplicate, representative: false };
            Some(Plan { named: Named::OfHeld, seen_again, ..Plan::new(Ok(outcome), effect) })
        }
        Held::Other { .. } if terms.on_existing == OnExisting::Conflict => {
            Some(Plan::new(Err(Refusal::Conflict), Effect::Nothing))
        }
        Held::Other { .. } | Held::Nothing => None,
    }
}

/// After the lookup, for what [`before_lookup`] did not settle.
pub(crate) fn after_lookup(terms: WriteTerms, held: Held, duplicates: Duplicates) -> Plan {
    let effect = effect(terms, held, duplicates);
    let outcome = match effect {
        Effect::Nothing | Effect::Update => Outcome::Skipped,
        Effect::Remove(_) => Outcome::Removed,
        Effect::Insert(Arrival { linked: true, .. }) | Effect::Replace(_, Arrival { linked: true, .. }) => {
            Outcome::Linked
        }
        Effect::Insert(_) => Outcome::Inserted,
        Effect::Replace(..) => Outcome::Replaced,
    };
    let best = match duplicates {
        Duplicates::None => None,
        Duplicates::Found { best, .. } => Some(best),
    };
    let named = match effect {
        Effect::Insert(Arrival { joins: true, .. }) | Effect::Replace(_, Arrival { joins: true, .. }) => Named::Joined,
        // The answer names the heir already: it is the best match.
        Effect::Nothing | Effect::Remove(_) if best == Some(BestMatch::Link) => Named::OfBestMatch,
        _ => Named::Nothing,
    };
    let seen_again = SeenAgain {
        held: false,
        best: terms.touch && best.is_some(),
        representative: terms.touch && best == Some(BestMatch::Link),
    };
    Plan { named, seen_again, ..Plan::new(Ok(outcome), effect) }
}

/// What changes for content that the id does not hold yet.
fn effect(terms: WriteTerms, held: Held, duplicates: Duplicates) -> Effect {
    let departure = match held {
        Held::Other { heir_is_link } => Some(Departure { promotes: heir_is_link }),
        Held::Nothing | Held::Same { .. } => None,
    };
    let arrival = match (duplicates, terms.on_duplicate) {
        (Duplicates::Found { .. }, OnDuplicate::Skip) => None,
        (Duplicates::Found { representative, .. }, OnDuplicate::Link) => {
            // A cluster's founder must stay searchable, so it is never stored as a link.
            Some(Arrival { linked: representative, joins: representative })
        }
        (Duplicates::Found { representative, .. }, OnDuplicate::Store) => {
            Some(Arrival { linked: false, joins: representative })
        }
        (Duplicates::None, _) => Some(Arrival { linked: false, joins: false }),
    };
    match (departure, arrival) {
        (Some(_), _) if terms.on_existing == OnExisting::Keep => Effect::Nothing,
        (Some(departure), Some(arrival)) => Effect::Replace(departure, arrival),
        (Some(departure), None) => Effect::Remove(departure),
        (None, Some(arrival)) => Effect::Insert(arrival),
        (None, None) => Effect::Nothing,
    }
}

/// For a delete. `heir_is_link` as in [`Held::Other`]; nothing if the id holds nothing.
pub(crate) fn of_delete(heir_is_link: Option<bool>) -> Effect {
    heir_is_link.map_or(Effect::Nothing, |promotes| Effect::Remove(Departure { promotes }))
}

#[cfg(test)]
mod tests;
