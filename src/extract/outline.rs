//! HTML -> its elements and the text in them, in the order of the page.
//! Elements are rows of a table, and each row has the index of its parent. There is no tree of pointers, and nothing
//! here recurses. So a deeply nested page cannot overflow the stack, neither when the outline is built nor when it is
//! dropped. Tags are matched in a simple way, each in bounded time. This is good enough to know which text is in which
//! part of the page, but it is not always what a browser does.
//! Does not know which part is the main text.

use super::head::Head;
use super::hints::Hints;
use super::tag::Tag;

/// The largest number of elements that are recorded. A page with more elements has no useful outline.
const NODES_MAX: usize = 1 << 17;
/// The largest number of open elements. Pages written by people have fewer than 100, and browsers allow 512.
const DEPTH_MAX: usize = 2048;
/// The largest number of open elements that are searched for an element that a tag closes. This bounds the work for
/// each tag.
const SEARCH_MAX: usize = 256;

/// The index of an element in [`Outline::nodes`].
pub(super) type At = u32;

/// An element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub tag: Tag,
    pub hints: Hints,
    pub parent: At,
    /// The nearest element that begins a line: the element itself, or one around it.
    pub block: At,
    /// The first element after this element and all elements in it.
    pub end: At,
    /// The range of the runs in the element and in the elements inside it: the first run, and the run after the last
    /// one.
    pub runs: (u32, u32),
    /// Whether the element is a link, or is in one.
    pub in_link: bool,
    /// Whether the text of the element is not shown. Such text is not recorded.
    pub unseen: bool,
}

/// The break between a run of text and the run before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    None,
    Space,
    Line,
}

/// A piece of text between two tags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub node: At,
    /// The start and the end of the run in [`Outline::text`].
    pub bytes: (u32, u32),
    pub gap: Gap,
    /// The number of bytes other than white space.
    pub dense: u32,
}

/// The elements and the text of a page.
#[derive(Debug)]
pub(super) struct Outline {
    /// The elements, each before the elements in it. The first element is the page.
    pub nodes: Vec<Node>,
    pub runs: Vec<Run>,
    /// The text of all runs. Consecutive white space becomes one space, except that line ends in `pre` are kept.
    pub text: String,
    pub head: Head,
    /// Whether the page has more elements than are recorded. All of its text is recorded nevertheless.
    pub cut: bool,
}

/// Makes an [`Outline`] from tags and texts in the order of the page.
#[derive(Debug)]
pub(super) struct Builder {
    outline: Outline,
    /// Open elements, the outermost first.
    open: Vec<At>,
    /// How many elements of each kind are open.
    open_of: [u32; Tag::COUNT],
    /// Whether the next text belongs to a `script` or a similar element.
    raw: bool,
    /// The text of the open `title`.
    title: Option<String>,
    /// The break before the next text.
    gap: Gap,
}

impl Builder {
    pub(super) fn new() -> Self {
        let page = Node {
            tag: Tag::Html,
            hints: Hints::default(),
            parent: 0,
            block: 0,
            end: 0,
            runs: (0, 0),
            in_link: false,
            unseen: false,
        };
        let (nodes, runs, text) = (vec![page], Vec::new(), String::new());
        Self {
            outline: Outline { nodes, runs, text, head: Head::default(), cut: false },
            open: vec![0],
            open_of: [0; Tag::COUNT],
            raw: false,
            title: None,
            gap: Gap::None,
        }
    }

    pub(super) fn head(&mut self) -> &mut Head {
        &mut self.outline.head
    }

    /// Takes a start tag. `closed` says whether the tag also ends the element.
    pub(super) fn start(&mut self, tag: Tag, hints: Hints, closed: bool) {
        self.widen(gap_of(tag));
        match tag {
            Tag::Title if self.is_foreign() => (),
            Tag::Title => self.title = Some(String::new()).filter(|_| !closed),
            Tag::Raw => self.raw = !closed,
            Tag::Html | Tag::Body => (),
            _ if tag.is_void() => (),
            _ => {
                self.end_implied(tag);
                if !closed {
                    self.push(tag, hints);
                }
            }
        }
    }

    /// Takes an end tag.
    pub(super) fn end(&mut self, tag: Tag) {
        self.raw = false;
        if let Some(title) = self.title.take() {
            self.outline.head.title(&title);
        }
        let open = if self.open_of(tag) > 0 {
            self.find(|other| tag.closes(other), |other| tag.stops_at(other))
        } else {
            None
        };
        // An end tag `</p>` without an open paragraph is an empty paragraph.
        if open.is_some() || tag == Tag::Paragraph || self.outline.cut {
            self.widen(gap_of(tag));
        }
        if let Some(at) = open {
            self.close_from(at);
        }
    }

    /// Returns whether a drawing or a formula is open, and no HTML is open inside it.
    pub(super) fn is_foreign(&self) -> bool {
        self.foreign().is_some()
    }

    /// Returns whether the next text is not needed, because it belongs to a `script` or a similar element.
    pub(super) fn is_raw(&self) -> bool {
        self.raw
    }

