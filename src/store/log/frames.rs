//! Reads the frames of a log: how many of them are intact, and what follows the first bad one.

use std::io::{self, Read};

use super::bytes::{ByteOrder, fill, word};

pub(super) const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The last bit of the magic number shows the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;

/// The header of a log, with a valid checksum.
pub(super) struct Header {
    order: ByteOrder,
    page_bytes: usize,
    /// The salts, which mark the frames that were written since SQLite last restarted the log.
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

    pub(super) fn salts(&self) -> [u8; 8] {
        self.salts
    }

    /// Returns the checksum over a frame and all frames before it.
    fn frame_sum(&self, before: [u32; 2], frame: &[u8]) -> [u32; 2] {
        self.order.sum(self.order.sum(before, &frame[..8]), &frame[FRAME_HEADER_BYTES..])
    }

    /// Returns whether a bad frame without a commit mark would be valid if one bit of the mark were set.
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

/// The state of the frames of a log.
#[derive(Default)]
pub(super) struct Frames {
    /// The number of the last valid frame that ends a transaction.
    pub(super) committed: u64,
    /// The number of our last frame. Our frames are those that were written since SQLite last restarted the log.
    pub(super) last_of_ours: u64,
    /// The number of the first invalid frame.
    pub(super) bad: Option<u64>,
    /// How many of our frames, from `bad` on, end a transaction.
    pub(super) commits_behind: u32,
}

impl Frames {
    /// Reads all frames after the header.
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
                    // No checksum covers the salts. Frames that were written before the log was restarted have other
                    // checksums, so a frame with the right checksum is ours.
                    ours |= right;
                    // If this frame ended a transaction but lost its commit mark, it still counts as a commit.
                    // Otherwise, its transaction and the next one would count as one transaction.
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

/// Describes the damage if the header is invalid, but the first frame has at least one of the header's two salts.
/// SQLite ignores the whole log if its header is invalid. A crash leaves an invalid header only before the first frame
/// of a restarted log is written. In that case, the frames in the file are older, and both of their salts differ from
/// those in the header.
pub(super) fn foreign_frames(log: &mut impl Read, header: &[u8; HEADER_BYTES]) -> io::Result<Option<String>> {
    let mut frame = [0; FRAME_HEADER_BYTES];
    let there = fill(log, &mut frame)?;
    let related = there && (frame[8..12] == header[16..20] || frame[12..16] == header[20..24]);
    Ok(related.then(|| "the header of its write-ahead log is damaged, and frames follow it".to_owned()))
}
