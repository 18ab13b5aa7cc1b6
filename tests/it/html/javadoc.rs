//! Pages like those of Java's documentation tools: bars of links at both ends, a tree of classes, a table of methods,
//! lists of parameters. A class has versions that differ in some sentences and methods.

use super::words::Words;

/// The generation of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// HTML 4 for frames: tables and upper-case tags, without names.
    Frames,
    /// `div` with classes: `topNav`, `contentContainer`.
    Containers,
    /// `header`, `main`, `footer`.
    Main,
}

impl Era {
    pub const ALL: [Self; 3] = [Self::Frames, Self::Containers, Self::Main];
}

/// A class of a library.
#[derive(Clone, Debug)]
pub struct Class {
    pub package: String,
    pub name: String,
    pub description: Vec<String>,
    pub methods: Vec<Method>,
}

/// A method of a class.
#[derive(Clone, Debug)]
pub struct Method {
    result: String,
    name: String,
    parameter: String,
    /// The first sentence is the summary. A method without documentation has no sentences.
    sentences: Vec<String>,
}

impl Class {
    pub fn new(words: &mut Words, package: &str) -> Self {
        let methods = 1 + words.below(12);
        let sentences = 1 + words.below(4);
        Self {
            package: package.to_owned(),
            name: words.name(2),
            description: (0..sentences).map(|_| words.sentence()).collect(),
            methods: (0..methods).map(|_| Method::new(words)).collect(),
        }
    }

    /// Returns the class as it is in the next version of the library.
    pub fn revised(&self, words: &mut Words) -> Self {
        let mut next = self.clone();
        for sentence in next.description.iter_mut().chain(next.methods.iter_mut().flat_map(|m| &mut m.sentences)) {
            if words.chance(0.04) {
                *sentence = words.sentence();
            }
        }
        if words.chance(0.2) {
            let at = words.below(next.methods.len() + 1);
            next.methods.insert(at, Method::new(words));
        }
        next
    }

    /// Returns the text of the page without the bars around it. The extractor should find this text.
    pub fn main_text(&self) -> String {
        let mut text = format!(
            "{package} Class {name} java.lang.Object {package}.{name} public class {name} extends Object {} Method Summary \
             Modifier and Type Method and Description ",
            self.description.join(" "),
            package = self.package,
            name = self.name,
        );
        for method in &self.methods {
            text += &format!("{} {} ", method.signature(), method.summary());
        }
        text += "Method Detail ";
        for Method { result, name, parameter, sentences } in &self.methods {
            text += &format!(
                "{name} public {result} {name} {parameter} {} Parameters: {parameter} - the {parameter} to use ",
                sentences.join(" ")
            );
        }
        text
    }

    /// Returns the page of the class in a version of a library.
    pub fn page(&self, era: Era, version: &str, neighbours: &[String]) -> String {
        match era {
            Era::Frames => self.frames(version, neighbours),
            Era::Containers => self.containers(version, neighbours),
            Era::Main => self.main(version, neighbours),
        }
    }

    fn bar(neighbours: &[String]) -> String {
        let links = ["Overview", "Package", "Class", "Use", "Tree", "Deprecated", "Index", "Help"];
        let links: String = links.iter().map(|text| format!("<li><a href=\"{text}.html\">{text}</a></li>\n")).collect();
        let near: String =
            neighbours.iter().map(|name| format!("<li><a href=\"{name}.html\">{name}</a></li>\n")).collect();
        format!("{links}<li>Prev Class</li><li>Next Class</li><li>Frames</li><li>No Frames</li>{near}")
    }

