//! The frames of a log -> how far it is good, and what stands behind.

use std::io::{self, Read};

use super::bytes::{ByteOrder, fill, word};

pub(super) const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The last bit tells the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;

/// A log's header that is sound.
pub(super) struct Header {
    order: ByteOrder,
    page_bytes: usize,
    /// They mark the frames written since the log was last started anew.
    salts: [u8; 8],
    sum: [u32; 2],
}

impl Header {
    pub(super) fn read(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let order = match word(bytes, 0) {
            MAGIC => ByteOrder::Little,
            magic if magic == MAGIC | 1 => ByteOrder::Big,
            _ => return None,
        };
        let sum = order.sum([0, 0], &bytes[..24]);
        let page_bytes = word(bytes, 8) as usize;
        let sound = sum == [word(bytes, 24), word(bytes, 28)] && (512..=65536).contains(&page_bytes);
        sound.then(|| Self { order, page_bytes, salts: bytes[16..24].try_into().expect("8 bytes"), sum })
    }

    /// What marks its frames.
    pub(super) fn salts(&self) -> [u8; 8] {
        self.salts
    }

    /// The sum of a frame and all before it.
    fn frame_sum(&self, before: [u32; 2], frame: &[u8]) -> [u32; 2] {
        self.order.sum(self.order.sum(before, &frame[..8]), &frame[FRAME_HEADER_BYTES..])
    }

    /// Whether a bad frame that says it ends no transaction would be good with one bit of that word set.
    fn has_lost_its_commit(&self, before: [u32; 2], frame: &mut [u8]) -> bool {
        let stored = [word(frame, 16), word(frame, 20)];
        (0..32).any(|bit| {
            frame[4..8].copy_from_slice(&(1u32 << bit).to_be_bytes());
            let mended = self.frame_sum(before, frame) == stored;
            frame[4..8].fill(0);
            mended
        })
    }
}

/// What the frames of a log are.
#[derive(Default)]
pub(super) struct Frames {
    /// The last good frame that ends a transaction.
    pub(super) committed: u64,
    /// The last frame that was written since the log was last started anew.
    pub(super) last_of_ours: u64,
    /// The first that is not good.
    pub(super) bad: Option<u64>,
    /// Frames of ours from that one on that end a transaction.
    pub(super) commits_behind: u32,
}

impl Frames {
    /// Reads all frames behind the header.
    pub(super) fn read(log: &mut impl Read, header: &Header) -> io::Result<Self> {
        let mut frame = vec![0; FRAME_HEADER_BYTES + header.page_bytes];
        let (mut frames, mut sum, mut at) = (Self::default(), header.sum, 0u64);
        while fill(log, &mut frame)? {
            at += 1;
            let (mut ours, mut commits) = (frame[8..16] == header.salts, word(&frame, 4) != 0);
            if frames.bad.is_none() {
                let before = sum;
                sum = header.frame_sum(before, &frame);
                let right = sum == [word(&frame, 16), word(&frame, 20)];
                if !right || !ours {
                    frames.bad = Some(at);
                    // No sum covers the salts: what is left of an earlier life has another sum, and what has this one is
                    // ours.
                    ours |= right;
                    // Else what ended a transaction would seem to be a part of the next one.
                    commits |= ours && !commits && header.has_lost_its_commit(before, &mut frame);
                }
            }
            if ours {
                frames.last_of_ours = at;
            }
            match frames.bad {
                None if commits => frames.committed = at,
                None => {}
                Some(_) => frames.commits_behind += u32::from(ours && commits),
            }
        }
        Ok(frames)
    }
}

/// A header that is not sound makes SQLite ignore the whole log. A crash leaves one only before the first frame of its
/// kind is written; the frames then there are of an earlier kind, whose salts differ in both halves.
pub(super) fn foreign_frames(log: &mut impl Read, header: &[u8; HEADER_BYTES]) -> io::Result<Option<String>> {
    let mut frame = [0; FRAME_HEADER_BYTES];
    let there = fill(log, &mut frame)?;
    let related = there && (frame[8..12] == header[16..20] || frame[12..16] == header[20..24]);
    Ok(related.then(|| "the header of its write-ahead log is bad, and frames stand behind it".to_owned()))
}
