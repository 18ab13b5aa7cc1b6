//! One crate, read: its sources, modules and imports.

use super::imports::{self, Imports};
use super::modules::Modules;
use super::sources::{self, Source};

pub struct House {
    /// Folder of its sources, from the root of the checkout.
    pub src: String,
    pub sources: Vec<Source>,
    pub modules: Modules,
    pub imports: Imports,
}

impl House {
    /// The crate whose sources are in this folder.
    pub fn at(src: &str, externals: &[&str]) -> Self {
        Self::of(src, sources::below(src), externals)
    }

    /// A crate of a test.
    #[cfg(test)]
    pub fn built(src: &str, files: &[(&str, &str)], externals: &[&str]) -> Self {
        Self::of(src, files.iter().map(|(path, text)| Source::parse(path, text)).collect(), externals)
    }

    fn of(src: &str, sources: Vec<Source>, externals: &[&str]) -> Self {
        let modules = Modules::of(&sources, src, externals);
        let imports = imports::of(&sources, &modules);
        Self { src: src.to_owned(), sources, modules, imports }
    }
}
