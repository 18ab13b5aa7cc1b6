//! Parts: structs whose state changes while others hold them. Their fields are private to their file.
//! A part has methods, and changes: by `&mut self`, by a lock or an atomic in it, or by a part in it.
//! What only carries values (a row, an answer, a setting) is none, and may be open.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Item, Type};

use super::house::House;
use super::modules::{FileId, ModuleId, Target};
use super::tests_only::tests_only;

/// Standing for state that changes behind a shared reference.
const CHANGING: [&str; 12] = [
    "Mutex",
    "RwLock",
    "Condvar",
    "Semaphore",
    "OnceLock",
    "Cell",
    "RefCell",
    "DashMap",
    "Connection",
    "JoinHandle",
    "Sender",
    "Notify",
];

/// A type, by the file that defines it and its name.
type Key = (FileId, String);

#[derive(Default)]
struct Struct {
    line: usize,
    /// Fields that other files can reach.
    open: Vec<String>,
    /// Types of the crate that the fields name.
    holds: BTreeSet<Key>,
    acts: bool,
    changes: bool,
}

/// Each part with its fields that other files can reach.
pub fn open(house: &House) -> Vec<String> {
    let structs = read(house);
    let parts = parts(&structs);
    let open = structs.iter().filter(|(key, found)| parts.contains(key) && !found.open.is_empty());
    open.map(|((file, name), found)| {
        format!("{}:{} {name}: {}", house.sources[*file].path, found.line, found.open.join(", "))
    })
    .collect()
}

/// Those that change, and those that hold one of them.
fn parts(structs: &BTreeMap<Key, Struct>) -> BTreeSet<&Key> {
    let mut parts: BTreeSet<&Key> =
        structs.iter().filter(|(_, found)| found.changes && found.acts).map(|(key, _)| key).collect();
    loop {
        let more: Vec<_> = structs
            .iter()
            .filter(|(key, found)| {
                found.acts && !parts.contains(key) && found.holds.iter().any(|held| parts.contains(held))
            })
            .map(|(key, _)| key)
            .collect();
        if more.is_empty() {
            return parts;
        }
        parts.extend(more);
    }
}

fn read(house: &House) -> BTreeMap<Key, Struct> {
    let mut structs = BTreeMap::new();
    for (&file, &module) in &house.modules.of_file {
        if !house.modules.all[module].tests_only {
            let mut reader = Reader { house, structs: &mut structs };
            reader.items(module, &house.sources[file].syntax.items);
        }
    }
    structs
}

struct Reader<'a> {
    house: &'a House,
    structs: &'a mut BTreeMap<Key, Struct>,
}

impl Reader<'_> {
    fn items(&mut self, module: ModuleId, items: &[Item]) {
        for item in items {
            match item {
                Item::Struct(item) if !tests_only(&item.attrs) => self.struct_(module, item),
                Item::Impl(block) if block.trait_.is_none() && !tests_only(&block.attrs) => self.methods(module, block),
                Item::Mod(inner) if !tests_only(&inner.attrs) => {
                    let Some((_, items)) = &inner.content else { continue };
                    for target in self.house.modules.resolve(module, &[inner.ident.to_string()]) {
                        if let Target::Module(inner) = target {
                            self.items(inner, items);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn struct_(&mut self, module: ModuleId, item: &syn::ItemStruct) {
        let (mut holds, mut changes, mut open) = (BTreeSet::new(), false, Vec::new());
        for (at, field) in item.fields.iter().enumerate().filter(|(_, field)| !tests_only(&field.attrs)) {
            if !matches!(field.vis, syn::Visibility::Inherited) {
                open.push(field.ident.as_ref().map_or(at.to_string(), ToString::to_string));
            }
            for name in Names::of(&field.ty) {
                changes |= CHANGING.contains(&name.as_str()) || name.starts_with("Atomic");
                holds.extend(self.types(module, &[name]));
            }
        }
        let key = (self.house.modules.all[module].file, item.ident.to_string());
        let found = self.structs.entry(key).or_default();
        found.line = item.struct_token.span.start().line;
        (found.open, found.holds) = (open, holds);
        found.changes |= changes;
    }

    fn methods(&mut self, module: ModuleId, block: &syn::ItemImpl) {
        let Type::Path(path) = &*block.self_ty else { return };
        let path: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let receivers = block.items.iter().filter_map(|item| match item {
            syn::ImplItem::Fn(method) => method.sig.receiver(),
            _ => None,
        });
        let receivers: Vec<_> = receivers.collect();
        for key in self.types(module, &path) {
            let found = self.structs.entry(key).or_default();
            found.acts |= !receivers.is_empty();
            found.changes |= receivers.iter().any(|self_| self_.reference.is_some() && self_.mutability.is_some());
        }
    }

    fn types(&self, module: ModuleId, path: &[String]) -> Vec<Key> {
        let targets = self.house.modules.resolve(module, path);
        let files = targets.into_iter().filter_map(|target| match target {
            Target::Item(file) => Some(file),
            _ => None,
        });
        files.map(|file| (file, path.last().expect("a name").clone())).collect()
    }
}

/// All names in a type.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn of(type_: &Type) -> Vec<String> {
        let mut names = Self::default();
        names.visit_type(type_);
        names.0
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        self.0.push(segment.ident.to_string());
        visit::visit_path_segment(self, segment);
    }
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