    fn frames(&self, version: &str, neighbours: &[String]) -> String {
        let cell =
            |text: &String| format!("<TD BGCOLOR=\"#EEEEFF\"><A HREF=\"{text}.html\"><B>{text}</B></A>&nbsp;</TD>\n");
        let links = ["Overview", "Package", "Class", "Use", "Tree", "Deprecated", "Index", "Help"].map(str::to_owned);
        let bar: String = links.iter().chain(neighbours).map(cell).collect();
        let bar = format!(
            "<TABLE BORDER=\"0\" WIDTH=\"100%\"><TR>{bar}</TR></TABLE>\n<TABLE><TR><TD><FONT SIZE=\"-2\">&nbsp;PREV CLASS \
             &nbsp;NEXT CLASS</FONT></TD><TD><EM>{version}</EM></TD></TR></TABLE>\n<HR>\n"
        );
        let rows: String = self
            .methods
            .iter()
            .map(|method| {
                format!(
                    "<TR BGCOLOR=\"white\"><TD ALIGN=\"right\"><FONT SIZE=\"-1\"><CODE>&nbsp;{}</CODE></FONT></TD>\n<TD><CODE><B>\
                     <A HREF=\"#{name}\">{name}</A></B>({})</CODE>\n<BR>&nbsp;&nbsp;{}</TD></TR>\n",
                    method.result,
                    method.parameter,
                    method.summary(),
                    name = method.name,
                )
            })
            .collect();
        let details: String = self
            .methods
            .iter()
            .map(|Method { result, name, parameter, sentences }| {
                format!(
                    "<A NAME=\"{name}\"><!-- --></A><H3>\n{name}</H3>\n<PRE>\npublic {result} <B>{name}</B>({parameter})</PRE>\n\
                     <DL>\n<DD>{}\n<P>\n<DD><DL>\n<DT><B>Parameters:</B><DD><CODE>{parameter}</CODE> - the {parameter} to use\
                     </DL>\n</DD>\n</DL>\n<HR>\n",
                    sentences.join(" "),
                )
            })
            .collect();
        format!(
            "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01 Frameset//EN\">\n<HTML>\n<HEAD>\n<TITLE>{name}</TITLE>\n<NOSCRIPT></NOSCRIPT>\
             </HEAD>\n<BODY BGCOLOR=\"white\">\n{bar}<H2>\n<FONT SIZE=\"-1\">{package}</FONT>\n<BR>\nClass {name}</H2>\n<PRE>\n\
             java.lang.Object\n  <B>{package}.{name}</B>\n</PRE>\n<HR>\n<DL>\n<DT><PRE>public class <B>{name}</B><DT>extends Object\
             </DL>\n</PRE>\n<P>\n{description}\n<P>\n<HR>\n<TABLE BORDER=\"1\" WIDTH=\"100%\">\n<TR><TH COLSPAN=\"2\"><FONT SIZE=\"+2\">\n\
             <B>Method Summary</B></FONT></TH>\n</TR>\n{rows}</TABLE>\n&nbsp;\n<P>\n<TABLE BORDER=\"1\"><TR><TH><B>Method Detail\
             </B></TH></TR></TABLE>\n{details}{bar}<SMALL>Copyright &#169; 2006 The Makers.</SMALL></BODY>\n</HTML>\n",
            package = self.package,
            name = self.name,
            description = self.description.join(" "),
        )
    }

    fn summary_rows(&self) -> String {
        self.methods
            .iter()
            .map(|method| {
                format!(
                    "<tr class=\"altColor\">\n<td class=\"colFirst\"><code><a href=\"x.html\">{}</a></code></td>\n<td class=\"colLast\">\
                     <code><span class=\"memberNameLink\"><a href=\"#{name}\">{name}</a></span>(<a href=\"p.html\">{}</a>)</code>\n\
                     <div class=\"block\">{}</div>\n</td>\n</tr>\n",
                    method.result,
                    method.parameter,
                    method.summary(),
                    name = method.name,
                )
            })
            .collect()
    }

    fn details(&self) -> String {
        self.methods
            .iter()
            .map(|Method { result, name, parameter, sentences }| {
                format!(
                    "<a name=\"{name}\">\n<!--   -->\n</a>\n<ul class=\"blockList\">\n<li class=\"blockList\">\n<h4>{name}</h4>\n\
                     <pre>public&nbsp;<a href=\"x.html\">{result}</a>&nbsp;{name}({parameter})</pre>\n<div class=\"block\">{}</div>\n\
                     <dl>\n<dt><span class=\"paramLabel\">Parameters:</span></dt>\n<dd><code>{parameter}</code> - the {parameter} to \
                     use</dd>\n</dl>\n</li>\n</ul>\n",
                    sentences.join(" "),
                )
            })
            .collect()
    }

    fn body(&self) -> String {
        format!(
            "<ul class=\"inheritance\">\n<li><a href=\"Object.html\">java.lang.Object</a></li>\n<li>\n<ul class=\"inheritance\">\n\
             <li>{package}.{name}</li>\n</ul>\n</li>\n</ul>\n<div class=\"description\">\n<hr>\n<pre>public class <span \
             class=\"typeNameLabel\">{name}</span>\nextends <a href=\"Object.html\">Object</a></pre>\n<div class=\"block\">{}</div>\n\
             </div>\n<div class=\"summary\">\n<h3>Method Summary</h3>\n<table class=\"memberSummary\">\n<tr>\n<th \
             class=\"colFirst\">Modifier and Type</th>\n<th class=\"colLast\">Method and Description</th>\n</tr>\n{}</table>\n</div>\n\
             <div class=\"details\">\n<h3>Method Detail</h3>\n{}</div>\n",
            self.description.join("\n "),
            self.summary_rows(),
            self.details(),
            package = self.package,
            name = self.name,
        )
    }

