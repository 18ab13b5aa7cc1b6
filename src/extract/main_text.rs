//! The outline of a page -> the runs of its main text, without menus, banners, related links and comments.
//!
//! This file removes the parts that are known not to be main text, and keeps the rest. A Readability-style extractor
//! does the opposite: it keeps the block with the best score. Both methods find an article. But with scores, a small
//! change of a page can make another block the best one, and then two versions of the page have little text in common.
//! `docs/html.md` has figures.
//!
//! Each step is one pass over the table of elements:
//! 1. Elements that are marked as not being main text are left out: `nav`, `role="search"`, `class="sidebar"`.
//! 2. The content is searched for: `main`, or an `article` or `class="content"` that has most of the paragraphs. If
//!    there is none, the whole page is the content.
//! 3. Before the first paragraph of the content and after its last one, blocks of links are left out. If no content
//!    is marked, blocks of links between paragraphs are left out too. In that case, the edges of the page are also left
//!    out: the text before the heading that follows a menu, and the text after the links at the end.

use std::ops::Range;

use super::outline::{At, Node, Outline, Run};
use super::tag::Tag;

/// The number of bytes of text outside links that make a block a paragraph: about twenty words.
const PARAGRAPH_BYTES: u32 = 100;
/// The value used instead of `PARAGRAPH_BYTES` if no block of a page has that many bytes.
const SHORT_PARAGRAPH_BYTES: u32 = 40;
/// If the main text has fewer bytes than this, it counts as not found.
const MAIN_BYTES_MIN: u32 = 40;
/// A page without marked content is treated as a page of links if its paragraphs have fewer bytes than this and most of
/// its text would be left out. The links of such a page are kept.
const FEW_BYTES: u32 = 150;
/// An edge is left out only if it is at most as long as the page's text divided by this number.
const EDGE_PARTS: u32 = 3;
/// The least number of links in a menu.
const MENU_LINKS_MIN: u32 = 4;
/// The longest block that may be a notice about rights, in bytes.
const NOTICE_BYTES_MAX: usize = 300;

/// The part of a page that is treated as its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// A `main` element. All of it counts.
    Main(At),
    /// An `article`, or an element whose name says that it is the content.
    Named(At),
    /// The whole page, because no element is marked as the content.
    Page,
}

/// Sums over an element and all elements in it.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Bytes of text.
    text: u32,
    /// Bytes of text in links.
    linked: u32,
    links: u32,
    /// Bytes of paragraphs, without the links in them.
    paragraphs: u32,
    /// Whether the element is or contains a `main` or an `article`.
    has_main: bool,
    has_heading: bool,
    has_main_heading: bool,
}

/// Returns for each run whether it belongs to the main text. `None` if no main text was found.
pub(super) fn main_text(outline: &Outline) -> Option<Vec<bool>> {
    if outline.cut {
        return None;
    }
    let all = sums(outline, &vec![false; outline.nodes.len()], PARAGRAPH_BYTES);
    let chrome = chrome(outline, &all);
    let mut sums_left = sums(outline, &chrome, PARAGRAPH_BYTES);
    let mut paragraph_bytes = PARAGRAPH_BYTES;
    if sums_left[0].paragraphs == 0 {
        paragraph_bytes = SHORT_PARAGRAPH_BYTES;
        sums_left = sums(outline, &chrome, paragraph_bytes);
    }
    let content = content(outline, &chrome, &sums_left);
    let mut left_out = chrome.clone();
    if let Content::Main(root) | Content::Named(root) = content {
        leave_out_around(outline, root, &mut left_out);
    }
    let mut shown = 0..outline.runs.len();
    if let Some(paragraphs) = paragraphs(outline, &left_out, paragraph_bytes) {
        let links = leave_out_links(outline, &sums_left, content, &paragraphs, &mut left_out);
        if content == Content::Page {
            shown = without_edges(outline, &left_out, &paragraphs, &links);
        }
    }
    if content == Content::Page {
        leave_out_notices(outline, &mut left_out);
    }
    let (kept, bytes) = kept(outline, &left_out, shown);
    let (without_chrome, bytes_without_chrome) = self::kept(outline, &chrome, 0..outline.runs.len());
    let of_links = content == Content::Page && sums_left[0].paragraphs < FEW_BYTES && bytes < bytes_without_chrome / 2;
    [(kept, if of_links { 0 } else { bytes }), (without_chrome, bytes_without_chrome)]
        .into_iter()
        .find_map(|(kept, bytes)| (bytes >= MAIN_BYTES_MIN).then_some(kept))
}

/// Returns for each run whether it is kept: it is shown, and its element is not left out. Also returns the bytes of the
/// runs that are kept.
fn kept(outline: &Outline, left_out: &[bool], shown: Range<usize>) -> (Vec<bool>, u32) {
    let is_kept = |(at, run): (usize, &Run)| shown.contains(&at) && !left_out[run.node as usize];
    let kept: Vec<bool> = outline.runs.iter().enumerate().map(is_kept).collect();
    let bytes = outline.runs.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(run, _)| run.dense).sum();
    (kept, bytes)
}

