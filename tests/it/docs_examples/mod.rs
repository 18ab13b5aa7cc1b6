//! The README and the pages of `docs/` are correct: their examples print the output that the page shows. They run in
//! the order of each page, against a separate server for each page. CONTRIBUTING.md says how examples are written.
//!
//! `HAPAX_DOCS_PAGE=clusters` runs one page. `HAPAX_RECORD=1` puts what was printed into the pages.

mod compare;
mod page;
mod record;
mod session;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use page::{Example, Kind, Page};
use session::Session;

/// The pages that need no examples.
const WITHOUT_EXAMPLES: [&str; 5] =
    ["docs/README.md", "docs/inside.md", "docs/proxies.md", "docs/python.md", "docs/spec.md"];
/// The programs that examples call in addition to those that every system has. In CI all of them must be there.
/// Elsewhere, a page that calls a missing program is left out, with a note.
const TOOLS: [&str; 3] = ["curl", "jq", "zstd"];
/// How many pages run at once.
const THREADS: usize = 2;

/// The result of running a page.
#[derive(Debug, Default)]
struct Outcome {
    examples: usize,
    /// `page:line: difference`
    failures: Vec<String>,
    /// The page, with the outputs that were printed.
    recorded: String,
}

fn run(name: &str, markdown: &str) -> Outcome {
    let page = Page::parse(markdown);
    let tell = |line: usize, text: &str| format!("{name}:{line}: {text}");
    let mut outcome = Outcome { examples: page.examples.len(), ..Outcome::default() };
    outcome.failures.extend(page.mistakes.iter().map(|mistake| tell(mistake.line, &mistake.text)));
    if page.examples.is_empty() && !WITHOUT_EXAMPLES.contains(&name) {
        outcome.failures.push(tell(1, "the page has no example, and is not one of those that need none"));
    }
    let mut session = Session::new();
    let mut outputs = Vec::new();
    for example in &page.examples {
        match follow(&mut session, example) {
            Ok(()) => {}
            Err(Failure::Failed(text)) => outcome.failures.push(tell(example.line, &text)),
            Err(Failure::Differs { text, printed }) => {
                let shown = example.output.as_ref().expect("an output that differs");
                outcome.failures.push(tell(shown.lines.start, &text));
                let printed = if shown.is_json { record::json(&printed) } else { printed };
                outputs.push((shown.lines.clone(), printed));
            }
        }
    }
    let mut lines: Vec<&str> = markdown.lines().collect();
    for (range, printed) in outputs.iter().rev() {
        lines.splice(range.clone(), printed.trim_end().lines());
    }
    outcome.recorded = lines.join("\n") + "\n";
    outcome
}

enum Failure {
    Failed(String),
    Differs { text: String, printed: String },
}

/// Runs one example.
fn follow(session: &mut Session, example: &Example) -> Result<(), Failure> {
    let printed = match example.kind {
        Kind::Serve => {
            if let Some(directive) = &example.server {
                session.prepare(Some(directive)).map_err(Failure::Failed)?;
            }
            session.start(&example.text).map_err(Failure::Failed)?
        }
        Kind::Shell | Kind::Config => {
            let text = match example.kind {
                Kind::Config => {
                    let path = "/srv/hapax/checked.toml";
                    format!(
                        "cat > {path} <<'END-OF-FILE'\n{}\nEND-OF-FILE\nhapax serve --check-config --config {path}",
                        example.text
                    )
                }
                _ => example.text.clone(),
            };
            if example.kind == Kind::Shell || example.server.is_some() {
                session.prepare(example.server.as_ref()).map_err(Failure::Failed)?;
            }
            let apart = example.output.as_ref().is_some_and(|output| output.is_json);
            let ran = session.run(&text, apart).map_err(Failure::Failed)?;
            if ran.status != example.exit {
                let told = format!("exit status {}, not {}:\n{}{}", ran.status, example.exit, ran.stdout, ran.stderr);
                return Err(Failure::Failed(told));
            }
            ran.stdout
        }
    };
    let Some(shown) = &example.output else { return Ok(()) };
    match compare::difference(shown.is_json, &shown.text, &printed) {
        Some(text) => Err(Failure::Differs { text, printed }),
        None => Ok(()),
    }
}

