//! Modules -> the imports of each file, each with the file that defines the imported item; and each file's uses of
//! other crates. A path counts wherever it occurs: in `use`, types, expressions, patterns, attributes and the text of a
//! macro. `mod x;` and a visibility such as `pub(in crate::x)` are not imports. Code that is compiled only for tests is
//! left out.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::modules::{self, FileId, ModuleId, Modules, Target};
use super::tests_only::tests_only;
use crate::support::sources::Source;

/// One file's import of an item that another file defines.
#[derive(Clone, Debug)]
pub struct Edge {
    pub from: FileId,
    pub to: FileId,
    pub line: usize,
    pub path: String,
}

/// One file's use of another crate.
#[derive(Clone, Debug)]
pub struct External {
    pub from: FileId,
    pub line: usize,
    pub name: String,
}

#[derive(Default)]
pub struct Imports {
    pub edges: Vec<Edge>,
    pub externals: Vec<External>,
    /// Paths from `crate`, `self` or `super` that could not be resolved. Such a path means a mistake in imports.rs.
    pub unresolved: Vec<String>,
    /// Paths that reach the root of the crate by `super`.
    pub climbing: Vec<String>,
}

pub fn of(sources: &[Source], modules: &Modules) -> Imports {
    let mut imports = Imports::default();
    for (&file, &module) in &modules.of_file {
        if !modules.all[module].tests_only {
            let path = &sources[file].path;
            let mut reader =
                Reader { modules, module, file, path, blocks: Vec::new(), in_macro: false, into: &mut imports };
            reader.visit_file(&sources[file].syntax);
        }
    }
    imports.edges.sort_by_key(|edge| (edge.from, edge.line));
    imports
}

struct Reader<'a> {
    modules: &'a Modules,
    module: ModuleId,
    file: FileId,
    path: &'a str,
    /// The imports of the enclosing blocks.
    blocks: Vec<Vec<modules::Import>>,
    /// In the text of a macro, `super` is relative to the module that uses the macro.
    in_macro: bool,
    into: &'a mut Imports,
}

impl Reader<'_> {
    fn named(&mut self, path: &[String], line: usize) {
        if self.in_macro && matches!(path[0].as_str(), "self" | "super") {
            return;
        }
        let targets = self.targets(path);
        let anchored = matches!(path[0].as_str(), "crate" | "$crate" | "self" | "super");
        if targets.is_empty() && anchored && path.len() > 1 {
            self.into.unresolved.push(format!("{}:{line}: {}", self.path, path.join("::")));
        }
        if self.modules.climbs_to_the_root(self.module, path) {
            self.into.climbing.push(format!("{}:{line}: {}", self.path, path.join("::")));
        }
        for target in targets {
            match target {
                Target::Item(to) if to != self.file => {
                    self.into.edges.push(Edge { from: self.file, to, line, path: path.join("::") });
                }
                // A single name is a variable, unless a `use` makes it the name of a crate.
                Target::External(name) if path.len() > 1 || name != path[0] => {
                    self.into.externals.push(External { from: self.file, line, name });
                }
                // A module is only a step on the path to its items.
                _ => {}
            }
        }
    }

    fn targets(&self, path: &[String]) -> Vec<Target> {
        for block in self.blocks.iter().rev() {
            for import in block {
                let found = match &import.name {
                    // The path in a `use` is resolved as if the `use` were outside its block.
                    Some(name) if *name == path[0] => {
                        let whole: Vec<String> = import.path.iter().chain(&path[1..]).cloned().collect();
                        self.modules.resolve(self.module, &whole)
                    }
                    None => {
                        let visited = &mut Default::default();
                        self.modules.through_glob(self.module, &import.path, &path[0], visited)
                    }
                    Some(_) => continue,
                };
                if !found.is_empty() {
                    return found;
                }
            }
        }
        self.modules.resolve(self.module, path)
    }

    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(first) if !follows_dot(&tokens[..at]) => {
                    let line = first.span().start().line;
                    let dollar = at > 0 && is(&tokens[at - 1], '$');
                    let mut path = vec![if dollar { format!("${first}") } else { first.to_string() }];
                    while let Some(TokenTree::Ident(next)) = after_colons(&tokens[at + 1..]) {
                        path.push(next.to_string());
                        at += 3;
                    }
                    self.named(&path, line);
                }
                _ => {}
            }
            at += 1;
        }
    }
}

fn is(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

/// Returns whether this is a field or a method, and not the end of a range.
fn follows_dot(before: &[TokenTree]) -> bool {
    match before {
        [.., first, last] => is(last, '.') && !is(first, '.'),
        [last] => is(last, '.'),
        [] => false,
    }
}

fn after_colons(tokens: &[TokenTree]) -> Option<&TokenTree> {
    match tokens {
        [first, second, next, ..] if is(first, ':') && is(second, ':') => Some(next),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !tests_only(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let Some((_, items)) = &item.content else { return };
        let name = [item.ident.to_string()];
        let inner = self.modules.resolve(self.module, &name).into_iter().find_map(|target| match target {
            Target::Module(inner) => Some(inner),
            _ => None,
        });
        let outer = std::mem::replace(&mut self.module, inner.expect("a module of this file"));
        items.iter().for_each(|item| self.visit_item(item));
        self.module = outer;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // If the `use` is in a block, the names that the block imports are already known here.
        for import in modules::imports(&item.tree) {
            if import.name.is_some() {
                self.named(&import.path, import.line);
            } else if let Some(Target::External(name)) = self.targets(&import.path).pop() {
                self.into.externals.push(External { from: self.file, line: import.line, name });
            }
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let uses = block.stmts.iter().filter_map(|statement| match statement {
            syn::Stmt::Item(syn::Item::Use(item)) => Some(modules::imports(&item.tree)),
            _ => None,
        });
        self.blocks.push(uses.flatten().collect());
        visit::visit_block(self, block);
        self.blocks.pop();
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes: &[syn::Attribute] = match item {
            syn::ImplItem::Const(item) => &item.attrs,
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            _ => &[],
        };
        if !tests_only(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !tests_only(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !tests_only(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.named(&names, path.segments[0].ident.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        self.in_macro = item.ident.is_some();
        visit::visit_item_macro(self, item);
        self.in_macro = false;
    }

    fn visit_macro(&mut self, macro_: &'ast syn::Macro) {
        if let Some(name) = macro_.path.get_ident()
            && let Some(to) = self.modules.textual_macro(&name.to_string())
            && to != self.file
        {
            let line = name.span().start().line;
            self.into.edges.push(Edge { from: self.file, to, line, path: format!("{name}!") });
        }
        self.visit_path(&macro_.path);
        self.tokens(macro_.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if !attribute.path().is_ident("doc") {
            self.visit_path(attribute.path());
            if let syn::Meta::List(list) = &attribute.meta {
                self.tokens(list.tokens.clone());
                self.quoted_paths(list);
            }
        }
    }

    // A visibility is not an import.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}
}

impl Reader<'_> {
    /// Reads paths in strings, as in `#[serde(with = "crate::x")]`.
    fn quoted_paths(&mut self, list: &syn::MetaList) {
        for token in list.tokens.clone() {
            let Ok(text) = syn::parse2::<syn::LitStr>(token.into()) else { continue };
            if let Ok(path) = text.parse::<syn::Path>()
                && list.path.is_ident("serde")
            {
                let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
                self.named(&names, text.span().start().line);
            }
        }
    }
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
