//! Source files -> modules and the names in them; a path -> the files that define the items that it names. Re-exports
//! are followed to the file that defines the item. Must never know of floors.

use std::collections::{HashMap, HashSet};

use syn::{Item, UseTree, Visibility};

use super::tests_only::tests_only;
use crate::support::sources::Source;

/// A file, by its index in the list of sources.
pub type FileId = usize;
pub type ModuleId = usize;

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    Module(ModuleId),
    Item(FileId),
    /// An item of another crate.
    External(String),
}

/// One name of a `use`, or a glob (`name` is `None`).
#[derive(Clone, Debug)]
pub struct Import {
    pub path: Vec<String>,
    pub name: Option<String>,
    pub line: usize,
}

struct Binding {
    private: bool,
    is: Bound,
}

enum Bound {
    Module(ModuleId),
    Item,
    Use(Vec<String>),
}

pub struct Module {
    pub file: FileId,
    parent: Option<ModuleId>,
    pub tests_only: bool,
    names: HashMap<String, Vec<Binding>>,
    globs: Vec<(Vec<String>, bool)>,
    variants: HashMap<String, Vec<String>>,
    /// Whether a macro defines items here; an unknown name may be one of them.
    made_by_macro: bool,
}

/// The modules of one crate.
pub struct Modules {
    pub all: Vec<Module>,
    /// The module of each file; absent if no `mod` line declares the file.
    pub of_file: HashMap<FileId, ModuleId>,
    macros: HashMap<String, FileId>,
    externals: HashSet<String>,
}

type Visited = HashSet<(ModuleId, Vec<String>)>;

impl Modules {
    /// Reads the modules of the crate whose sources are below `src` (`src/lib.rs` is its root).
    pub fn of(sources: &[Source], src: &str, externals: &[&str]) -> Self {
        let mut modules = Self {
            all: Vec::new(),
            of_file: HashMap::new(),
            macros: HashMap::new(),
            externals: ["std", "core", "alloc"].iter().chain(externals).map(|name| (*name).to_owned()).collect(),
        };
        let files: HashMap<&str, FileId> =
            sources.iter().enumerate().map(|(id, source)| (source.path.as_str(), id)).collect();
        let root = *files.get(format!("{src}/lib.rs").as_str()).expect("a crate has a lib.rs");
        let mut reader = Reader { modules: &mut modules, sources, files: &files };
        reader.file(root, None, false, src);
        modules
    }

    /// Returns whether a path climbs by `super` to the root of the crate.
    pub fn climbs_to_the_root(&self, module: ModuleId, path: &[String]) -> bool {
        let supers = path.iter().take_while(|name| *name == "super").count();
        let mut begun = Some(module);
        for _ in 0..supers {
            begun = begun.and_then(|module| self.all[module].parent);
        }
        supers > 0 && begun == Some(0)
    }

    /// Returns the targets of a path in a module; none for a local name or a name of the prelude.
    pub fn resolve(&self, module: ModuleId, path: &[String]) -> Vec<Target> {
        self.resolved(module, path, &mut Visited::new())
    }

    /// Returns the file of a macro in textual scope, which means a `macro_rules` macro that is defined above its use.
    pub fn textual_macro(&self, name: &str) -> Option<FileId> {
        self.macros.get(name).copied()
    }

    fn resolved(&self, module: ModuleId, path: &[String], visited: &mut Visited) -> Vec<Target> {
        if !visited.insert((module, path.to_vec())) {
            return Vec::new();
        }
        let mut begun = module;
        let mut rest = path;
        while let Some((first, after)) = rest.split_first() {
            match (first.as_str(), self.all[begun].parent) {
                ("crate" | "$crate", _) => begun = 0,
                ("self", _) => {}
                ("super", Some(parent)) => begun = parent,
                _ => break,
            }
            rest = after;
        }
        let anchored = rest.len() < path.len();
        let found = self.below(begun, rest, module, visited);
        if found.is_empty() && !anchored && self.externals.contains(&path[0]) {
            return vec![Target::External(path[0].clone())];
        }
        found
    }

