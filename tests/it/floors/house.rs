//! One crate, parsed: its files, with their imports and definitions.

use super::imports::{self, Imports};
use super::modules::Modules;
use super::types::{self, Types};
use crate::support::sources::{self, Source};

pub struct House {
    /// The folder of its sources, from the root of the checkout.
    pub src: String,
    /// Its files, from the root of the checkout.
    pub paths: Vec<String>,
    pub modules: Modules,
    pub imports: Imports,
    pub types: Types,
}

impl House {
    /// Reads the crate whose sources are in this folder; `externals` are the crates that it may use.
    pub fn at(src: &str, externals: &[&str]) -> Self {
        Self::of(src, &sources::below(src), externals)
    }

    /// Makes a crate for a test.
    pub fn built(src: &str, files: &[(&str, &str)], externals: &[&str]) -> Self {
        let sources: Vec<_> = files.iter().map(|(path, text)| Source::parse(path, text)).collect();
        Self::of(src, &sources, externals)
    }

    fn of(src: &str, sources: &[Source], externals: &[&str]) -> Self {
        let modules = Modules::of(sources, src, externals);
        let imports = imports::of(sources, &modules);
        let types = types::of(sources, &modules);
        let paths = sources.iter().map(|source| source.path.clone()).collect();
        Self { src: src.to_owned(), paths, modules, imports, types }
    }
}
