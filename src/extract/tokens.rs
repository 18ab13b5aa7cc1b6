//! HTML -> the calls of an outline's [`Builder`]. `html5gum` finds tags, texts and entities as the HTML standard says.
//! This file stores only the parts of a tag that the outline needs, so even an attribute of 10 MB takes little memory.

use html5gum::{Emitter, Error, State, Tokenizer, naive_next_state};

use super::head::Statement;
use super::hints::Hints;
use super::outline::{Builder, Outline};
use super::tag::Tag;
use crate::types::Syntax;

/// The number of bytes of a tag's or an attribute's name that are kept. All names that matter here are shorter.
const NAME_BYTES_MAX: usize = 32;
/// The number of bytes of an attribute's value that are kept. All values that matter here are shorter.
const VALUE_BYTES_MAX: usize = 4096;

/// Reads a page.
pub(super) fn outline(html: &str, syntax: Syntax) -> Outline {
    let mut tokenizer = Tokenizer::new_with_emitter(html, Tokens::new(syntax == Syntax::Xhtml));
    let Some(Ok(outline)) = tokenizer.next() else { unreachable!("the end of the page gives its outline") };
    outline
}

/// The tag or the text that is being read.
struct Tokens {
    /// `None` after the end of the page.
    builder: Option<Builder>,
    ended: bool,
    /// Whether `/>` ends every element, and not only elements of drawings and formulas.
    xml: bool,
    text: Vec<u8>,
    tag: Kept<NAME_BYTES_MAX>,
    is_start: bool,
    closed: bool,
    /// The name of the last start tag. In a script, `</b>` is a tag only if the last start tag is `b`.
    last_start: Kept<NAME_BYTES_MAX>,
    attribute: Attribute,
    hints: Hints,
    statement: Statement,
}

/// The attribute that is being read.
#[derive(Default)]
struct Attribute {
    name: Kept<NAME_BYTES_MAX>,
    value: Kept<VALUE_BYTES_MAX>,
    begun: bool,
}

/// The bytes that were kept, and whether there were more.
#[derive(Default)]
struct Kept<const MAX: usize> {
    bytes: Vec<u8>,
    cut: bool,
}

impl<const MAX: usize> Kept<MAX> {
    fn clear(&mut self) {
        self.bytes.clear();
        self.cut = false;
    }

    fn push(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(MAX - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..kept]);
        self.cut |= kept < bytes.len();
    }

    /// Returns the bytes if all of them were kept, otherwise none.
    fn whole(&self) -> &[u8] {
        if self.cut { &[] } else { &self.bytes }
    }
}

impl Tokens {
    fn new(xml: bool) -> Self {
        Self {
            builder: Some(Builder::new()),
            ended: false,
            xml,
            text: Vec::new(),
            tag: Kept::default(),
            is_start: false,
            closed: false,
            last_start: Kept::default(),
            attribute: Attribute::default(),
            hints: Hints::default(),
            statement: Statement::default(),
        }
    }

    fn builder(&mut self) -> &mut Builder {
        self.builder.as_mut().expect("it is taken at the end only")
    }

    fn flush_text(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.builder().text(&String::from_utf8_lossy(&text));
            self.text = text;
            self.text.clear();
        }
    }

    /// Reads the attribute, which is now complete.
    fn flush_attribute(&mut self) {
        if !std::mem::take(&mut self.attribute.begun) || !self.is_start {
            return;
        }
        let (name, value) = (self.attribute.name.whole(), self.attribute.value.whole());
        self.hints.add(name, value);
        let kept = match name {
            b"rel" => &mut self.statement.rel,
            b"href" => &mut self.statement.href,
            b"name" | b"property" | b"http-equiv" => &mut self.statement.key,
            b"content" => &mut self.statement.content,
            b"lang" | b"xml:lang" => &mut self.statement.language,
            _ => return,
        };
        if kept.is_empty() {
            kept.extend_from_slice(value);
        }
    }

    fn begin_tag(&mut self, is_start: bool) {
        self.is_start = is_start;
        self.closed = false;
        self.tag.clear();
        self.attribute.begun = false;
        self.hints = Hints::default();
        self.statement = Statement::default();
    }

    fn start_tag(&mut self) -> Option<State> {
        let tag = Tag::of(self.tag.whole());
        let hints = self.hints;
        let builder = self.builder.as_mut().expect("it is taken at the end only");
        let closed = self.closed && (self.xml || tag.is_foreign() || builder.is_foreign());
        match tag {
            Tag::Html => builder.head().html(&self.statement),
            Tag::Link => builder.head().link(&self.statement),
            Tag::Meta => builder.head().meta(&self.statement),
            _ => (),
        }
        builder.start(tag, hints, closed);
        std::mem::swap(&mut self.last_start, &mut self.tag);
        if closed { None } else { naive_next_state(self.last_start.whole()) }
    }
}

impl Emitter for Tokens {
    type Token = Outline;

    fn set_last_start_tag(&mut self, name: Option<&[u8]>) {
        self.last_start.clear();
        self.last_start.push(name.unwrap_or_default());
    }

    fn emit_eof(&mut self) {
        self.flush_text();
        self.ended = true;
    }

    fn emit_error(&mut self, _: Error) {}

    #[inline]
    fn should_emit_errors(&mut self) -> bool {
        false
    }

    #[inline]
    fn pop_token(&mut self) -> Option<Outline> {
        if self.ended { self.builder.take().map(Builder::finish) } else { None }
    }

    fn emit_string(&mut self, text: &[u8]) {
        if self.builder().is_raw() {
            return;
        }
        self.text.extend_from_slice(text);
    }

    fn init_start_tag(&mut self) {
        self.begin_tag(true);
    }

    fn init_end_tag(&mut self) {
        self.begin_tag(false);
    }

    fn init_comment(&mut self) {}

    fn emit_current_tag(&mut self) -> Option<State> {
        self.flush_attribute();
        self.flush_text();
        if self.is_start {
            return self.start_tag();
        }
        let tag = Tag::of(self.tag.whole());
        self.last_start.clear();
        self.builder().end(tag);
        None
    }

    fn emit_current_comment(&mut self) {}

    fn emit_current_doctype(&mut self) {}

    fn set_self_closing(&mut self) {
        self.closed = true;
    }

    fn set_force_quirks(&mut self) {}

    fn push_tag_name(&mut self, name: &[u8]) {
        self.tag.push(name);
    }

    fn push_comment(&mut self, _: &[u8]) {}

    fn push_doctype_name(&mut self, _: &[u8]) {}

    fn init_doctype(&mut self) {}

    fn init_attribute(&mut self) {
        self.flush_attribute();
        self.attribute.name.clear();
        self.attribute.value.clear();
        self.attribute.begun = true;
    }

    fn push_attribute_name(&mut self, name: &[u8]) {
        self.attribute.name.push(name);
    }

    fn push_attribute_value(&mut self, value: &[u8]) {
        self.attribute.value.push(value);
    }

    fn set_doctype_public_identifier(&mut self, _: &[u8]) {}

    fn set_doctype_system_identifier(&mut self, _: &[u8]) {}

    fn push_doctype_public_identifier(&mut self, _: &[u8]) {}

    fn push_doctype_system_identifier(&mut self, _: &[u8]) {}

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        !self.is_start && !self.tag.bytes.is_empty() && self.tag.whole() == self.last_start.whole()
    }
}