/// Returns for each block the bytes of its text, without the text in links and in blocks inside it.
fn own_text(outline: &Outline, left_out: &[bool]) -> Vec<u32> {
    let mut own = vec![0; outline.nodes.len()];
    for run in &outline.runs {
        let node = &outline.nodes[run.node as usize];
        if !node.in_link && !left_out[run.node as usize] {
            own[node.block as usize] += run.dense;
        }
    }
    own
}

fn sums(outline: &Outline, left_out: &[bool], paragraph_bytes: u32) -> Vec<Sums> {
    let Outline { nodes, runs, .. } = outline;
    let mut sums = vec![Sums::default(); nodes.len()];
    for run in runs.iter().filter(|run| !left_out[run.node as usize]) {
        let sum = &mut sums[run.node as usize];
        sum.text += run.dense;
        if nodes[run.node as usize].in_link {
            sum.linked += run.dense;
        }
    }
    for (sum, own) in sums.iter_mut().zip(own_text(outline, left_out)) {
        if own >= paragraph_bytes {
            sum.paragraphs = own;
        }
    }
    for (at, node) in nodes.iter().enumerate().skip(1).rev() {
        if left_out[at] {
            continue;
        }
        let mut sum = sums[at];
        sum.links += u32::from(node.tag == Tag::Anchor && node.in_link);
        sum.has_main |= matches!(node.tag, Tag::Main | Tag::Article) || node.hints.is_main();
        sum.has_heading |= node.tag.is_heading();
        sum.has_main_heading |= node.tag == Tag::Heading1;
        sums[at] = sum;
        let around = &mut sums[node.parent as usize];
        around.text += sum.text;
        around.linked += sum.linked;
        around.links += sum.links;
        around.paragraphs += sum.paragraphs;
        around.has_main |= sum.has_main;
        around.has_heading |= sum.has_heading;
        around.has_main_heading |= sum.has_main_heading;
    }
    sums
}

/// Returns for each element whether this element or an element around it is marked as not being main text.
fn chrome(outline: &Outline, sums: &[Sums]) -> Vec<bool> {
    let Outline { nodes, .. } = outline;
    let mut chrome = vec![false; nodes.len()];
    // Whether an element is in a `main` or an `article`.
    let mut inside = vec![false; nodes.len()];
    for (at, node) in nodes.iter().enumerate().skip(1) {
        let parent = node.parent as usize;
        inside[at] = inside[parent] || matches!(node.tag, Tag::Main | Tag::Article) || node.hints.is_main();
        chrome[at] = chrome[parent] || is_chrome(node, &sums[at], &sums[0], inside[at]);
    }
    chrome
}

fn is_chrome(node: &Node, sums: &Sums, page: &Sums, inside: bool) -> bool {
    let is_content = sums.has_main
        || u64::from(sums.paragraphs) * 10 >= u64::from(page.paragraphs) * 9 && sums.paragraphs > 0
        || sums.has_main_heading && sums.paragraphs > page.paragraphs / 2;
    match node.tag {
        Tag::Nav | Tag::Control => true,
        Tag::Aside | Tag::Footer => !sums.has_main,
        _ if node.hints.has_chrome_role() => !is_content,
        _ if node.hints.is_site_header() && matches!(node.tag, Tag::Header | Tag::Block) || node.tag == Tag::Header => {
            !inside && !sums.has_main && (page.has_main || !sums.has_heading)
        }
        Tag::Pre | Tag::Heading1 | Tag::Heading => false,
        tag => tag.is_block() && node.hints.names_chrome() && !is_content,
    }
}

fn content(outline: &Outline, chrome: &[bool], sums: &[Sums]) -> Content {
    let nodes = || outline.nodes.iter().enumerate().filter(|&(at, _)| !chrome[at]);
    let main = nodes()
        .filter(|(at, node)| (node.tag == Tag::Main || node.hints.is_main()) && sums[*at].text >= MAIN_BYTES_MIN)
        .max_by_key(|&(at, _)| (sums[at].text, std::cmp::Reverse(at)));
    if let Some((at, _)) = main {
        return Content::Main(at as At);
    }
    let named = nodes().find(|(at, node)| {
        let named = node.tag == Tag::Article || node.hints.names_content() && node.tag.is_block();
        let most = u64::from(sums[*at].paragraphs) * 10 >= u64::from(sums[0].paragraphs) * 6;
        named && most && sums[*at].text >= MAIN_BYTES_MIN
    });
    named.map_or(Content::Page, |(at, _)| Content::Named(at as At))
}

/// Leaves out everything that is not in `root`, except the heading before `root`.
fn leave_out_around(outline: &Outline, root: At, left_out: &mut [bool]) {
    let Outline { nodes, .. } = outline;
    let inside = root as usize..nodes[root as usize].end as usize;
    let last = |of: &[Tag]| (1..inside.start).rev().find(|&at| of.contains(&nodes[at].tag) && !left_out[at]);
    let heading = match nodes[inside.clone()].iter().any(|node| node.tag == Tag::Heading1) {
        true => None,
        false => last(&[Tag::Heading1]).or_else(|| last(&[Tag::Heading])),
    };
    let heading = heading.map_or(0..0, |at| at..nodes[at].end as usize);
    for (at, left_out) in left_out.iter_mut().enumerate() {
        *left_out |= !inside.contains(&at) && !heading.contains(&at);
    }
}

