//! Source text -> the sentences in it that a person may read.
//!
//! It reads tokens, not syntax, because most sentences are in arguments of macros, which syntax trees do not parse. It
//! does not know how a sentence is used. It therefore takes every string of two words or more, except in code of tests,
//! in panics and assertions, in attributes and in SQL.

use std::sync::LazyLock;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use regex::Regex;

use super::template::{Template, no_spaces};

/// A sentence as it is written in the source, with its placeholders.
#[derive(Debug)]
pub struct Message {
    pub kind: Kind,
    pub template: Template,
}

#[derive(Debug, PartialEq)]
pub enum Kind {
    /// The text of an error. The name is `Type::Variant`, or that of a struct.
    Error(String),
    /// A log line.
    Log { level: String, fields: Vec<String> },
    /// Any other string.
    Text,
}

/// Macros whose strings describe a bug, or are code.
const FOR_BUGS: [&str; 11] = [
    "asm",
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "panic",
    "unreachable",
    "todo",
    "compile_error",
];
/// Macros that fill a template with their arguments.
const FORMATTING: [&str; 10] =
    ["format", "format_args", "write", "writeln", "print", "println", "eprint", "eprintln", "bail", "anyhow"];
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Statements of SQL, their parts, and lists of columns.
static SQL: LazyLock<Regex> = LazyLock::new(|| {
    let words = "SELECT|INSERT|UPDATE|DELETE FROM|CREATE|DROP|PRAGMA|ALTER|WITH|BEGIN|FROM|WHERE|LEFT JOIN|ORDER BY|\
                 GROUP BY|VALUES|ON CONFLICT|ATTACH|DETACH|VACUUM|REINDEX|SAVEPOINT";
    Regex::new(&format!(r"^(\{{\}})?\s*({words})\b|^[a-z_.]+(, [a-z_.]+){{3,}}$")).unwrap()
});
static ONLY_IN_TESTS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^(test|cfg\((all\(.*\b)?test\b.*\))$").unwrap());

/// All sentences of a source file, in their order.
pub fn scan(text: &str) -> Vec<Message> {
    let tokens: TokenStream = text.parse().expect("Rust");
    let mut scan = Scan { enum_name: None, found: Vec::new() };
    scan.walk(tokens);
    scan.found
}

struct Scan {
    /// The enum whose variants are being read.
    enum_name: Option<String>,
    found: Vec<Message>,
}

impl Scan {
    fn walk(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = self.step(&tokens, at);
        }
    }

    /// Reads the item that begins at `at`, and returns the place after it.
    fn step(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        if let Some((attribute, next)) = attribute(tokens, at) {
            if ONLY_IN_TESTS.is_match(&no_spaces(attribute.stream())) {
                return behind_item(tokens, next);
            }
            self.error_text(&attribute, &tokens[next..]);
            return next;
        }
        if let Some((name, group)) = macro_call(tokens, at) {
            self.macro_call(&name, group);
            return at + 3;
        }
        match &tokens[at] {
            TokenTree::Ident(ident) if ident == "enum" => {
                let name = tokens.get(at + 1).map(TokenTree::to_string);
                let body = tokens[at..].iter().position(|token| braces(token).is_some()).map(|n| at + n);
                if let Some(body) = body {
                    let outer = std::mem::replace(&mut self.enum_name, name);
                    self.walk(braces(&tokens[body]).expect("the body of the enum").stream());
                    self.enum_name = outer;
                    return body + 1;
                }
            }
            // The text of an `expect` names a promise of the code, and is left out.
            TokenTree::Ident(ident) if ident == "expect" || ident == "expect_err" => return at + 2,
            TokenTree::Group(group) => self.walk(group.stream()),
            TokenTree::Literal(literal) => {
                if let Some(text) = string(literal) {
                    self.text(Template::plain(text));
                }
            }
            _ => {}
        }
        at + 1
    }

    fn text(&mut self, template: Template) {
        if template.is_sentence() && !SQL.is_match(template.source()) {
            self.found.push(Message { kind: Kind::Text, template });
        }
    }

    /// Reads `#[error("...")]` of the variant or struct that follows.
    fn error_text(&mut self, attribute: &Group, mut rest: &[TokenTree]) {
        let parts: Vec<_> = attribute.stream().into_iter().collect();
        let [TokenTree::Ident(name), TokenTree::Group(arguments)] = parts.as_slice() else { return };
        if name != "error" {
            return;
        }
        while let Some((_, next)) = self::attribute(rest, 0) {
            rest = &rest[next..];
        }
        let is_struct = rest.iter().take(3).position(|token| token.to_string() == "struct");
        let named = is_struct.map_or(0, |at| at + 1);
        let item = rest[named].to_string();
        let name = match &self.enum_name {
            Some(of) if is_struct.is_none() => format!("{of}::{item}"),
            _ => item,
        };
        let fields = rest.get(named + 1).and_then(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => Some(types(group)),
            _ => None,
        });
        let template = if no_spaces(arguments.stream()) == "transparent" {
            Template::plain("(transparent)".to_owned())
        } else {
            let (template, _) = template_of(arguments.stream()).expect("the text of an error");
            template.with_fields(fields.unwrap_or_default())
        };
        self.found.push(Message { kind: Kind::Error(name), template });
    }

    fn macro_call(&mut self, name: &str, group: &Group) {
        if FOR_BUGS.contains(&name) {
            return;
        }
        if LEVELS.contains(&name) {
            return self.log(name, group.stream());
        }
        match template_of(group.stream()) {
            Some((template, others)) if FORMATTING.contains(&name) || name == "ensure" => {
                self.text(template);
                others.into_iter().for_each(|tokens| self.walk(tokens));
            }
            _ => self.walk(group.stream()),
        }
    }

    fn log(&mut self, level: &str, tokens: TokenStream) {
        let Some((template, others)) = template_of(tokens) else { return };
        let taken = |text: &str| template.arguments().iter().any(|argument| argument == text);
        let field = |tokens: &TokenStream| {
            let text = no_spaces(tokens.clone());
            let name = text.split('=').next().expect("a part").trim_start_matches(['%', '?']).to_owned();
            (!text.starts_with("target:") && !taken(&text)).then_some(name)
        };
        let fields = others.iter().filter_map(field).collect();
        self.found.push(Message { kind: Kind::Log { level: level.to_uppercase(), fields }, template });
        others.into_iter().for_each(|tokens| self.walk(tokens));
    }
}

