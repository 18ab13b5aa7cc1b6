//! The rules of a write. In: the client's options, the content that the id holds, and the findings of the lookup. Out:
//! the answer, and the changes to make. Pure: it knows nothing of the index, the store, locks or time.
//!
//! The caller asks in this order and stops at the first plan:
//! 1. [`of_empty`] if the content has no token. Such content is never stored, and no lookup is made.
//! 2. [`before_lookup`]. It handles content that the id already holds, and conflicts. No lookup is needed for this.
//! 3. [`after_lookup`].
//!
//! Only a plan that [stores](Effect::stores) a document needs room. If there is no room, [`Plan::without_room`]
//! replaces the plan.

use crate::types::{OnDuplicate, OnExisting, Outcome};

/// The client's options and the collection's settings that the rules use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTerms {
    pub on_duplicate: OnDuplicate,
    pub on_existing: OnExisting,
    /// Whether inserting a duplicate of a document counts as seeing that document.
    pub touch: bool,
}

/// The content that the id holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Nothing,
    /// The same content as was sent.
    Same {
        /// How the metadata, labels and capture that were sent compare with those of the document.
        sent: SentBeside,
        /// Whether the first verdict, which is repeated, names a duplicate.
        was_duplicate: bool,
    },
    Other {
        /// Whether the document that holds the id represents a cluster, and the next document of this cluster is a
        /// link.
        heir_is_link: bool,
    },
}

/// The metadata, labels and capture that were sent, compared with those of the document. If the document has no
/// metadata, `{}` is `Equal`, but metadata that was left out is `Absent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentBeside {
    Absent,
    Equal,
    Other,
}

/// The duplicates that the lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// No document at or above the threshold.
    None,
    Found {
        best: BestMatch,
        /// Whether there is a document to join: the representative of the best match if the best match is a link,
        /// otherwise the best match that is a representative. Both are determined as if the held document had already
        /// left.
        representative: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BestMatch {
    Document,
    /// A link to another document.
    Link,
    /// A link that represents its cluster itself once the held document has left.
    Heir,
}

/// The answer, and the changes to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub result: Result<Outcome, Refusal>,
    pub named: Named,
    pub effect: Effect,
    pub seen_again: SeenAgain,
}

/// The reason for refusing a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The id holds other content, and the client did not say what to do with it.
    Conflict,
    /// The memory budget has no room for another document.
    NoRoom,
}

/// The representative that the answer names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Nothing,
    /// The representative of the held document, unless the held document represents its cluster itself.
    OfHeld,
    /// The representative of the cluster that the new document joins.
    Joined,
    /// The representative of the best match, which is a link.
    OfBestMatch,
}

/// The change to the collection. In a replacement, the old document leaves before the new one enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// The held document gets the metadata, labels and capture that were sent.
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
    /// Whether the next document of its cluster is a link, which becomes an ordinary document to represent the cluster.
    pub promotes: bool,
}

/// How the new document enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Whether the new document is a link, which similarity lookups do not find.
    pub linked: bool,
    /// Whether the new document joins the cluster of the representative that was found. If not, it founds a cluster.
    pub joins: bool,
}

/// The documents that count as seen again, even if the write is refused for lack of room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenAgain {
    pub held: bool,
    /// The best match of the answered verdict, if it still exists.
    pub best: bool,
    /// The representative of the best match, which is a link.
    pub representative: bool,
}

impl Effect {
    /// Returns whether a document is added to the index, which needs room in the memory budget.
    pub(crate) fn stores(self) -> bool {
        matches!(self, Self::Insert(_) | Self::Replace(..))
    }
}

impl Plan {
    /// Returns whether the answer says that the id now holds this content.
    pub(crate) fn stored(&self) -> bool {
        match self.result {
            Err(_) => false,
            Ok(Outcome::Checked | Outcome::Skipped | Outcome::Removed) => false,
            Ok(Outcome::Inserted | Outcome::Replaced | Outcome::Unchanged | Outcome::Updated | Outcome::Linked) => true,
        }
    }

    /// Returns the plan to use instead of this one if there is no room. Call it only for a plan that stores a document.
    pub(crate) fn without_room(self) -> Self {
        let nothing = Self::new(Err(Refusal::NoRoom), Effect::Nothing);
        Self { seen_again: self.seen_again, ..nothing }
    }

    fn new(result: Result<Outcome, Refusal>, effect: Effect) -> Self {
        Self { result, named: Named::Nothing, effect, seen_again: SeenAgain::default() }
    }
}

/// Returns the plan for content without a token. Such content is never stored. At most, the content that the id holds
/// is removed.
pub(crate) fn of_empty(on_existing: OnExisting, held: Held) -> Plan {
    match (on_existing, held) {
        (OnExisting::Replace, Held::Other { heir_is_link }) => {
            Plan::new(Ok(Outcome::Removed), Effect::Remove(Departure { promotes: heir_is_link }))
        }
        _ => Plan::new(Ok(Outcome::Skipped), Effect::Nothing),
    }
}

/// Returns the plan before the lookup, if the content that the id holds determines it.
pub(crate) fn before_lookup(terms: WriteTerms, held: Held) -> Option<Plan> {
    match held {
        Held::Same { sent, was_duplicate } => {
            let updates = sent == SentBeside::Other && terms.on_existing != OnExisting::Keep;
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

/// Returns the plan after the lookup, if [`before_lookup`] returned none.
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
        // If the best match is an heir, it represents its cluster itself once the held document has left. The answer
        // names the best match anyway, so no representative is added.
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

/// Returns the change for content that the id does not hold yet.
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

/// Returns the change for a delete. `heir_is_link` is as in [`Held::Other`]; `None` if the id holds nothing.
pub(crate) fn of_delete(heir_is_link: Option<bool>) -> Effect {
    heir_is_link.map_or(Effect::Nothing, |promotes| Effect::Remove(Departure { promotes }))
}

#[cfg(test)]
mod tests;
