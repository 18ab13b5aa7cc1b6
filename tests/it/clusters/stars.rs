//! The rules by which documents join clusters.

use hapax::types::{OnDuplicate, Outcome, VerdictKind};

use super::given::{alike, base, check, cluster, insert, made, representative, with};
use crate::support::documents::id;
use crate::support::library::{self};

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_whose_ends_are_unlike_makes_two_stars() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    // Neighbours in this list differ in ten slots. Signatures that are two places apart differ in twenty.
    let [a, b, c, d] = [with(0, 0, 200), with(0, 10, 200), with(0, 20, 200), with(0, 30, 200)];
    for (one, other, like) in [(a, b, true), (b, c, true), (c, d, true), (a, c, false), (b, d, false), (a, d, false)] {
        assert_eq!(alike(&one, &other), like);
    }
    let first = insert(&collection, "a", &a, OnDuplicate::Store).await;
    assert_eq!((first.kind, representative(&first)), (VerdictKind::Unique, None));
    let second = insert(&collection, "b", &b, OnDuplicate::Store).await;
    assert_eq!((second.kind, representative(&second)), (VerdictKind::NearDuplicate, Some("a")));
    let third = insert(&collection, "c", &c, OnDuplicate::Store).await;
    assert_eq!(third.duplicate_of, Some(id("b")));
    assert_eq!(representative(&third), None, "c is like b, but not like a, who stands for b");
    let fourth = insert(&collection, "d", &d, OnDuplicate::Store).await;
    assert_eq!((fourth.duplicate_of.as_ref(), representative(&fourth)), (Some(&id("c")), Some("c")));
    // This signature is similar to b and to c, but only c is a representative.
    let between = with(0, 15, 200);
    let fifth = insert(&collection, "e", &between, OnDuplicate::Store).await;
    assert_eq!(representative(&fifth), Some("c"));

    for name in ["a", "b"] {
        assert_eq!(cluster(&collection, name).await, ["a", "b"]);
    }
    for name in ["c", "d", "e"] {
        assert_eq!(cluster(&collection, name).await, ["c", "d", "e"]);
    }
    let stored = collection.document(&id("d")).await.unwrap().unwrap();
    assert_eq!(stored.representative, Some(id("c")));
    // A retry repeats the answer.
    let again = insert(&collection, "d", &d, OnDuplicate::Store).await;
    assert_eq!((again.outcome, representative(&again)), (Outcome::Unchanged, Some("c")));
    library::close(collections).await;
}

/// If a cluster's founder were a link, no lookup would ever find the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_resembles_members_only_is_stored() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    insert(&collection, "a", &base(), OnDuplicate::Store).await;
    insert(&collection, "b", &with(0, 10, 200), OnDuplicate::Store).await;
    let third = insert(&collection, "c", &with(0, 20, 200), OnDuplicate::Link).await;
    assert_eq!((third.outcome, third.duplicate_of.as_ref()), (Outcome::Inserted, Some(&id("b"))));
    assert_eq!(check(&collection, &with(0, 30, 200)).await, ["c"]);
    let fourth = insert(&collection, "d", &with(0, 30, 200), OnDuplicate::Link).await;
    assert_eq!((fourth.outcome, representative(&fourth)), (Outcome::Linked, Some("c")));
    assert_eq!(collection.describe().linked, Some(1));
    library::close(collections).await;
}
