//! Imports between the children of `src` go only to lower floors.

use super::house::House;
use super::imports::Edge;

/// Returns the imports from the same floor or a higher one.
pub fn upward(house: &House, floors: &[(&str, u8)]) -> Vec<String> {
    between(house, |from, to| {
        let of = |module: &str| {
            let floor = floors.iter().find(|(name, _)| *name == module).map(|(_, floor)| *floor);
            floor.unwrap_or_else(|| panic!("{module} has no floor; give it one"))
        };
        of(to) >= of(from)
    })
}

/// Returns the imports by these folders that bypass the facade.
pub fn past_the_facade(house: &House, above: &[&str], under: &[&str]) -> Vec<String> {
    between(house, |from, to| above.contains(&from) && under.contains(&to))
}

/// Returns the imports from one child of `src` to another that are `wrong`.
fn between(house: &House, wrong: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let told = |edge: &Edge| {
        let [from, to] = [edge.from, edge.to].map(|file| house.paths[file].as_str());
        let [own, other] = [from, to].map(super::child_of_src);
        // These two may import every floor.
        let sees_all = own == "lib" || own == "main";
        let wrong = own != other && !sees_all && wrong(own, other);
        wrong.then(|| format!("{from}:{} imports {} of {to}", edge.line, edge.path))
    };
    house.imports.edges.iter().filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOORS: [(&str, u8); 4] = [("store", 2), ("index", 2), ("engine", 4), ("collections", 5)];

    fn house(engine: &str) -> House {
        let files = [
            ("src/lib.rs", "pub mod store; pub mod index; pub mod engine; pub mod collections; use collections::Name;"),
            ("src/store.rs", "pub struct Store;"),
            ("src/index.rs", "pub struct Index;"),
            ("src/engine.rs", engine),
            (
                "src/collections/mod.rs",
                "mod open; pub use open::Collections; pub type Name = u8; pub use crate::store::Store;",
            ),
            ("src/collections/open.rs", "pub struct Collections;"),
        ];
        House::built("src", &files, &[])
    }

    #[test]
    fn no_part_can_hold_the_facade() {
        let holders = [
            "struct Part { all: crate::collections::Collections }",
            "struct Part { all: Arc<super::collections::Collections> }",
            "use crate::collections::{self as up, *}; struct Part { all: Weak<Collections> }",
            "use crate::collections as up; struct Part(Option<up::Collections>);",
            "struct Part { name: crate::Name }",
        ];
        for holder in holders {
            let found = upward(&house(holder), &FLOORS);
            assert_eq!(found.len(), 1, "{holder}: {found:?}");
            assert!(found[0].starts_with("src/engine.rs:1 imports"), "{found:?}");
        }
        assert!(upward(&house("struct Part(crate::store::Store);"), &FLOORS).is_empty());
    }

    #[test]
    fn a_re_export_counts_as_an_import_of_what_it_hides() {
        // The path leads through the facade, but the item belongs to the store. The import goes down, but it bypasses
        // the facade.
        let house = house("struct Part(crate::collections::Store);");
        assert!(upward(&house, &FLOORS).is_empty());
        let found = past_the_facade(&house, &["engine"], &["store"]);
        assert_eq!(found, ["src/engine.rs:1 imports crate::collections::Store of src/store.rs"]);
    }

    #[test]
    fn neighbours_of_one_floor_do_not_know_each_other() {
        let files = [
            ("src/lib.rs", "mod store; mod index;"),
            ("src/store.rs", "use crate::index::X;"),
            ("src/index.rs", "pub struct X;"),
        ];
        assert_eq!(upward(&House::built("src", &files, &[]), &FLOORS).len(), 1);
    }
}