    /// Returns the targets of `path` in `module`, seen from `from`.
    fn below(&self, module: ModuleId, path: &[String], from: ModuleId, visited: &mut Visited) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return vec![Target::Module(module)] };
        let found = self.lookup(module, first, from, visited);
        if rest.is_empty() {
            return found;
        }
        let deeper: Vec<Target> = found
            .iter()
            .filter_map(|target| match target {
                Target::Module(inner) => Some(self.below(*inner, rest, from, visited)),
                _ => None,
            })
            .flatten()
            .collect();
        if !deeper.is_empty() {
            return deeper;
        }
        // After a type, a path may continue, for example to a variant of an enum. The target is still the type.
        found.into_iter().filter(|target| !matches!(target, Target::Module(_))).collect()
    }

    fn lookup(&self, module: ModuleId, name: &str, from: ModuleId, visited: &mut Visited) -> Vec<Target> {
        let here = &self.all[module];
        let mut found = Vec::new();
        for binding in here.names.get(name).into_iter().flatten() {
            if binding.private && !self.within(from, module) {
                continue;
            }
            match &binding.is {
                Bound::Module(inner) => found.push(Target::Module(*inner)),
                Bound::Item => found.push(Target::Item(here.file)),
                Bound::Use(path) => found.extend(self.resolved(module, path, visited)),
            }
        }
        if found.is_empty() {
            for (path, private) in &here.globs {
                if !private || self.within(from, module) {
                    found.extend(self.through_glob(module, path, name, visited));
                }
            }
        }
        if found.is_empty() && here.made_by_macro && name.chars().any(char::is_uppercase) && from != module {
            found.push(Target::Item(here.file));
        }
        found
    }

    /// Returns the items of this name that a `use path::*` brings into a module.
    pub fn through_glob(
        &self,
        module: ModuleId,
        path: &[String],
        name: &str,
        visited: &mut HashSet<(ModuleId, Vec<String>)>,
    ) -> Vec<Target> {
        let mut key = path.to_vec();
        key.extend(["*".to_owned(), name.to_owned()]);
        if !visited.insert((module, key)) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for target in self.resolved(module, path, &mut visited.clone()) {
            match target {
                Target::Module(inner) => found.extend(self.lookup(inner, name, module, visited)),
                Target::Item(file) if self.has_variant(file, path.last(), name) => found.push(Target::Item(file)),
                _ => {}
            }
        }
        found
    }

    fn has_variant(&self, file: FileId, name: Option<&String>, variant: &str) -> bool {
        let variants = |module: &Module| {
            let variants = name.and_then(|name| module.variants.get(name));
            variants.is_some_and(|variants| variants.iter().any(|known| known == variant))
        };
        self.all.iter().any(|module| module.file == file && variants(module))
    }

    fn within(&self, module: ModuleId, outer: ModuleId) -> bool {
        module == outer || self.all[module].parent.is_some_and(|parent| self.within(parent, outer))
    }
}

struct Reader<'a> {
    modules: &'a mut Modules,
    sources: &'a [Source],
    files: &'a HashMap<&'a str, FileId>,
}

