//! The texts of golden pages change only with a new version of the extractor, because stored documents are compared by
//! these texts.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use hapax::extract::{EXTRACTOR_VERSION, decode, extract, mark};
use hapax::types::{Extract, Html, PageFacts, Syntax};
use xxhash_rust::xxh3::xxh3_64;

use super::javadoc::{Class, Era};
use super::sites::{Article, Site, Style};
use super::words::Words;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages")
}

/// Returns the text of a page, extracted in both ways, for the record.
fn texts(name: &str, html: &Html) -> String {
    let mut texts = String::new();
    for asked in Extract::ALL {
        let page = extract(html, asked);
        let PageFacts { title, canonical_url, language, extracted } = &page.facts;
        writeln!(texts, "== {name}: {} -> {}", asked.as_str(), extracted.as_str()).unwrap();
        if asked == Extract::Article {
            writeln!(texts, "title {title:?}, canonical {canonical_url:?}, language {language:?}").unwrap();
        }
        write!(texts, "{}\n\n", page.text).unwrap();
    }
    texts
}

fn written_pages() -> String {
    let mut paths: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "html" || end == "xhtml"));
    paths.sort();
    let page = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let syntax = if name.ends_with(".xhtml") { Syntax::Xhtml } else { Syntax::Html };
        texts(name, &Html { markup: decode(&fs::read(path).unwrap(), None), syntax })
    };
    assert!(paths.len() >= 5, "{}", paths.len());
    paths.iter().map(page).collect()
}

/// Returns the hashes of the texts of generated pages.
fn generated_pages() -> String {
    let mut words = Words::new(1);
    let mut pages = Vec::new();
    for style in Style::ALL {
        let (site, article) = (Site::new(3, style, 400), Article::new(&mut words, 150));
        pages.push((format!("{style:?}"), site.page(&article)));
    }
    let class = Class::new(&mut words, "org.example");
    for era in Era::ALL {
        pages.push((format!("{era:?}"), class.page(era, "Library 1.0", &["Neighbour".to_owned()])));
    }
    let mut lines = String::new();
    for (name, markup) in pages {
        let html = Html { markup, syntax: Syntax::Html };
        let [article, visible] = Extract::ALL.map(|asked| xxh3_64(extract(&html, asked).text.as_bytes()));
        writeln!(lines, "{name} article {article:016x} visible {visible:016x}").unwrap();
    }
    lines
}

#[test]
fn texts_move_only_with_a_new_version() {
    let path = folder().join("golden.txt");
    let now = format!("extractor {EXTRACTOR_VERSION}\n\n{}{}", written_pages(), generated_pages());
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    let version = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    if std::env::var_os("HAPAX_RECORD").is_some() {
        let moved = !recorded.is_empty() && recorded != now;
        assert!(!moved || version(&recorded) != version(&now), "the text moved: raise EXTRACTOR_VERSION first");
        return fs::write(&path, now).unwrap();
    }
    let first = recorded.lines().zip(now.lines()).find(|(recorded, now)| recorded != now);
    assert_eq!(recorded, now, "the text of a golden page moved, see tests/pages/README.md; first: {first:#?}");
}

#[test]
fn the_mark_of_a_page_is_frozen() {
    let html = Html { markup: "<p>A page.".into(), syntax: Syntax::Html };
    assert_eq!(mark(&html).hash, 98_258_759_889_078_996_804_480_854_419_049_054_576);
    assert_eq!(mark(&html).extractor, EXTRACTOR_VERSION);
}