/// Returns the runs from the first paragraph to the last one.
fn paragraphs(outline: &Outline, left_out: &[bool], paragraph_bytes: u32) -> Option<Range<usize>> {
    let own = own_text(outline, left_out);
    let is_in_one = |run: &Run| {
        let node = &outline.nodes[run.node as usize];
        !left_out[run.node as usize] && own[node.block as usize] >= paragraph_bytes
    };
    let first = outline.runs.iter().position(is_in_one)?;
    let last = outline.runs.iter().rposition(is_in_one)?;
    Some(first..last + 1)
}

/// A block of links that was left out.
struct Links {
    runs: Range<usize>,
    count: u32,
}

/// Leaves out the blocks of links before the first paragraph and after the last one, and returns them. If no content is
/// marked, blocks of links between paragraphs are also left out and returned.
fn leave_out_links(
    outline: &Outline,
    sums: &[Sums],
    content: Content,
    paragraphs: &Range<usize>,
    left_out: &mut [bool],
) -> Vec<Links> {
    let mut found = Vec::new();
    let (share_of_links, links_min) = match content {
        Content::Main(_) => return found,
        Content::Named(_) => (0.8, 3),
        Content::Page => (0.6, 1),
    };
    let mut at = 1;
    while let Some(node) = outline.nodes.get(at) {
        let runs = node.runs.0 as usize..node.runs.1 as usize;
        let outside = runs.end <= paragraphs.start || runs.start >= paragraphs.end;
        let Sums { text, linked, links, paragraphs, .. } = sums[at];
        let share = f64::from(linked) / f64::from(text.max(1));
        let dense = match outside {
            true => share >= share_of_links && links >= links_min,
            false => content == Content::Page && share >= 0.8 && links >= 4 && paragraphs == 0,
        };
        if dense && !left_out[at] && node.tag.is_block() && !node.tag.is_heading() {
            left_out[at..node.end as usize].fill(true);
            found.push(Links { runs, count: links });
            at = node.end as usize;
        } else {
            at += 1;
        }
    }
    found
}

/// Returns the runs of a page without its edges. There are two edges. The first is the text before the first heading
/// after a menu. The second begins with the first menu after the last paragraph. An edge that is a large part of the
/// text is kept.
fn without_edges(outline: &Outline, left_out: &[bool], paragraphs: &Range<usize>, links: &[Links]) -> Range<usize> {
    let Outline { nodes, runs, .. } = outline;
    // The sums up to each run and each block of links are computed once, because a page may have a heading for every
    // ten bytes.
    let dense = runs.iter().map(|run| if left_out[run.node as usize] { 0 } else { run.dense });
    let bytes_before = sums_before(dense);
    let bytes = |range: Range<usize>| bytes_before[range.end] - bytes_before[range.start];
    let edge_bytes_max = bytes(0..runs.len()) / EDGE_PARTS;
    let links_until = sums_before(links.iter().map(|links| links.count));
    let links_before = |at: usize| links_until[links.partition_point(|links| links.runs.end <= at)];
    let headings = nodes.iter().zip(left_out).filter(|(node, left_out)| node.tag.is_heading() && !**left_out);
    let start = headings
        .map(|(node, _)| node.runs.0 as usize)
        .take_while(|&at| bytes(0..at) <= edge_bytes_max)
        .find(|&at| links_before(at) >= MENU_LINKS_MIN);
    let end = links
        .iter()
        .find(|links| links.runs.start >= paragraphs.end && links.count >= MENU_LINKS_MIN)
        .map(|links| links.runs.start)
        .filter(|&at| bytes(at..runs.len()) <= edge_bytes_max);
    start.unwrap_or(0)..end.unwrap_or(runs.len())
}

/// Returns for each number the sum of all numbers before it, and as the last element the sum of all numbers.
fn sums_before(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let sums = numbers.scan(0, |sum, number| {
        *sum += number;
        Some(*sum)
    });
    std::iter::once(0).chain(sums).collect()
}

/// Leaves out short blocks about rights near the end of the page.
fn leave_out_notices(outline: &Outline, left_out: &mut [bool]) {
    for run in &outline.runs[outline.runs.len() * 3 / 4..] {
        let block = outline.nodes[run.node as usize].block as usize;
        let node = &outline.nodes[block];
        let bytes = |at: u32| outline.runs.get(at as usize).map_or(outline.text.len(), |run| run.bytes.0 as usize);
        let (start, end) = (bytes(node.runs.0), bytes(node.runs.1));
        if block > 0
            && end - start <= NOTICE_BYTES_MAX
            && is_notice(&outline.text[run.bytes.0 as usize..run.bytes.1 as usize])
        {
            left_out[block..node.end as usize].fill(true);
        }
    }
}

fn is_notice(text: &str) -> bool {
    let starts_with = |word: &str| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    text.contains('©') || starts_with("copyright") || starts_with("all rights reserved")
}