    /// Takes text.
    pub(super) fn text(&mut self, text: &str) {
        if let Some(title) = &mut self.title {
            return title.push_str(text);
        }
        let at = *self.open.last().expect("the page stays open");
        if self.outline.nodes[at as usize].unseen {
            return;
        }
        let lines = self.open_of[Tag::Pre as usize] > 0;
        let Outline { text: all, runs, .. } = &mut self.outline;
        // Text after an element that was not recorded belongs to the run before that element. The number of runs is
        // therefore bounded, like the number of elements.
        let mut in_run = runs.last().is_some_and(|run| run.node == at);
        let mut dense = 0;
        for word in text.split_inclusive(char::is_whitespace) {
            let trimmed = word.trim_end();
            if !trimmed.is_empty() {
                if !in_run {
                    let start = all.len() as u32;
                    runs.push(Run { node: at, bytes: (start, start), gap: self.gap, dense: 0 });
                    in_run = true;
                } else if self.gap > Gap::None {
                    all.push(if self.gap == Gap::Line { '\n' } else { ' ' });
                }
                self.gap = Gap::None;
                all.push_str(trimmed);
                dense += trimmed.len();
            }
            if trimmed.len() < word.len() {
                self.gap = self.gap.max(if lines && word.ends_with('\n') { Gap::Line } else { Gap::Space });
            }
        }
        if let Some(run) = runs.last_mut().filter(|_| dense > 0) {
            run.bytes.1 = all.len() as u32;
            run.dense += dense as u32;
        }
    }

    /// Returns the outline. Open elements end here.
    pub(super) fn finish(mut self) -> Outline {
        if let Some(title) = self.title.take() {
            self.outline.head.title(&title);
        }
        self.close_from(0);
        self.outline
    }

    fn widen(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// Returns the number of open elements that the end tag of `tag` closes.
    fn open_of(&self, tag: Tag) -> u32 {
        if tag.is_heading() {
            self.open_of[Tag::Heading1 as usize] + self.open_of[Tag::Heading as usize]
        } else {
            self.open_of[tag as usize]
        }
    }

    /// Returns the innermost open element for which `found` is true. The search ends at the first element for which
    /// `stop` is true. Tags in a `template` end no element outside the `template`.
    fn find(&self, found: impl Fn(Tag) -> bool, stop: impl Fn(Tag) -> bool) -> Option<usize> {
        let innermost_first = self.open.iter().enumerate().skip(1).rev().take(SEARCH_MAX);
        for (at, &node) in innermost_first {
            let tag = self.outline.nodes[node as usize].tag;
            if found(tag) {
                return Some(at);
            }
            if tag == Tag::Unseen || stop(tag) {
                return None;
            }
        }
        None
    }

    /// Returns the drawing or the formula that is open, if no HTML is open inside it.
    fn foreign(&self) -> Option<usize> {
        let open = [Tag::Drawing, Tag::Formula].map(|tag| self.open_of[tag as usize]);
        if open == [0, 0] { None } else { self.find(Tag::is_foreign, |_| false) }
    }

    /// Closes the open elements that end when an element of kind `tag` begins, because their end tags may be left out.
    fn end_implied(&mut self, tag: Tag) {
        if tag.is_block()
            && let Some(at) = self.foreign()
        {
            self.close_from(at);
        }
        if tag.is_block()
            && self.open_of[Tag::Paragraph as usize] > 0
            && let Some(at) = self.find(|other| other == Tag::Paragraph, Tag::is_block)
        {
            self.close_from(at);
        }
        if let Some((ended, stops_at)) = tag.implies_end_of()
            && self.open_of[ended as usize] > 0
            && let Some(at) = self.find(|other| other == ended, stops_at)
        {
            self.close_from(at);
        }
    }

    fn push(&mut self, tag: Tag, hints: Hints) {
        // A drawing can have thousands of inline elements, often without an end tag. The text of the drawing is not
        // shown, so only the end tag of the drawing counts.
        let is_hidden = self.open_of[Tag::Unseen as usize] + self.open_of[Tag::Drawing as usize] > 0;
        if is_hidden && !tag.is_block() && !tag.is_unseen() && !tag.is_foreign() {
            return;
        }
        let Outline { nodes, runs, cut, .. } = &mut self.outline;
        if *cut || nodes.len() >= NODES_MAX || self.open.len() >= DEPTH_MAX {
            *cut = true;
            return;
        }
        let (at, parent) = (nodes.len() as At, *self.open.last().expect("the page stays open"));
        let around = nodes[parent as usize];
        nodes.push(Node {
            tag,
            hints,
            parent,
            block: if tag.is_block() { at } else { around.block },
            end: 0,
            runs: (runs.len() as u32, 0),
            in_link: around.in_link || tag == Tag::Anchor && hints.is_link(),
            unseen: around.unseen || tag.is_unseen() || hints.is_hidden(),
        });
        self.open.push(at);
        self.open_of[tag as usize] += 1;
    }

    /// Closes the open element with this index, and the elements inside it.
    fn close_from(&mut self, at: usize) {
        let Outline { nodes, runs, .. } = &mut self.outline;
        let (end, runs) = (nodes.len() as At, runs.len() as u32);
        for &node in &self.open[at..] {
            let node = &mut nodes[node as usize];
            (node.end, node.runs.1) = (end, runs);
            self.open_of[node.tag as usize] = self.open_of[node.tag as usize].saturating_sub(1);
        }
        self.open.truncate(at);
    }
}

/// Returns the break that the tags of an element make.
fn gap_of(tag: Tag) -> Gap {
    match tag {
        Tag::Cell => Gap::Space,
        Tag::Break => Gap::Line,
        Tag::Control | Tag::Choice => Gap::Space,
        _ if tag.is_block() => Gap::Line,
        _ => Gap::None,
    }
}
