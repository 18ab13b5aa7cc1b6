//! Plain characters: those that fold to themselves or to one other character and never compose. Most texts have no
//! other characters. This is the hot loop of canonicalisation.

use super::rules::{Plain, Rules};
use crate::characters::{bytes_from, complete, ideographs, three_bytes};
use crate::simd::{Block, Bytes, Scan};
use crate::unicode::decode;

/// Folds the plain characters at the front of the text into a buffer that is two blocks longer than the text. White
/// space at the front is dropped if white space, or nothing, comes before it. Returns the numbers of bytes taken and
/// written.
#[inline]
pub(super) fn fold_plain(rules: Rules, text: &[u8], out: &mut [u8], after_space: bool) -> (usize, usize) {
    rules.simd().scan(PlainRun { rules, text, out, after_space })
}

/// A run of plain characters that is being written into a buffer two blocks longer than the run.
struct PlainRun<'a> {
    rules: Rules,
    text: &'a [u8],
    out: &'a mut [u8],
    /// Whether white space, or nothing, comes before the run; if so, leading white space is dropped.
    after_space: bool,
}

impl Scan for PlainRun<'_> {
    /// The numbers of bytes taken and written.
    type Output = (usize, usize);

    #[inline(always)]
    fn run<V: Bytes>(self, vector: V) -> (usize, usize) {
        let Self { rules, text, out, mut after_space } = self;
        let (mut at, mut to) = (0, 0);
        while at < text.len() {
            let rest = &text[at..];
            let mut padded = [0; size_of::<Block>()];
            let block = match rest.first_chunk() {
                Some(block) => block,
                None => {
                    padded[..rest.len()].copy_from_slice(rest);
                    &padded
                }
            };
            let (spaces, beyond) = vector.spaces(block);
            let mut len = rest.len().min(size_of::<Block>());
            let room: &mut Block = out[to..].first_chunk_mut().expect("there is room for all of the run");
            rules.ascii_block(block, room);
            let mut dropped = 0;
            if beyond != 0 {
                (len, dropped) = fold_beyond(vector, rules, block, beyond, len, room);
            }
            if len == 0 {
                let (c, bytes) = decode(rest);
                let Some(Plain::Other(other)) = rules.plain(c) else { break };
                // Some characters fold to a character of more bytes. There must always be room for the rest of the
                // text.
                if out.len() - to < rest.len() + size_of::<Block>() + 2 {
                    break;
                }
                to += other.encode_utf8(&mut out[to..]).len();
                at += bytes;
                after_space = false;
                continue;
            }
            let there = u64::MAX >> (size_of::<Block>() - len);
            let kept = there & !dropped & !(spaces & (spaces << 1 | u64::from(after_space)));
            if kept != there {
                let folded = *room;
                vector.pack(&folded, kept, room);
            }
            to += kept.count_ones() as usize;
            after_space = spaces >> (len - 1) & 1 == 1;
            at += len;
        }
        (at, to)
    }
}

/// Folds the characters outside ASCII in the first `len` bytes. Stops at the first character that is not plain, that
/// folds to a character of more bytes, or that is not complete in these bytes. `beyond` is a mask of the bytes outside
/// ASCII, and `room` contains a copy of the block with its ASCII characters folded. Returns the number of bytes before
/// the character at which it stopped, or `len`. The second result is a mask of bytes in `room` that have no meaning,
/// because a character was folded to a character of fewer bytes.
#[inline(always)]
fn fold_beyond<V: Bytes>(
    vector: V,
    rules: Rules,
    block: &Block,
    mut beyond: u64,
    len: usize,
    room: &mut Block,
) -> (usize, u64) {
    let mut dropped = 0;
    if rules.folds_plainly() {
        beyond &= !three_bytes(ideographs(vector, block) & complete(len, 3));
    }
    while beyond != 0 {
        let first = beyond.trailing_zeros() as usize;
        let (c, bytes) = decode(&block[first..]);
        if first + bytes > len {
            return (first, dropped);
        }
        let character = bytes_from(first, bytes);
        if !rules.is_itself(c) {
            let other = match rules.plain(c) {
                Some(Plain::Other(other)) if other.len_utf8() <= bytes => other,
                _ => return (first, dropped),
            };
            other.encode_utf8(&mut room[first..]);
            dropped |= character & !bytes_from(first, other.len_utf8());
        }
        beyond &= !character;
    }
    (len, dropped)
}
