//! All targets for the server's parsers, in one binary, because each binary with AddressSanitizer takes a minute to
//! link. `HAPAX_FUZZ_TARGET` names the target that runs.

#![no_main]

mod bodies;
mod config;
mod keys;
mod lines;
mod load;
mod pages;
mod query;
mod records;
mod rows;
mod tables;
mod texts;
mod warc;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("HAPAX_FUZZ_TARGET").expect("HAPAX_FUZZ_TARGET names a target");
    match name.as_str() {
        "bodies" => bodies::run,
        "config" => config::run,
        "keys" => keys::run,
        "lines" => lines::run,
        "load" => load::run,
        "pages" => pages::run,
        "query" => query::run,
        "records" => records::run,
        "rows" => rows::run,
        "tables" => tables::run,
        "texts" => texts::run,
        "warc" => warc::run,
        _ => panic!("HAPAX_FUZZ_TARGET={name}: there is no such target"),
    }
});

fuzz_target!(|data: &[u8]| TARGET(data));
