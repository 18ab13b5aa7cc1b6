//! The lengths of functions and files, and the numbers of fields of structs.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::support::sources::{self, Source};

/// A function, a struct or a file, and its size.
pub struct Sized {
    pub path: String,
    /// Empty for a file.
    pub name: String,
    pub line: usize,
    pub size: usize,
}

/// All measurements.
pub struct Sizes {
    /// The lines of each function, from its signature to its closing brace.
    pub functions: Vec<Sized>,
    /// The lines of each file.
    pub files: Vec<Sized>,
    /// The fields of each struct.
    pub structs: Vec<Sized>,
}

impl Sizes {
    /// Measures all files in these folders.
    pub fn of(folders: &[&str]) -> Self {
        let mut sizes = Self { functions: Vec::new(), files: Vec::new(), structs: Vec::new() };
        for source in folders.iter().flat_map(|folder| sources::below(folder)) {
            let lines = source.text.lines().count();
            sizes.files.push(Sized { path: source.path.clone(), name: String::new(), line: 1, size: lines });
            sizes.functions.extend(functions(&source));
            sizes.structs.extend(structs(&source));
        }
        sizes
    }
}

fn functions(source: &Source) -> Vec<Sized> {
    let mut reader = Functions { path: &source.path, found: Vec::new() };
    reader.visit_file(&source.syntax);
    reader.found
}

fn structs(source: &Source) -> Vec<Sized> {
    let mut reader = Structs { path: &source.path, found: Vec::new() };
    reader.visit_file(&source.syntax);
    reader.found
}

struct Functions<'a> {
    path: &'a str,
    found: Vec<Sized>,
}

impl Functions<'_> {
    fn note(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let line = signature.span().start().line;
        let last = block.brace_token.span.close().end().line;
        self.found.push(Sized {
            path: self.path.to_owned(),
            name: signature.ident.to_string(),
            line,
            size: last - line + 1,
        });
    }

    /// Functions inside a macro, such as those of `proptest!`.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(word) if word == "fn" => {
                    let Some(TokenTree::Ident(name)) = tokens.get(at + 1) else { continue };
                    let body = tokens[at..].iter().find_map(|token| match token {
                        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
                        _ => None,
                    });
                    if let Some(body) = body {
                        let line = word.span().start().line;
                        let size = body.span_close().end().line - line + 1;
                        self.found.push(Sized { path: self.path.to_owned(), name: name.to_string(), line, size });
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.note(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.note(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_macro(&mut self, macro_: &'ast syn::Macro) {
        self.tokens(macro_.tokens.clone());
    }
}

struct Structs<'a> {
    path: &'a str,
    found: Vec<Sized>,
}

impl<'ast> Visit<'ast> for Structs<'_> {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let line = item.struct_token.span.start().line;
        self.found.push(Sized {
            path: self.path.to_owned(),
            name: item.ident.to_string(),
            line,
            size: item.fields.len(),
        });
    }
}

#[test]
fn functions_are_measured_in_macros_traits_and_impls() {
    let text = "proptest! {\n#[test]\nfn a(x in 0..1) {\n{}\n}\n}\ntrait T {\nfn b();\nfn c(\n) {}\n}\nimpl T for X {\n/// D.\n#[inline]\npub fn d() {\nfn e() {\n}\n}\n}";
    let found: Vec<_> = functions(&Source::parse("x.rs", text)).into_iter().map(|f| (f.name, f.line, f.size)).collect();
    let expected = [("a", 3, 3), ("c", 9, 2), ("d", 15, 4), ("e", 16, 2)];
    assert_eq!(found, expected.map(|(name, line, size)| (name.to_owned(), line, size)));
}

#[test]
fn fields_are_counted_in_modules_and_functions() {
    let text = "mod m { struct A { a: u8, b: u8 } }\nfn f() { struct B(u8); }\nstruct C;";
    let found: Vec<_> = structs(&Source::parse("x.rs", text)).into_iter().map(|s| (s.name, s.line, s.size)).collect();
    let expected = [("A", 1, 2), ("B", 2, 1), ("C", 3, 0)];
    assert_eq!(found, expected.map(|(name, line, size)| (name.to_owned(), line, size)));
}
