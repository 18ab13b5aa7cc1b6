//! The scan finds each kind of sentence, and leaves out strings that are not sentences.

use super::scan::{Kind, scan};
use super::template::Template;

/// Kind and source of each message in a text.
fn found(text: &str) -> Vec<(String, String)> {
    let kind = |kind| match kind {
        Kind::Error(name) => format!("error {name}"),
        Kind::Log { level, fields } => format!("{level} {}", fields.join(" ")),
        Kind::Text => "text".to_owned(),
    };
    scan(text).into_iter().map(|message| (kind(message.kind), message.template.source().to_owned())).collect()
}

fn texts(text: &str) -> Vec<String> {
    found(text).into_iter().map(|(_, source)| source).collect()
}

#[test]
fn errors_are_found_with_their_names() {
    let source = r#"
        #[derive(Debug, thiserror::Error)]
        pub enum Wrong {
            /// Too long.
            #[error("it has {bytes} bytes")]
            Long { bytes: u64 },
            #[error(transparent)]
            Other(#[from] Inner),
            #[error("no file {0}")]
            Missing(String),
        }
        #[error("the queue is full")]
        pub struct Full;
    "#;
    let expected = [
        ("error Wrong::Long", "it has {bytes} bytes"),
        ("error Wrong::Other", "(transparent)"),
        ("error Wrong::Missing", "no file {0}"),
        ("error Full", "the queue is full"),
    ];
    assert_eq!(found(source), expected.map(|(kind, text)| (kind.to_owned(), text.to_owned())));
}

#[test]
fn log_lines_are_found_with_level_and_fields() {
    let source = r#"fn f() {
        tracing::warn!(path = %path.display(), ?why, count, "it is {} of {max}", rows);
        match x { Ok(()) => tracing::info!(target: T, "done"), Err(error) => {} }
        tracing::error!(error = %"no room here", "lost");
    }"#;
    let expected = [
        ("WARN path why count", "it is {} of {max}"),
        ("INFO ", "done"),
        ("ERROR error", "lost"),
        ("text", "no room here"),
    ];
    assert_eq!(found(source), expected.map(|(kind, text)| (kind.to_owned(), text.to_owned())));
}

#[test]
fn texts_are_found_wherever_they_are() {
    let source = r#"
        const HINT: &str = "try it again";
        fn f() -> Result {
            ensure!(x > 0, "x must be {}", "above zero");
            let it = read().context("cannot read")?;
            other(|| anyhow!("no such {name}")).with_context(|| format!("in {path}, {}", if b { "a row" } else { "row" }))?;
            match it { One => ("code", "a title"), Two => Problem::new(Code::X, "two words".to_string()) }
        }
        metrics! { A: "a", "Things counted."; }
    "#;
    let expected = [
        "try it again",
        "x must be {}",
        "above zero",
        "cannot read",
        "no such {name}",
        "in {path}, {}",
        "a row",
        "a title",
        "two words",
        "Things counted.",
    ];
    assert_eq!(texts(source), expected);
}

#[test]
fn strings_that_nobody_reads_are_left_out() {
    let source = r#"
        //! A comment of words.
        #![doc = "more words here"]
        /// Another comment.
        #[serde(rename = "two words")]
        fn f() {
            let name = "word"; let columns = "s.seq, s.bytes, s.sum, d.id"; let bytes = b"two words";
            db.query("SELECT seq FROM rows", format!("{} WHERE {p}.seq = 1", select)).expect("the row is there");
            assert!(x, "x must hold"); unreachable!("it never comes here");
            let line = format!("{path}: {detail}");
        }
        #[cfg(test)]
        use super::{a, b};
        #[cfg(all(test, unix))]
        mod tests { fn g() { f("words of tests"); } }
        #[test]
        fn claim() { f("words of a test"); }
        struct S { #[cfg(test)] seen: X, }
    "#;
    assert_eq!(texts(source), [""; 0]);
    assert_eq!(texts("#[cfg(not(test))] fn f() { f(\"it is found\") }"), ["it is found"]);
}

#[test]
fn placeholders_have_examples_or_are_named() {
    let filled = |text: &str, arguments: &[&str]| {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Template::filled(text.to_owned(), arguments).read("src/x.rs")
    };
    let read = filled("{{{max}}} of {:.1}, {x:?}", &["self.max.len()", "x=path.display()"]);
    assert_eq!(read, Ok("{10} of 10, \"/srv/hapax/data/collections/news.sqlite\"".to_owned()));
    assert_eq!(filled("{unheard} of", &[]), Err(vec!["unheard".to_owned()]));
    assert_eq!(Template::plain("a {brace}".to_owned()).read("src/x.rs"), Ok("a {brace}".to_owned()));
}
