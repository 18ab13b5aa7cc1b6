//! When a representative is deleted, the next first-seen member takes its place. This member may be a link, and other
//! operations may fail or run at the same time.

use hapax::collections::{BandingAsked, Changes, CollectionError};
use hapax::types::{OnDuplicate, Outcome, VerdictKind};
use hapax_core::Banding;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::given::{
    SHAPE, Signature, THRESHOLD, base, begin, check, cluster, insert, made, name, representative, with,
};
use crate::support::documents::id;
use crate::support::library::{self, Dir};

/// In an earlier version, a link that was added and promoted in one transaction was subtracted from the count of links,
/// although it had not been added to this count.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_promoted_before_it_is_on_disk_is_counted_once() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    let other = |number: u8| -> Signature { std::array::from_fn(|slot| slot as u8 ^ (128 + number)) };
    let far = other(0);
    for (representative, signature) in [("a", base()), ("b", far)] {
        insert(&collection, representative, &signature, OnDuplicate::Store).await;
    }
    insert(&collection, "stays a link", &far, OnDuplicate::Link).await;
    for round in 0..3 {
        let held = library::hold(&dir, name().as_str());
        // While the committer is blocked on this decision, the next two decisions wait, and then share a transaction.
        let filler = begin(&collection, &format!("filler{round}"), &other(round + 1), OnDuplicate::Store).await;
        let link = begin(&collection, &format!("link{round}"), &base(), OnDuplicate::Link).await;
        let first = if round == 0 { "a".to_owned() } else { format!("link{}", round - 1) };
        let deleted = collection.delete(id(&first)).await.unwrap();
        held.execute_batch("COMMIT").unwrap();
        filler.wait().await.unwrap();
        assert_eq!(link.wait().await.unwrap().outcome, Outcome::Linked);
        assert!(deleted.wait().await.unwrap());
        let described = collection.describe();
        assert_eq!((described.documents, described.linked), (4 + u64::from(round), Some(1)), "round {round}");
    }
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_representative_is_followed_by_the_next_first_seen_a_link_too() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    insert(&collection, "a", &base(), OnDuplicate::Store).await;
    let linked = insert(&collection, "b", &with(0, 10, 200), OnDuplicate::Link).await;
    assert_eq!((linked.outcome, representative(&linked)), (Outcome::Linked, Some("a")));
    insert(&collection, "c", &with(50, 60, 200), OnDuplicate::Store).await;
    let like_b = with(0, 20, 200);
    assert_eq!(check(&collection, &like_b).await, Vec::<String>::new(), "a link is not found");
    assert_eq!(collection.describe().linked, Some(1));

    assert!(collection.delete(id("a")).await.unwrap().wait().await.unwrap());
    assert_eq!(cluster(&collection, "c").await, ["b", "c"]);
    assert_eq!(check(&collection, &like_b).await, ["b"]);
    let described = collection.describe();
    assert_eq!((described.documents, described.linked), (2, Some(0)));
    let promoted = collection.document(&id("b")).await.unwrap().unwrap();
    assert_eq!((promoted.linked, promoted.representative), (false, None));
    let page = collection.cluster(id("c"), None, 10).await.unwrap().unwrap();
    assert!(page.members[1].similarity.unwrap().value < THRESHOLD, "c was judged against a");
    assert!(page.members[1].below_threshold);
    let joins = insert(&collection, "d", &like_b, OnDuplicate::Link).await;
    assert_eq!(representative(&joins), Some("b"));

    // A replaced document leaves its cluster, and the new content is compared again.
    let replaced = insert(&collection, "b", &with(40, 50, 200), OnDuplicate::Store).await;
    assert_eq!(replaced.outcome, Outcome::Replaced);
    assert_eq!(cluster(&collection, "d").await, ["c", "d"]);
    assert!(collection.delete(id("c")).await.unwrap().wait().await.unwrap());
    assert_eq!(cluster(&collection, "d").await, ["d"]);
    assert_eq!(check(&collection, &like_b).await, ["d"]);
    assert_eq!(collection.describe().linked, Some(0));
    library::close(collections).await;
    let collections = library::open(library::config(&dir));
    let collection = collections.get(&name()).await.unwrap();
    assert_eq!(check(&collection, &like_b).await, ["d"]);
    assert_eq!(collection.describe().linked, Some(0));
    library::close(collections).await;
}

