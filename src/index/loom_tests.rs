//! The arena's sequence lock under every order of loads and stores that the memory model allows: `make loom`.

use std::sync::Arc;

use hapax_core::SignatureShape;
use loom::thread;

use super::arena::{Arena, Entry};
use super::labels::{AllLabels, LabelSet};
use super::place::Place;
use crate::types::{LabelLimits, Labels, Scope, ScopeTerm, Seq, TimestampMs};

const SHAPE: SignatureShape = SignatureShape { k: 16, bits: 8 };
const PLACE: Place = Place(0);

fn publish(arena: &Arena, seq: u64) {
    let signature = [seq as u8; 16];
    arena.publish(
        PLACE,
        Entry {
            seq: Seq(seq),
            id_fingerprint: seq,
            content: seq,
            linked: false,
            signature: &signature,
            labels: LabelSet::NONE,
            last_seen: TimestampMs(0),
        },
    );
}

/// A read returns one whole document, or nothing.
fn check(arena: &Arena) {
    let mut words = [0; 2];
    if let Some(occupant) = arena.read(PLACE, &mut words) {
        assert_eq!(occupant.content, occupant.seq.0, "the content of another document");
        assert_eq!(words, [u64::from_ne_bytes([occupant.seq.0 as u8; 8]); 2], "the signature of another document");
    }
}

#[test]
fn a_place_that_is_published_while_it_is_read() {
    loom::model(|| {
        let arena = Arc::new(Arena::new(SHAPE));
        let writer = thread::spawn({
            let arena = Arc::clone(&arena);
            move || publish(&arena, 1)
        });
        check(&arena);
        writer.join().unwrap();
        assert_eq!(arena.peek(PLACE).unwrap().seq, Seq(1));
    });
}

#[test]
fn a_place_that_is_freed_and_used_again_while_it_is_read() {
    loom::model(|| {
        let arena = Arc::new(Arena::new(SHAPE));
        publish(&arena, 1);
        let writer = thread::spawn({
            let arena = Arc::clone(&arena);
            move || {
                arena.free(PLACE);
                publish(&arena, 2);
            }
        });
        check(&arena);
        writer.join().unwrap();
        assert_eq!(arena.peek(PLACE).unwrap().seq, Seq(2));
    });
}

#[test]
fn a_removal_is_read_whole_while_it_is_written() {
    loom::model(|| {
        let arena = Arc::new(Arena::new(SHAPE));
        publish(&arena, 1);
        let reader = thread::spawn({
            let arena = Arc::clone(&arena);
            move || arena.peek(PLACE).map(|occupant| occupant.removed)
        });
        arena.set_removed(PLACE, Seq(2));
        let removed = reader.join().unwrap();
        assert!(matches!(removed, Some(Seq(0) | Seq(2))));
        assert_eq!(arena.peek(PLACE).unwrap().removed, Seq(2));
    });
}

#[test]
fn a_row_of_labels_that_is_used_again_while_it_is_read() {
    loom::model(|| {
        let all = Arc::new(AllLabels::new());
        let hold = |text: &str| all.hold(&Labels::parse(text).unwrap(), None, LabelLimits::NONE).unwrap();
        // Holds the label `c:1`, which the place never has.
        hold("c:1\nd:1");
        all.set(PLACE, hold("a:1"));
        let writer = thread::spawn({
            let all = Arc::clone(&all);
            move || {
                let hold = |text: &str| all.hold(&Labels::parse(text).unwrap(), None, LabelLimits::NONE).unwrap();
                let had = all.of(PLACE);
                all.set(PLACE, hold("b:1"));
                all.release(had);
                hold("c:1");
            }
        });
        let scope = Scope::new(vec![ScopeTerm::parse("c:1").unwrap()]).unwrap();
        assert!(!all.scope(&scope).takes_place(PLACE));
        writer.join().unwrap();
    });
}
