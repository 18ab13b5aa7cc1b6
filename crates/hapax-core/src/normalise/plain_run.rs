//! Plain characters, where one after another folds to itself or to one other and nothing composes: of most texts, all
//! there are. The hot loop of canonicalisation.

use super::rules::{Plain, Rules};
use crate::simd::{Block, Bytes, Scan};
use crate::unicode::decode;

/// Folds the plain characters at the front of the text into a buffer that is two blocks longer than the text. White space
/// at the front is dropped if it, or nothing, stands before. Returns how many bytes were taken and how many written.
#[inline]
pub(super) fn fold_plain(rules: Rules, text: &[u8], out: &mut [u8], after_space: bool) -> (usize, usize) {
    rules.simd().scan(PlainRun { rules, text, out, after_space })
}

/// A run of plain characters on its way into a buffer that is two blocks longer than it.
struct PlainRun<'a> {
    rules: Rules,
    text: &'a [u8],
    out: &'a mut [u8],
    /// White space, or nothing, stands before the run: white space is dropped.
    after_space: bool,
}

impl Scan for PlainRun<'_> {
    /// Bytes taken and bytes written.
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
            let (spaces, mut beyond) = vector.spaces(block);
            let mut len = rest.len().min(size_of::<Block>());
            // The block is put out up to the first character that is neither ASCII nor folds to itself.
            while beyond != 0 {
                let first = beyond.trailing_zeros() as usize;
                let (c, bytes) = decode(&block[first..]);
                if first + bytes > len || !rules.is_itself(c) {
                    len = first;
                    break;
                }
                beyond &= u64::MAX.checked_shl((first + bytes) as u32).unwrap_or(0);
            }
            if len == 0 {
                let (c, bytes) = decode(rest);
                let Some(Plain::Other(other)) = rules.plain(c) else { break };
                // Some fold to a character of more bytes. There must always be room for the rest of the text.
                if out.len() - to < rest.len() + size_of::<Block>() + 2 {
                    break;
                }
                to += other.encode_utf8(&mut out[to..]).len();
                at += bytes;
                after_space = false;
                continue;
            }
            let there = u64::MAX >> (size_of::<Block>() - len);
            let kept = there & !(spaces & (spaces << 1 | u64::from(after_space)));
            let room = out[to..].first_chunk_mut().expect("there is room for all of the run");
            if kept == there {
                rules.ascii_block(block, room);
            } else {
                let mut folded = [0; size_of::<Block>()];
                rules.ascii_block(block, &mut folded);
                vector.pack(&folded, kept, room);
            }
            to += kept.count_ones() as usize;
            after_space = spaces >> (len - 1) & 1 == 1;
            at += len;
        }
        (at, to)
    }
}
