//! Types: where their methods are, and what they are called.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, Type};

use super::house::House;
use super::modules::{FileId, ModuleId, Target};
use super::tests_only::tests_only;

/// Types whose inherent `impl` blocks are in several files.
pub fn scattered(house: &House) -> Vec<String> {
    let mut impls: BTreeMap<(FileId, String), BTreeSet<(FileId, usize)>> = BTreeMap::new();
    for (&file, &module) in &house.modules.of_file {
        if !house.modules.all[module].tests_only {
            inherent(house, module, &house.sources[file].syntax.items, &mut |name, home, line| {
                impls.entry((home, name)).or_default().insert((file, line));
            });
        }
    }
    let mut found = Vec::new();
    for ((home, name), places) in impls {
        let files: BTreeSet<_> = places.iter().map(|(file, _)| file).collect();
        if files.len() > 1 {
            let path = |file: FileId| &house.sources[file].path;
            let places: Vec<_> = places.iter().map(|&(file, line)| format!("{}:{line}", path(file))).collect();
            found.push(format!("{name} of {}: {}", path(home), places.join(", ")));
        }
    }
    found
}

/// Tells each inherent `impl`: the type's name, its file, and the line.
fn inherent(house: &House, module: ModuleId, items: &[Item], tell: &mut impl FnMut(String, FileId, usize)) {
    for item in items {
        match item {
            Item::Impl(block) if block.trait_.is_none() && !tests_only(&block.attrs) => {
                let Type::Path(path) = &*block.self_ty else { continue };
                let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
                for target in house.modules.resolve(module, &names) {
                    if let Target::Item(home) = target {
                        let name = names.last().expect("a path names something").clone();
                        tell(name, home, block.impl_token.span.start().line);
                    }
                }
            }
            Item::Mod(inner) if !tests_only(&inner.attrs) => {
                let Some((_, items)) = &inner.content else { continue };
                for target in house.modules.resolve(module, &[inner.ident.to_string()]) {
                    if let Target::Module(inner) = target {
                        inherent(house, inner, items, tell);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Names that several types bear: not of tests, and not of a macro.
pub fn twins(house: &House) -> Vec<String> {
    let mut homes: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (&file, &module) in &house.modules.of_file {
        if !house.modules.all[module].tests_only {
            let mut names = Vec::new();
            named(&house.sources[file].syntax.items, &mut names);
            names.into_iter().for_each(|name| {
                homes.entry(name).or_default().insert(&house.sources[file].path);
            });
        }
    }
    homes.retain(|_, files| files.len() > 1);
    let files = |files: BTreeSet<&str>| files.into_iter().collect::<Vec<_>>().join(", ");
    homes.into_iter().map(|(name, homes)| format!("{name}: {}", files(homes))).collect()
}

/// Names of structs and enums.
fn named(items: &[Item], names: &mut Vec<String>) {
    for item in items {
        match item {
            Item::Struct(item) if !tests_only(&item.attrs) => names.push(item.ident.to_string()),
            Item::Enum(item) if !tests_only(&item.attrs) => names.push(item.ident.to_string()),
            Item::Mod(item) if !tests_only(&item.attrs) => {
                named(item.content.as_ref().map_or(&[], |(_, items)| items), names);
            }
            _ => {}
        }
    }
}

#[test]
fn methods_in_several_files_are_found() {
    let files = [
        ("src/lib.rs", "mod a; mod b; pub use a::A;"),
        ("src/a.rs", "pub struct A<T>(T); impl<T> A<T> {} impl Drop for A {}"),
        ("src/b.rs", "use crate::A; impl A<u8> {} impl Clone for A<u8> {} #[cfg(test)] impl A<u16> {}"),
    ];
    let found = scattered(&House::built("src", &files, &[]));
    assert_eq!(found, ["A of src/a.rs: src/a.rs:1, src/b.rs:1"]);
    let apart = [("src/lib.rs", "mod a;"), files[1]];
    assert!(scattered(&House::built("src", &apart, &[])).is_empty());
}

#[test]
fn types_of_one_name_are_found() {
    let files = [
        ("src/lib.rs", "mod a; mod b; struct C;"),
        ("src/a.rs", "struct A; mod inner { enum B {} } #[cfg(test)] struct C; fn f() { struct B; }"),
        ("src/b.rs", "struct B(A); type A = u8; #[cfg(test)] mod tests { struct A; }"),
    ];
    assert_eq!(twins(&House::built("src", &files, &[])), ["B: src/a.rs, src/b.rs"]);
}