/// Returns the attribute that begins at `at`, and the place after it. Doc comments are attributes too.
fn attribute(tokens: &[TokenTree], at: usize) -> Option<(Group, usize)> {
    let punct = |n: usize, c: char| matches!(tokens.get(n), Some(TokenTree::Punct(punct)) if punct.as_char() == c);
    if !punct(at, '#') {
        return None;
    }
    let group = if punct(at + 1, '!') { at + 2 } else { at + 1 };
    match tokens.get(group) {
        Some(TokenTree::Group(inner)) if inner.delimiter() == Delimiter::Bracket => Some((inner.clone(), group + 1)),
        _ => None,
    }
}

/// The name and the arguments of the macro that is called at `at`.
fn macro_call(tokens: &[TokenTree], at: usize) -> Option<(String, &Group)> {
    match tokens.get(at..at + 3)? {
        [TokenTree::Ident(name), TokenTree::Punct(mark), TokenTree::Group(group)] if mark.as_char() == '!' => {
            Some((name.to_string(), group))
        }
        _ => None,
    }
}

/// Returns the place after the item, field or arm that begins at `at`.
fn behind_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while let Some((_, next)) = attribute(tokens, at) {
        at = next;
    }
    let words = tokens[at..].iter().take(3).map(TokenTree::to_string).collect::<Vec<_>>();
    let has = |word: &str| words.iter().any(|other| other == word);
    let generic =
        ["fn", "impl", "struct", "enum", "mod", "const", "static", "async", "unsafe"].iter().any(|word| has(word));
    let end = tokens[at..].iter().position(|token| match token {
        TokenTree::Punct(punct) => punct.as_char() == ';' || punct.as_char() == ',' && !generic,
        token => braces(token).is_some() && !has("use"),
    });
    end.map_or(tokens.len(), |end| at + end + 1)
}

/// Returns the template among the arguments of a macro, with the expressions that fill it. Also returns all arguments
/// except the template, so that they are searched too.
fn template_of(tokens: TokenStream) -> Option<(Template, Vec<TokenStream>)> {
    let parts = commas(tokens);
    let only_string = |part: &TokenStream| {
        let mut tokens = part.clone().into_iter();
        match (tokens.next(), tokens.next()) {
            (Some(TokenTree::Literal(literal)), None) => string(&literal),
            _ => None,
        }
    };
    let at = parts.iter().position(|part| only_string(part).is_some())?;
    let text = only_string(&parts[at]).expect("a string");
    let arguments = parts[at + 1..].iter().map(|part| no_spaces(part.clone())).collect();
    let others = parts.into_iter().enumerate().filter(|(n, _)| *n != at).map(|(_, part)| part).collect();
    Some((Template::filled(text, arguments), others))
}

fn types(fields: &Group) -> Vec<String> {
    let of_field = |tokens: TokenStream| {
        let mut tokens: Vec<_> = tokens.into_iter().collect();
        while let Some((_, next)) = attribute(&tokens, 0) {
            tokens.drain(..next);
        }
        let text = no_spaces(tokens.into_iter().collect());
        text.strip_prefix("pub").unwrap_or(&text).to_owned()
    };
    commas(fields.stream()).into_iter().map(of_field).collect()
}

/// Returns the parts between commas.
fn commas(tokens: TokenStream) -> Vec<TokenStream> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    let parts = tokens.split(is_comma).filter(|part| !part.is_empty());
    parts.map(|part| part.iter().cloned().collect()).collect()
}

fn braces(token: &TokenTree) -> Option<&Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    }
}

/// Returns the value of a string literal; `None` for byte strings.
fn string(literal: &proc_macro2::Literal) -> Option<String> {
    syn::parse_str::<syn::LitStr>(&literal.to_string()).ok().map(|text| text.value())
}
