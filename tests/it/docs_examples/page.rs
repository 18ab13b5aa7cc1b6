//! Markdown -> the examples of a page, in order, each with its directives and the output that the page shows.
//! Runs nothing.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

static FENCE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^( *)(```+) *([A-Za-z0-9_-]*)").unwrap());
static DIRECTIVE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^ *<!-- *(exit|server|not run): *(.*?) *-->$").unwrap());
/// A command that starts a server: `hapax serve`, after any variables. With `--check-config` or `--help` it does not
/// start one.
static SERVE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^([A-Za-z_]\w*=\S* +)*hapax serve\b").unwrap());

/// The examples of one page, and the mistakes in how they are written.
#[derive(Debug, Default)]
pub struct Page {
    pub examples: Vec<Example>,
    pub mistakes: Vec<Mistake>,
}

/// A mistake, and its line in the page; lines count from 1.
#[derive(Debug, PartialEq, Eq)]
pub struct Mistake {
    pub line: usize,
    pub text: String,
}

#[derive(Debug)]
pub struct Example {
    /// The line of the opening fence.
    pub line: usize,
    pub kind: Kind,
    pub text: String,
    pub exit: i32,
    pub server: Option<Directive>,
    pub output: Option<Output>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Commands that are run.
    Shell,
    /// Commands; the last one becomes the server of the page.
    Serve,
    /// A configuration file that `hapax serve --check-config` accepts.
    Config,
}

/// The server that an example needs, if it is not the running one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    Stopped,
    /// The server is restarted on the same data, with these environment variables.
    With(Vec<(String, String)>),
}

/// The output that a page shows.
#[derive(Debug)]
pub struct Output {
    pub is_json: bool,
    pub text: String,
    /// Indices of its lines in the page, without the fences.
    pub lines: Range<usize>,
}

/// The directives that apply to the next block.
#[derive(Debug, Default)]
struct Pending {
    exit: Option<i32>,
    server: Option<Directive>,
    not_run: bool,
}

/// A fenced block.
struct Block {
    line: usize,
    language: String,
    text: String,
    lines: Range<usize>,
}

impl Page {
    /// Reads a page.
    pub fn parse(markdown: &str) -> Self {
        let mut page = Self::default();
        let mut pending = Pending::default();
        // Whether the next block shows the output of the last example.
        let mut after_example = false;
        let lines: Vec<&str> = markdown.lines().collect();
        let mut at = 0;
        while at < lines.len() {
            if let Some(directive) = DIRECTIVE.captures(lines[at]) {
                page.direct(&mut pending, at + 1, &directive[1], &directive[2]);
                after_example = false;
            } else if FENCE.is_match(lines[at]) {
                let block = block(&lines, at);
                at = block.lines.end;
                if at == lines.len() {
                    page.mistake(block.line, "the block is not closed");
                }
                after_example = page.add(block, std::mem::take(&mut pending), after_example);
            } else if !lines[at].trim().is_empty() {
                pending = Pending::default();
                after_example = false;
            }
            at += 1;
        }
        page
    }

    fn mistake(&mut self, line: usize, text: &str) {
        self.mistakes.push(Mistake { line, text: text.to_owned() });
    }

    fn direct(&mut self, pending: &mut Pending, line: usize, name: &str, value: &str) {
        match name {
            "exit" => match value.parse() {
                Ok(status) => pending.exit = Some(status),
                Err(_) => self.mistake(line, "`exit` takes a number"),
            },
            "not run" if value.len() < 5 => self.mistake(line, "`not run` takes a reason"),
            "not run" => pending.not_run = true,
            _ if value == "stopped" => pending.server = Some(Directive::Stopped),
            _ if value == "default" => pending.server = Some(Directive::With(Vec::new())),
            _ => {
                let pairs = value.split_whitespace().map(|pair| pair.split_once('='));
                let pairs = pairs.map(|pair| pair.map(|(key, value)| (key.to_owned(), value.to_owned())));
                match pairs.collect::<Option<Vec<_>>>() {
                    Some(pairs) if !pairs.is_empty() => pending.server = Some(Directive::With(pairs)),
                    _ => self.mistake(line, "`server` takes `stopped`, `default` or KEY=VALUE ..."),
                }
            }
        }
    }

    /// Adds a block. Returns whether the next block may be its output.
    fn add(&mut self, block: Block, pending: Pending, after_example: bool) -> bool {
        if pending.not_run {
            return false;
        }
        let is_json = block.language == "json";
        let kind = match &*block.language {
            "sh" => shell_kind(&block.text, pending.exit),
            "toml" => Kind::Config,
            "json" | "text" if after_example => {
                let output = Output { is_json, text: block.text, lines: block.lines };
                self.examples.last_mut().expect("there is an example").output = Some(output);
                return false;
            }
            "json" => {
                self.mistake(
                    block.line,
                    "`json` that is the output of no example; say why with `<!-- not run: ... -->`",
                );
                return false;
            }
            _ => return false,
        };
        let Pending { exit, server, .. } = pending;
        let example =
            Example { line: block.line, kind, text: block.text, exit: exit.unwrap_or(0), server, output: None };
        self.examples.push(example);
        kind != Kind::Config
    }
}

/// Returns the block whose opening fence is line `at`, without the indentation of the fence.
fn block(lines: &[&str], at: usize) -> Block {
    let fence = FENCE.captures(lines[at]).expect("a fence");
    let inside = &lines[at + 1..];
    let length = inside.iter().position(|line| line.trim() == &fence[2]).unwrap_or(inside.len());
    let without = |line: &&str| line.strip_prefix(&fence[1]).unwrap_or(line.trim_start()).to_owned();
    Block {
        line: at + 1,
        language: fence[3].to_owned(),
        text: inside[..length].iter().map(without).collect::<Vec<_>>().join("\n"),
        lines: at + 1..at + 1 + length,
    }
}

/// Returns the kind of a block of commands. A server that must fail counts as an ordinary command.
fn shell_kind(text: &str, exit: Option<i32>) -> Kind {
    let joined = text.replace("\\\n", " ");
    let last = joined.trim_end().lines().last().unwrap_or_default();
    let is_server = SERVE.is_match(last) && !last.contains("--check-config") && !last.contains("--help");
    if is_server && exit.unwrap_or(0) == 0 { Kind::Serve } else { Kind::Shell }
}

#[test]
fn blocks_directives_and_outputs_are_read() {
    let page = Page::parse(
        "# A\n\n```sh\necho 1\n```\n```json\n1\n```\n\n<!-- exit: 1 -->\n<!-- server: stopped -->\n```sh\nfalse\n```\n\n\
         Words.\n\n```text\na picture\n```\n\n- in a list:\n  ```sh\n  A=1 hapax serve \\\n    --listen x\n  ```\n\n\
         ```toml\n[server]\n```\n<!-- server: A=1 B=2 -->\n```sh\nhapax serve --check-config\n```\n",
    );
    assert_eq!(page.mistakes, []);
    let lines: Vec<_> = page.examples.iter().map(|example| (example.line, example.kind, example.exit)).collect();
    let wanted =
        [(3, Kind::Shell, 0), (12, Kind::Shell, 1), (23, Kind::Serve, 0), (28, Kind::Config, 0), (32, Kind::Shell, 0)];
    assert_eq!(lines, wanted);
    let output = page.examples[0].output.as_ref().unwrap();
    assert_eq!((output.is_json, &*output.text, output.lines.clone()), (true, "1", 6..7));
    assert!(page.examples[1].output.is_none());
    assert_eq!(page.examples[1].server, Some(Directive::Stopped));
    assert_eq!(page.examples[2].text, "A=1 hapax serve \\\n  --listen x");
    let pairs = [("A", "1"), ("B", "2")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(page.examples[4].server, Some(Directive::With(pairs.to_vec())));
}

#[test]
fn mistakes_are_told() {
    let page = Page::parse(
        "```json\n{}\n```\n<!-- exit: no -->\n<!-- not run: x -->\n<!-- server: up -->\n\n\
         <!-- not run: it needs Docker -->\n```json\n{}\n```\n```sh\ntrue\n",
    );
    assert_eq!(page.mistakes.iter().map(|mistake| mistake.line).collect::<Vec<_>>(), [1, 4, 5, 6, 12]);
    assert_eq!(page.examples.len(), 1);
}