impl Reader<'_> {
    /// Reads a file as a module. `folder` is the folder with the files of its children.
    fn file(&mut self, file: FileId, parent: Option<ModuleId>, tests_only: bool, folder: &str) -> ModuleId {
        let id = self.module(file, parent, tests_only, &self.sources[file].syntax.items, folder);
        self.modules.of_file.insert(file, id);
        id
    }

    fn module(
        &mut self,
        file: FileId,
        parent: Option<ModuleId>,
        tests_only: bool,
        items: &[Item],
        folder: &str,
    ) -> ModuleId {
        let id = self.modules.all.len();
        self.modules.all.push(Module {
            file,
            parent,
            tests_only,
            names: HashMap::new(),
            globs: Vec::new(),
            variants: HashMap::new(),
            made_by_macro: false,
        });
        items.iter().for_each(|item| self.item(id, item, folder));
        id
    }

    fn bind(&mut self, module: ModuleId, name: &syn::Ident, visibility: &Visibility, is: Bound) {
        let private = matches!(visibility, Visibility::Inherited);
        let names = &mut self.modules.all[module].names;
        names.entry(name.to_string()).or_default().push(Binding { private, is });
    }

    fn item(&mut self, module: ModuleId, item: &Item, folder: &str) {
        match item {
            Item::Mod(inner) => self.child(module, inner, folder),
            Item::Use(import) => {
                let private = matches!(import.vis, Visibility::Inherited);
                for Import { path, name, .. } in imports(&import.tree) {
                    let here = &mut self.modules.all[module];
                    match name {
                        Some(name) => {
                            here.names.entry(name).or_default().push(Binding { private, is: Bound::Use(path) });
                        }
                        None => here.globs.push((path, private)),
                    }
                }
            }
            Item::Enum(item) => {
                let variants = item.variants.iter().map(|variant| variant.ident.to_string()).collect();
                self.modules.all[module].variants.insert(item.ident.to_string(), variants);
                self.bind(module, &item.ident, &item.vis, Bound::Item);
            }
            Item::Const(item) => self.bind(module, &item.ident, &item.vis, Bound::Item),
            Item::Fn(item) => self.bind(module, &item.sig.ident, &item.vis, Bound::Item),
            Item::Static(item) => self.bind(module, &item.ident, &item.vis, Bound::Item),
            Item::Struct(item) => self.bind(module, &item.ident, &item.vis, Bound::Item),
            Item::Trait(item) => self.bind(module, &item.ident, &item.vis, Bound::Item),
            Item::TraitAlias(item) => self.bind(module, &item.ident, &item.vis, Bound::Item),
            Item::Type(item) => self.bind(module, &item.ident, &item.vis, Bound::Item),
            Item::Union(item) => self.bind(module, &item.ident, &item.vis, Bound::Item),
            Item::Macro(item) => match &item.ident {
                Some(name) => {
                    let file = self.modules.all[module].file;
                    self.modules.macros.insert(name.to_string(), file);
                    self.bind(module, name, &Visibility::Inherited, Bound::Item);
                }
                None => self.modules.all[module].made_by_macro = true,
            },
            _ => {}
        }
    }

    fn child(&mut self, parent: ModuleId, item: &syn::ItemMod, folder: &str) {
        let name = item.ident.to_string();
        let tests_only = tests_only(&item.attrs) || self.modules.all[parent].tests_only;
        let inner = format!("{folder}/{name}");
        let id = if let Some((_, items)) = &item.content {
            let file = self.modules.all[parent].file;
            self.module(file, Some(parent), tests_only, items, &inner)
        } else {
            let files = [format!("{inner}.rs"), format!("{inner}/mod.rs")];
            let file = files.iter().find_map(|path| self.files.get(path.as_str()).copied());
            let file = file.unwrap_or_else(|| panic!("{inner}: no file of this module"));
            self.file(file, Some(parent), tests_only, &inner)
        };
        self.bind(parent, &item.ident, &item.vis, Bound::Module(id));
    }
}

/// Returns each name of a `use`.
pub fn imports(tree: &UseTree) -> Vec<Import> {
    let mut found = Vec::new();
    flatten(tree, &mut Vec::new(), &mut found);
    found
}

fn flatten(tree: &UseTree, path: &mut Vec<String>, found: &mut Vec<Import>) {
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            flatten(&step.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, path, found)),
        UseTree::Glob(glob) => {
            let line = glob.star_token.spans[0].start().line;
            found.push(Import { path: path.clone(), name: None, line });
        }
        UseTree::Name(leaf) => found.push(import(path, &leaf.ident, &leaf.ident)),
        UseTree::Rename(leaf) => found.push(import(path, &leaf.ident, &leaf.rename)),
    }
}

fn import(path: &[String], named: &syn::Ident, bound: &syn::Ident) -> Import {
    let mut path = path.to_vec();
    // `use a::b::{self}` names `a::b` itself.
    let own = named == "self";
    if !own {
        path.push(named.to_string());
    }
    let name = if own && bound == "self" { path.last().cloned() } else { Some(bound.to_string()) };
    Import { path, name, line: named.span().start().line }
}
