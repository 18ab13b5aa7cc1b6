//! Parts are structs whose state changes while other code has references to them. Their fields are private to their
//! file. A part has methods, and its state changes: by `&mut self`, by a lock or an atomic in it, or by another part in
//! it. A struct that only carries values (a row, an answer, a setting) is not a part, and its fields may be public.

use std::collections::BTreeSet;

use super::house::House;
use super::types::{Key, Shape, Types};

/// Types whose state changes behind a shared reference.
const CHANGING: [&str; 12] = [
    "Cell",
    "Condvar",
    "Connection",
    "DashMap",
    "JoinHandle",
    "Mutex",
    "Notify",
    "OnceLock",
    "RefCell",
    "RwLock",
    "Semaphore",
    "Sender",
];

/// Returns each part with the fields that other files can reach.
pub fn open(house: &House) -> Vec<String> {
    let parts = parts(&house.types);
    let open = house.types.iter().filter(|(key, shape)| parts.contains(key) && !shape.open.is_empty());
    open.map(|((file, name), shape)| format!("{}:{} {name}: {}", house.paths[*file], shape.line, shape.open.join(", ")))
        .collect()
}

/// Returns the structs whose state changes, and the structs that contain one of them.
fn parts(types: &Types) -> BTreeSet<&Key> {
    let acting: Vec<_> = types.iter().filter(|(_, shape)| shape.acts).collect();
    let mut parts: BTreeSet<&Key> = acting.iter().filter(|(_, shape)| changes(shape)).map(|(key, _)| *key).collect();
    loop {
        let holders = acting.iter().filter(|(_, shape)| shape.holds.iter().any(|held| parts.contains(held)));
        let holders: BTreeSet<&Key> = holders.map(|(key, _)| *key).collect();
        if holders.is_subset(&parts) {
            return parts;
        }
        parts.extend(holders);
    }
}

fn changes(shape: &Shape) -> bool {
    shape.is_changed || shape.names.iter().any(|name| name.starts_with("Atomic") || CHANGING.contains(&name.as_str()))
}

#[test]
fn a_part_is_known_by_what_changes_in_it() {
    let text = [
        "pub struct Row { pub a: u8 } impl Row { fn bytes(&self) {} }",
        "pub struct Tally { pub b: u8 } impl Tally { fn add(&mut self) {} }",
        "pub struct Queue { pub(super) c: Arc<Mutex<Vec<u8>>>, d: u8 } impl Queue { fn take(&self) {} }",
        "pub struct Count(pub AtomicU64); mod inner { impl super::Count { fn get(&self) {} } }",
        "pub struct Passive { pub e: Mutex<u8> } impl Passive { fn new() {} }",
        "pub struct Closed { f: Mutex<u8> } impl Closed { fn get(&self) {} }",
        "#[cfg(test)] pub struct Tested { pub g: Mutex<u8> } #[cfg(test)] impl Tested { fn get(&self) {} }",
    ];
    let text = text.join("\n");
    let outer = "use crate::Queue; struct Holder { pub h: Option<Queue> } impl Holder { fn get(self) {} }";
    let files = [("src/lib.rs", "mod a; mod b; pub use a::Queue;"), ("src/a.rs", &text), ("src/b.rs", outer)];
    let mut found = open(&House::built("src", &files, &[]));
    found.sort();
    let expected = ["src/a.rs:2 Tally: b", "src/a.rs:3 Queue: c", "src/a.rs:4 Count: 0", "src/b.rs:1 Holder: h"];
    assert_eq!(found, expected);
}