/// Makes the file refuse changes of flags, so that a deletion that promotes a link fails.
fn refuse_promotions(dir: &Dir) -> rusqlite::Connection {
    let path = dir.path().join(format!("data/collections/{}.sqlite", name()));
    let connection = rusqlite::Connection::open(path).unwrap();
    let trigger = "CREATE TRIGGER refusing BEFORE UPDATE ON signature BEGIN SELECT RAISE(ABORT, 'refused'); END";
    connection.execute_batch(trigger).unwrap();
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_commit_undoes_promotions_and_whoever_joined_since() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    insert(&collection, "a", &base(), OnDuplicate::Store).await;
    insert(&collection, "b", &with(0, 10, 200), OnDuplicate::Link).await;
    insert(&collection, "c", &with(50, 60, 200), OnDuplicate::Store).await;
    let other = refuse_promotions(&dir);
    let like_b = with(0, 20, 200);
    for round in 0..20 {
        // The disk first refuses a decision that was sent alone. Then several decisions are sent together, before the
        // disk refuses the first of them.
        let gone = match round % 2 {
            0 => collection.delete(id("a")).await.unwrap().wait().await.err(),
            _ => begin(&collection, "a", &with(0, 60, 7), OnDuplicate::Store).await.wait().await.err(),
        };
        assert!(matches!(gone, Some(CollectionError::WriteFailed { .. })), "round {round}: {gone:?}");
        let deleted = collection.delete(id("a")).await.unwrap();
        let joins = begin(&collection, "d", &like_b, OnDuplicate::Store).await;
        let again = collection.delete(id("b")).await.unwrap();
        let replaces = begin(&collection, "e", &with(50, 62, 200), OnDuplicate::Link).await;
        assert!(deleted.wait().await.is_err());
        let joined = joins.wait().await;
        let went = again.wait().await;
        let linked = replaces.wait().await;
        // Decisions made after the failure do not depend on the promotion, and are kept.
        if let Ok(verdict) = joined {
            assert_eq!((verdict.kind, verdict.representative), (VerdictKind::Unique, None));
            assert!(collection.delete(id("d")).await.unwrap().wait().await.unwrap());
        }
        if went.is_ok() {
            // `c` is inserted again after `b`: if `c` were next in the cluster, no link would be promoted.
            insert(&collection, "b", &with(0, 10, 200), OnDuplicate::Link).await;
            assert!(collection.delete(id("c")).await.unwrap().wait().await.unwrap());
            insert(&collection, "c", &with(50, 60, 200), OnDuplicate::Store).await;
        }
        if linked.is_ok() {
            assert!(collection.delete(id("e")).await.unwrap().wait().await.unwrap());
        }
        assert_eq!(cluster(&collection, "b").await, ["a", "b", "c"]);
        assert_eq!(collection.describe().linked, Some(1));
        assert_eq!(check(&collection, &like_b).await, Vec::<String>::new(), "b is a link again");
        let probe = insert(&collection, "f", &with(30, 40, 200), OnDuplicate::Link).await;
        assert_eq!(representative(&probe), Some("a"));
        assert!(collection.delete(id("f")).await.unwrap().wait().await.unwrap());
    }
    other.execute_batch("DROP TRIGGER refusing").unwrap();
    assert!(collection.delete(id("a")).await.unwrap().wait().await.unwrap());
    assert_eq!(cluster(&collection, "c").await, ["b", "c"]);
    assert_eq!(check(&collection, &like_b).await, ["b"]);
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_pass_over_a_promoted_link_until_that_is_on_disk_and_deciders_do_not() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    let like_b = with(0, 20, 200);
    insert(&collection, "a", &base(), OnDuplicate::Store).await;
    insert(&collection, "b", &with(0, 10, 200), OnDuplicate::Link).await;
    // Another program has locked the file, so the decisions wait.
    let other = rusqlite::Connection::open(dir.path().join(format!("data/collections/{}.sqlite", name()))).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let deleted = collection.delete(id("a")).await.unwrap();
    let joins = begin(&collection, "c", &like_b, OnDuplicate::Link).await;
    assert_eq!(check(&collection, &like_b).await, Vec::<String>::new());
    assert_eq!(check(&collection, &base()).await, ["a"]);
    assert!(collection.document(&id("b")).await.unwrap().unwrap().linked);
    assert_eq!(cluster(&collection, "b").await, ["a", "b"]);
    assert_eq!(collection.describe().linked, Some(1));
    other.execute_batch("ROLLBACK").unwrap();
    assert!(deleted.wait().await.unwrap());
    let joined = joins.wait().await.unwrap();
    assert_eq!((joined.outcome, representative(&joined)), (Outcome::Linked, Some("b")));
    assert_eq!(check(&collection, &like_b).await, ["b"]);
    assert_eq!(cluster(&collection, "b").await, ["b", "c"]);
    library::close(collections).await;
}

/// A promotion happens while the index is rebuilt. Afterwards the link is found, whichever happened first.
#[tokio::test(flavor = "multi_thread")]
async fn links_promoted_during_a_rebanding_are_found_after_it() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    let signature = |number: u16| -> Signature {
        let mut random = ChaCha8Rng::seed_from_u64(u64::from(number));
        std::array::from_fn(|_| random.random())
    };
    const CLUSTERS: u16 = 2000;
    let mut tickets = Vec::new();
    for number in 0..CLUSTERS {
        tickets.push(begin(&collection, &format!("a{number}"), &signature(number), OnDuplicate::Store).await);
        tickets.push(begin(&collection, &format!("b{number}"), &signature(number), OnDuplicate::Link).await);
    }
    for ticket in tickets {
        ticket.wait().await.unwrap();
    }
    let deleting = {
        let collection = collection.clone();
        tokio::spawn(async move {
            let mut tickets = Vec::new();
            for number in 0..CLUSTERS {
                tickets.push(collection.delete(id(format!("a{number}"))).await.unwrap());
            }
            for ticket in tickets {
                ticket.wait().await.unwrap();
            }
        })
    };
    for (bands, rows) in [(16, 4), (32, 2), (21, 3)] {
        let banding = BandingAsked::ByHand(Banding::new(bands, rows, SHAPE).unwrap());
        collection.update(Changes { banding: Some(banding), ..Changes::default() }).await.unwrap();
    }
    deleting.await.unwrap();
    for number in 0..CLUSTERS {
        assert_eq!(check(&collection, &signature(number)).await, [format!("b{number}")]);
    }
    assert_eq!(collection.describe().linked, Some(0));
    library::close(collections).await;
}