/// Returns the paths of the README and of the pages of `docs/`, from the root of the checkout.
fn pages() -> Vec<String> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let docs = docs.filter_map(|name| name.into_string().ok()).filter(|name| name.ends_with(".md"));
    let mut pages: Vec<_> = docs.map(|name| format!("docs/{name}")).collect();
    pages.sort();
    pages.insert(0, "README.md".to_owned());
    if let Ok(wanted) = env::var("HAPAX_DOCS_PAGE") {
        pages.retain(|page| *page == wanted || Path::new(page).file_stem().is_some_and(|stem| *stem == *wanted));
        assert!(!pages.is_empty(), "HAPAX_DOCS_PAGE={wanted} names no page");
    }
    pages
}

fn is_installed(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn print_what_the_pages_show() {
    let missing: Vec<_> = TOOLS.into_iter().filter(|tool| !is_installed(tool)).collect();
    assert!(missing.is_empty() || env::var_os("CI").is_none(), "the examples call {missing:?}: install them");
    let pages = pages();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            let path = root().join(page);
            let text = fs::read_to_string(&path).unwrap();
            if let Some(tool) = missing.iter().find(|tool| text.contains(**tool)) {
                eprintln!("LEFT OUT: the examples of {page} were not run, because `{tool}` is not installed");
                continue;
            }
            let outcome = run(page, &text);
            println!("{page}: {} examples, {} failures", outcome.examples, outcome.failures.len());
            if env::var_os("HAPAX_RECORD").is_some() {
                fs::write(path, outcome.recorded).unwrap();
            }
            failures.lock().unwrap().extend(outcome.failures);
        }
    };
    thread::scope(|scope| (0..THREADS).for_each(|_| _ = scope.spawn(work)));
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    assert!(failures.is_empty(), "{} differences:\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn a_planted_wrong_answer_is_told() {
    let markdown = "# A page\n\n<!-- server: stopped -->\n```sh\necho '{\"a\": 1}'\n```\n```json\n{\"a\": 2}\n```\n\n\
                    <!-- server: stopped -->\n```sh\nfalse; true\n```\n\n```toml\n[server]\nlisen = 1\n```\n\n\
                    <!-- server: stopped -->\n```sh\necho 127.0.0.1:8080 `pwd`\necho two >&2\n```\n```text\n\
                    127.0.0.1:8080 /srv/hapax\ntwo\n```\n";
    let outcome = run("page.md", markdown);
    let begins: Vec<_> = outcome.failures.iter().map(|failure| failure.lines().next().unwrap()).collect();
    let wanted = [
        "page.md:7: [0].a: the page shows 2, printed was 1",
        "page.md:12: exit status 1, not 0:",
        "page.md:16: exit status 2, not 0:",
    ];
    assert_eq!(begins, wanted);
    assert_eq!(outcome.recorded, markdown.replace("{\"a\": 2}", "{\"a\": 1}"));
}

#[test]
fn a_page_has_a_server_of_its_own() {
    let url = "http://127.0.0.1:8080/v1/collections/default/documents?id=1";
    let markdown = format!(
        "```sh\ncurl -sf '{url}' -H 'content-type: text/plain' -d 'one two three four five' >/dev/null\nhapax health\n```\n\n\
         <!-- server: HAPAX__LOG__LEVEL=warn -->\n```sh\nhapax export\n```\n```text\n{{\"id\":\"1\",…}}\n```\n\n\
         ```sh\nmkdir other\nHAPAX__LOG__LEVEL=warn hapax serve \\\n  --data-dir other\n```\n```text\n\
         hapax ready on http://127.0.0.1:8080 (data in other, 0 documents)\n```\n\n\
         <!-- exit: 2 -->\n```sh\nhapax serve --listen 0.0.0.0:8080\n```\n"
    );
    let outcome = run("page.md", &markdown);
    assert_eq!(outcome.failures, [""; 0]);
    assert_eq!(outcome.examples, 4);
}
