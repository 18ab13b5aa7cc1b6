//! Articles in the pages of invented sites. Menus, banners, related links, comments and notices are around the text,
//! with the kinds of markup that real sites use.

use super::words::Words;

/// How a site marks the parts of its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `main`, `nav`, `aside`, `footer`.
    Elements,
    /// `div` with a class or an id.
    Classes,
    /// A table for the layout, upper-case tags, end tags left out.
    Tables,
    /// `div` without any name.
    Nameless,
}

impl Style {
    pub const ALL: [Self; 4] = [Self::Elements, Self::Classes, Self::Tables, Self::Nameless];
}

/// A site: the parts that are the same on all of its pages.
pub struct Site {
    style: Style,
    name: String,
    menu: Vec<(String, String)>,
    banner: String,
    related: Vec<(String, String)>,
    comments: Vec<String>,
    footer: Vec<(String, String)>,
}

/// An article.
#[derive(Clone, Debug)]
pub struct Article {
    pub heading: String,
    pub paragraphs: Vec<String>,
}

impl Article {
    pub fn new(words: &mut Words, length: usize) -> Self {
        let heading = words.words(5);
        let count = (length / 60).max(1);
        Self { heading, paragraphs: (0..count).map(|_| words.prose(length / count)).collect() }
    }

    fn html(&self, paragraph: &str, end: &str) -> String {
        let paragraphs: String =
            self.paragraphs.iter().map(|text| format!("{paragraph}{}{end}\n", with_link(text))).collect();
        format!("<h1>{}</h1>\n{paragraphs}", self.heading)
    }
}

/// Puts a link and an emphasis into a paragraph.
fn with_link(text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    if words.len() > 8 {
        words[3] = format!("<a href=\"/topic\">{}</a>", words[3]);
        words[6] = format!("<em>{}</em>", words[6]);
    }
    words.join(" ")
}

impl Site {
    /// Makes a site with about `chrome_words` words around each article.
    pub fn new(seed: u64, style: Style, chrome_words: usize) -> Self {
        let mut words = Words::new(seed);
        let mut links = |count: usize, from: usize, to: usize| -> Vec<(String, String)> {
            (0..count)
                .map(|_| {
                    let text = from + words.below(to - from + 1);
                    (format!("/{}", words.word()), words.words(text))
                })
                .collect()
        };
        // The shares of the words: 45 % menu, 10 % banner, 25 % related links, 10 % comments, 10 % at the end of the
        // page.
        let menu = links(chrome_words * 45 / 200, 1, 3);
        let related = links((chrome_words / 4 / 7).max(1), 5, 9);
        let footer = links((chrome_words / 20).max(2), 1, 2);
        let banner = words.words((chrome_words / 10).min(18));
        let comments = (0..chrome_words.div_ceil(250)).map(|_| words.prose(20)).collect();
        Self { style, name: words.name(2), menu, banner, related, comments, footer }
    }

    pub fn page(&self, article: &Article) -> String {
        match self.style {
            Style::Elements => self.elements(article),
            Style::Classes => self.classes(article),
            Style::Tables => self.tables(article),
            Style::Nameless => self.nameless(article),
        }
    }

    fn elements(&self, article: &Article) -> String {
        let comments: String = self.comments.iter().map(|text| format!("<article><p>{text}</p></article>")).collect();
        format!(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{heading} - {name}</title>\
             <script>var menu = [1, 2, 3];</script><style>p {{ color: red }}</style></head><body>\
             <header><a href=\"/\">{name}</a><p>{banner}</p></header><nav><ul>{menu}</ul></nav>\
             <main><article>{article}</article></main>\
             <aside><h2>Related</h2><ul>{related}</ul></aside><section class=\"comments\"><h2>Comments</h2>{comments}\
             </section><footer><ul>{footer}</ul><p>© 2026 {name}. All rights reserved.</p></footer></body></html>",
            heading = article.heading,
            name = self.name,
            banner = self.banner,
            menu = items(&self.menu),
            article = article.html("<p>", "</p>"),
            related = items(&self.related),
            footer = items(&self.footer),
        )
    }

    fn classes(&self, article: &Article) -> String {
        let comments: String =
            self.comments.iter().map(|text| format!("<div class=\"comment\"><p>{text}</p></div>")).collect();
        format!(
            "<!DOCTYPE html><html><head><title>{heading}</title></head><body><div id=\"wrapper\">\
             <div class=\"site-header\"><a href=\"/\">{name}</a></div><div class=\"top-banner\">{banner}</div>\
             <div id=\"mainMenu\"><ul>{menu}</ul></div><div class=\"post-content\">{article}</div>\
             <div class=\"related-posts\"><h3>More</h3><ul>{related}</ul></div>\
             <div id=\"comments\"><h3>Replies</h3>{comments}</div>\
             <div class=\"footer\">{footer}<p>Copyright 2026 {name}</p></div></div></body></html>",
            heading = article.heading,
            name = self.name,
            banner = self.banner,
            menu = items(&self.menu),
            article = article.html("<p>", "</p>"),
            related = items(&self.related),
            footer = items(&self.footer),
        )
    }

    fn tables(&self, article: &Article) -> String {
        let cells: String =
            self.menu.iter().map(|(to, text)| format!("<TR><TD><A HREF=\"{to}\">{text}</A>\n")).collect();
        format!(
            "<HTML><HEAD><TITLE>{heading}</TITLE></HEAD><BODY BGCOLOR=white>\
             <TABLE WIDTH=\"100%\"><TR><TD COLSPAN=2><FONT SIZE=5>{name}</FONT><BR>{banner}\n\
             <TR><TD VALIGN=top><TABLE>{cells}</TABLE>\n<TD><FONT FACE=serif>{article}</FONT>\n<HR><UL>{related}</UL>\n\
             <TR><TD COLSPAN=2>{footer}<P>&copy; 2026 {name}</TABLE></BODY></HTML>",
            heading = article.heading,
            name = self.name,
            banner = self.banner,
            article = article.html("<P>", ""),
            related = items(&self.related),
            footer = items(&self.footer),
        )
    }

    fn nameless(&self, article: &Article) -> String {
        let row: String =
            self.menu.iter().map(|(to, text)| format!("<div><a href=\"{to}\">{text}</a></div>")).collect();
        format!(
            "<html><body><div><div><a href=\"/\">{name}</a></div><div>{banner}</div><div>{row}</div></div>\
             <div><div>{article}</div><div><h3>More</h3><ul>{related}</ul></div></div>\
             <div>{footer}<div>© 2026 {name}</div></div></body></html>",
            name = self.name,
            banner = self.banner,
            article = article.html("<p>", "</p>"),
            related = items(&self.related),
            footer = items(&self.footer),
        )
    }
}

fn items(links: &[(String, String)]) -> String {
    links.iter().map(|(to, text)| format!("<li><a href=\"{to}\">{text}</a></li>")).collect()
}
