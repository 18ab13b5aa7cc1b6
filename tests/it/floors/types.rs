//! Sources -> structs and enums, with their fields and the places of their methods. Items for tests only are left out.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Item, Type, Visibility};

use super::house::House;
use super::modules::{FileId, ModuleId, Modules, Target};
use super::tests_only::tests_only;
use crate::support::sources::Source;

/// A type, by the file that defines it and its name.
pub type Key = (FileId, String);

#[derive(Default)]
pub struct Shape {
    pub line: usize,
    /// Whether other files can name it.
    pub visible: bool,
    /// The fields that other files can reach.
    pub open: Vec<String>,
    /// All names in the types of the fields, and then the names among them that are types of this crate.
    pub names: BTreeSet<String>,
    pub holds: BTreeSet<Key>,
    /// The files and lines of its inherent `impl` blocks.
    pub impls: BTreeSet<(FileId, usize)>,
    /// Whether a method takes `self`, and whether one takes `&mut self`.
    pub acts: bool,
    pub is_changed: bool,
}

pub type Types = BTreeMap<Key, Shape>;

pub fn of(sources: &[Source], modules: &Modules) -> Types {
    let mut types = Types::new();
    for (&file, &module) in &modules.of_file {
        if !modules.all[module].tests_only {
            Reader { modules, types: &mut types }.items(module, &sources[file].syntax.items);
        }
    }
    types
}

struct Reader<'a> {
    modules: &'a Modules,
    types: &'a mut Types,
}

impl Reader<'_> {
    fn items(&mut self, module: ModuleId, items: &[Item]) {
        for item in items {
            match item {
                Item::Struct(item) if !tests_only(&item.attrs) => {
                    let line = item.struct_token.span.start().line;
                    self.type_(module, (&item.ident, &item.vis, line), item.fields.iter());
                }
                Item::Enum(item) if !tests_only(&item.attrs) => {
                    let fields = item.variants.iter().flat_map(|variant| variant.fields.iter());
                    let line = item.enum_token.span.start().line;
                    self.type_(module, (&item.ident, &item.vis, line), fields);
                }
                Item::Impl(block) if block.trait_.is_none() && !tests_only(&block.attrs) => self.methods(module, block),
                Item::Mod(inner) if !tests_only(&inner.attrs) => {
                    let Some((_, items)) = &inner.content else { continue };
                    for target in self.modules.resolve(module, &[inner.ident.to_string()]) {
                        if let Target::Module(inner) = target {
                            self.items(inner, items);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn type_<'f>(
        &mut self,
        module: ModuleId,
        (name, visibility, line): (&syn::Ident, &Visibility, usize),
        fields: impl Iterator<Item = &'f syn::Field>,
    ) {
        let (mut open, mut names) = (Vec::new(), Names::default());
        for (at, field) in fields.enumerate().filter(|(_, field)| !tests_only(&field.attrs)) {
            if !matches!(field.vis, Visibility::Inherited) {
                open.push(field.ident.as_ref().map_or(at.to_string(), ToString::to_string));
            }
            names.visit_type(&field.ty);
        }
        let holds = names.0.iter().flat_map(|name| self.keys(module, std::slice::from_ref(name))).collect();
        let key = (self.modules.all[module].file, name.to_string());
        let shape = self.types.entry(key).or_default();
        (shape.line, shape.visible) = (line, !matches!(visibility, Visibility::Inherited));
        (shape.open, shape.names, shape.holds) = (open, names.0, holds);
    }

    fn methods(&mut self, module: ModuleId, block: &syn::ItemImpl) {
        let Type::Path(path) = &*block.self_ty else { return };
        let path: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let receivers = block.items.iter().filter_map(|item| match item {
            syn::ImplItem::Fn(method) => method.sig.receiver(),
            _ => None,
        });
        let receivers: Vec<_> = receivers.collect();
        let place = (self.modules.all[module].file, block.impl_token.span.start().line);
        for key in self.keys(module, &path) {
            let shape = self.types.entry(key).or_default();
            shape.impls.insert(place);
            shape.acts |= !receivers.is_empty();
            shape.is_changed |= receivers.iter().any(|own| own.reference.is_some() && own.mutability.is_some());
        }
    }

    fn keys(&self, module: ModuleId, path: &[String]) -> Vec<Key> {
        let files = self.modules.resolve(module, path).into_iter().filter_map(|target| match target {
            Target::Item(file) => Some(file),
            _ => None,
        });
        files.map(|file| (file, path.last().expect("a name").clone())).collect()
    }
}

/// All names in a type.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        self.0.insert(segment.ident.to_string());
        visit::visit_path_segment(self, segment);
    }
}

/// Returns the types whose inherent `impl` blocks are in several files.
pub fn scattered(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    for ((home, name), shape) in &house.types {
        let files: BTreeSet<_> = shape.impls.iter().map(|(file, _)| file).collect();
        if files.len() > 1 {
            let places = shape.impls.iter().map(|&(file, line)| format!("{}:{line}", house.paths[file]));
            found.push(format!("{name} of {}: {}", house.paths[*home], places.collect::<Vec<_>>().join(", ")));
        }
    }
    found
}

/// Returns the names that types of several files share. Only names below these paths, and visible to other files,
/// count.
pub fn twins(houses: &[&House], below: &[&str]) -> Vec<String> {
    let mut homes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for house in houses {
        for ((file, name), _) in house.types.iter().filter(|(_, shape)| shape.visible) {
            let path = house.paths[*file].as_str();
            if below.iter().any(|beginning| path.starts_with(beginning)) {
                homes.entry(name).or_default().insert(path);
            }
        }
    }
    homes.retain(|_, files| files.len() > 1);
    let files = |files: BTreeSet<&str>| files.into_iter().collect::<Vec<_>>().join(", ");
    homes.into_iter().map(|(name, homes)| format!("{name}: {}", files(homes))).collect()
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
        ("src/lib.rs", "mod a; mod b; pub struct C;"),
        ("src/a.rs", "pub(super) struct A; pub mod inner { pub enum B {} } #[cfg(test)] pub struct C; pub struct D;"),
        (
            "src/b.rs",
            "pub struct B(A); pub type A = u8; impl A {} struct D; #[cfg(test)] pub mod tests { pub struct A; }",
        ),
    ];
    let house = House::built("src", &files, &[]);
    assert_eq!(twins(&[&house], &["src/"]), ["B: src/a.rs, src/b.rs"]);
    assert_eq!(twins(&[&house], &["src/a", "src/lib"]), [""; 0]);
}