    fn containers(&self, version: &str, neighbours: &[String]) -> String {
        let bar = |at: &str| {
            format!(
                "<div class=\"{at}Nav\"><a name=\"navbar.{at}\">\n<!--   -->\n</a>\n<div class=\"skipNav\"><a href=\"#skip\">Skip \
                 navigation links</a></div>\n<ul class=\"navList\" title=\"Navigation\">\n{}</ul>\n<div class=\"aboutLanguage\">\
                 <strong>{version}</strong></div>\n</div>\n<div class=\"subNav\">\n<ul class=\"navList\" id=\"allclasses\">\n<li><a \
                 href=\"all.html\">All&nbsp;Classes</a></li>\n</ul>\n<div>\n<ul class=\"subNavList\">\n<li>Summary:&nbsp;</li>\n\
                 <li>Nested&nbsp;|&nbsp;</li>\n<li><a href=\"#methods\">Method</a></li>\n</ul>\n</div>\n</div>\n",
                Self::bar(neighbours)
            )
        };
        format!(
            "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01 Transitional//EN\">\n<!-- NewPage -->\n<html lang=\"en\">\n<head>\n\
             <title>{name}</title>\n<script type=\"text/javascript\" src=\"script.js\"></script>\n</head>\n<body>\n<noscript>\n\
             <div>JavaScript is disabled on your browser.</div>\n</noscript>\n{top}<div class=\"header\">\n<div \
             class=\"subTitle\">{package}</div>\n<h2 title=\"Class {name}\" class=\"title\">Class {name}</h2>\n</div>\n<div \
             class=\"contentContainer\">\n{body}</div>\n{bottom}<p class=\"legalCopy\"><small>Copyright &#169; 2014 The Makers. \
             All rights reserved.</small></p>\n</body>\n</html>\n",
            package = self.package,
            name = self.name,
            top = bar("top"),
            bottom = bar("bottom"),
            body = self.body(),
        )
    }

    fn main(&self, version: &str, neighbours: &[String]) -> String {
        format!(
            "<!DOCTYPE HTML>\n<html lang=\"en\">\n<head>\n<title>{name} ({version})</title>\n<link rel=\"canonical\" \
             href=\"https://docs.example/{name}.html\">\n</head>\n<body class=\"class-declaration-page\">\n<div class=\"flex-box\">\n\
             <header role=\"banner\" class=\"flex-header\">\n<nav role=\"navigation\">\n<div class=\"top-nav\" id=\"navbar-top\">\n\
             <div class=\"about-language\">{version}</div>\n<ul class=\"nav-bar-list\">\n{bar}</ul>\n</div>\n<div class=\"sub-nav\">\n\
             <label for=\"search-input\">SEARCH:</label>\n<input type=\"text\" id=\"search-input\">\n</div>\n</nav>\n</header>\n\
             <div class=\"flex-content\">\n<main role=\"main\">\n<div class=\"header\">\n<div class=\"sub-title\">{package}</div>\n\
             <h1 title=\"Class {name}\" class=\"title\">Class {name}</h1>\n</div>\n{body}</main>\n<footer role=\"contentinfo\">\n\
             <hr>\n<p class=\"legal-copy\"><small>Copyright © 2021 The Makers. All rights reserved.</small></p>\n</footer>\n\
             </div>\n</div>\n</body>\n</html>\n",
            package = self.package,
            name = self.name,
            bar = Self::bar(neighbours),
            body = self.body(),
        )
    }
}

impl Method {
    fn new(words: &mut Words) -> Self {
        let sentences = if words.chance(0.25) { 0 } else { 1 + words.below(5) };
        Self {
            result: words.name(1),
            name: words.word() + &words.name(1),
            parameter: words.word(),
            sentences: (0..sentences).map(|_| words.sentence()).collect(),
        }
    }

    fn signature(&self) -> String {
        format!("{} {} {}", self.result, self.name, self.parameter)
    }

    fn summary(&self) -> &str {
        self.sentences.first().map_or("", String::as_str)
    }
}
