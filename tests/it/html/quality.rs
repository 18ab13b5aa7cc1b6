//! Pairs of generated pages: the same article on two sites is a duplicate, and two articles on one site are not.
//! For versions of a page of documentation, the extracted texts must give the same similar pairs as the texts from which
//! the pages were made.

use hapax::extract::extract;
use hapax::types::{Extract, Html, Syntax};

use super::javadoc::{Class, Era};
use super::pairs::{jaccard, shingles, similar};
use super::sites::{Article, Site, Style};
use super::words::Words;

const THRESHOLD: f64 = 0.8;
/// Pages of each kind.
const PAGES: u64 = 25;

fn text(markup: String, asked: Extract) -> (Vec<u64>, bool) {
    let page = extract(&Html { markup, syntax: Syntax::Html }, asked);
    (shingles(&page.text), page.facts.extracted == asked)
}

/// Counts of a kind of pages.
#[derive(Debug, Default)]
struct Counts {
    /// The number of articles that were found on another site.
    found: u64,
    /// The number of other articles on the same site that were reported as duplicates.
    wrong: u64,
    given_up: u64,
}

fn counts(style: Style, article_words: usize, chrome_words: usize, asked: Extract) -> Counts {
    let (mut words, mut counts) = (Words::new(11), Counts::default());
    for number in 0..PAGES {
        let [one, other] = [0, 1].map(|_| Article::new(&mut words, article_words));
        let [here, there] = [1000, 2000].map(|from| Site::new(from + number, style, chrome_words));
        let pages = [here.page(&one), there.page(&one), here.page(&other)].map(|page| text(page, asked));
        let [(original, _), (copy, _), (different, _)] = &pages;
        counts.found += u64::from(jaccard(original, copy) >= THRESHOLD);
        counts.wrong += u64::from(jaccard(original, different) >= THRESHOLD);
        counts.given_up += pages.iter().filter(|(_, as_asked)| !as_asked).count() as u64;
    }
    counts
}

#[test]
fn articles_are_compared_and_not_the_sites_around_them() {
    // In pages of the second kind, 90 % of the words are outside the article.
    for (article_words, chrome_words) in [(150, 100), (50, 450), (50, 600), (300, 600)] {
        for style in Style::ALL {
            let counts = counts(style, article_words, chrome_words, Extract::Article);
            println!("{article_words} words in {chrome_words}, {style:?}: {counts:?}");
            assert_eq!((counts.wrong, counts.given_up), (0, 0), "{article_words} in {chrome_words}, {style:?}");
            assert!(counts.found * 20 >= PAGES * 19, "{article_words} in {chrome_words}, {style:?}: {counts:?}");
        }
    }
}

#[test]
fn all_visible_text_is_decided_by_the_site() {
    let counts = counts(Style::Elements, 50, 600, Extract::Visible);
    assert_eq!((counts.found, counts.given_up), (0, 0));
    assert!(counts.wrong * 10 >= PAGES * 9, "what `article` is for: {counts:?}");
}

#[test]
fn versions_of_documentation_are_as_similar_as_their_main_texts() {
    for era in Era::ALL {
        let mut words = Words::new(7);
        let (mut texts, mut main_texts) = (Vec::new(), Vec::new());
        for _ in 0..10 {
            let package = format!("org.{}.{}", words.word(), words.word());
            let classes: Vec<Class> = (0..12).map(|_| Class::new(&mut words, &package)).collect();
            let names: Vec<String> = classes.iter().map(|class| class.name.clone()).collect();
            for class in &classes {
                let next = class.revised(&mut words);
                for (class, version) in [(class, "Library 1.0 API"), (&next, "Library 2.4 API documentation")] {
                    texts.push(text(class.page(era, version, &names), Extract::Article).0);
                    main_texts.push(shingles(&class.main_text()));
                }
            }
        }
        let (found, truth) = (similar(&texts), similar(&main_texts));
        let right = found.intersection(&truth).count() as f64;
        let (recall, precision) = (right / truth.len() as f64, right / found.len() as f64);
        println!("{era:?}: {} true pairs, recall {recall:.3}, precision {precision:.3}", truth.len());
        assert!(truth.len() >= 60 && recall >= 0.95 && precision >= 0.95, "{era:?}: {recall} {precision}");
    }
}
