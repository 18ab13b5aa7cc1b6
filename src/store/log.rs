//! The write-ahead log, looked at before SQLite does. SQLite plays a log back up to its first bad frame and drops the
//! rest in silence, because a crash leaves such an end. But each commit is synced before the next one begins: a crash
//! can spoil the last transaction alone. A second commit behind a bad frame was acknowledged, so the log is damaged.
//!
//! Within the last transaction a torn write and a flipped bit look the same; there this says nothing.
//! The format: <https://sqlite.org/fileformat2.html#the_write_ahead_log>.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The last bit tells the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;

/// What is wrong with the log, if it shows. No log is a good log.
pub(super) fn flaw(path: &Path) -> io::Result<Option<String>> {
    let mut log = match File::open(path) {
        Ok(file) => BufReader::with_capacity(1 << 18, file),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = [0; HEADER_BYTES];
    if !fill(&mut log, &mut bytes)? {
        return Ok(None);
    }
    let Some(header) = Header::read(&bytes) else { return foreign_frames(&mut log, &bytes) };
    let mut frame = vec![0; FRAME_HEADER_BYTES + header.page_bytes];
    let (mut sum, mut at, mut bad, mut commits_behind) = (header.sum, 0u64, None, 0);
    while fill(&mut log, &mut frame)? {
        at += 1;
        let ours = frame[8..16] == header.salts;
        if bad.is_none() {
            sum = header.order.sum(sum, &frame[..8]);
            sum = header.order.sum(sum, &frame[FRAME_HEADER_BYTES..]);
            if !ours || [word(&frame, 16), word(&frame, 20)] != sum {
                bad = Some(at);
            }
        }
        commits_behind += u32::from(bad.is_some() && ours && word(&frame, 4) != 0);
    }
    Ok(bad
        .filter(|_| commits_behind > 1)
        .map(|bad| format!("frame {bad} of its write-ahead log is bad, and {commits_behind} commits stand behind it")))
}

struct Header {
    order: Order,
    page_bytes: usize,
    /// They mark the frames written since the log was last started anew.
    salts: [u8; 8],
    sum: [u32; 2],
}

impl Header {
    fn read(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let order = match word(bytes, 0) {
            MAGIC => Order::Little,
            magic if magic == MAGIC | 1 => Order::Big,
            _ => return None,
        };
        let sum = order.sum([0, 0], &bytes[..24]);
        let page_bytes = word(bytes, 8) as usize;
        let sound = sum == [word(bytes, 24), word(bytes, 28)] && (512..=65536).contains(&page_bytes);
        sound.then(|| Self { order, page_bytes, salts: bytes[16..24].try_into().expect("8 bytes"), sum })
    }
}

/// A header that is not sound makes SQLite ignore the whole log. A crash leaves one only before the first frame of its
/// kind is written; the frames then there are of an earlier kind, whose salts differ in both halves.
fn foreign_frames(log: &mut impl Read, header: &[u8; HEADER_BYTES]) -> io::Result<Option<String>> {
    let mut frame = [0; FRAME_HEADER_BYTES];
    let there = fill(log, &mut frame)?;
    let related = there && (frame[8..12] == header[16..20] || frame[12..16] == header[20..24]);
    Ok(related.then(|| "the header of its write-ahead log is bad, and frames stand behind it".to_owned()))
}

#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn sum(self, [mut s0, mut s1]: [u32; 2], bytes: &[u8]) -> [u32; 2] {
        for pair in bytes.chunks_exact(8) {
            let [x0, x1] = [0, 4].map(|at| {
                let word = pair[at..at + 4].try_into().expect("4 bytes");
                match self {
                    Self::Little => u32::from_le_bytes(word),
                    Self::Big => u32::from_be_bytes(word),
                }
            });
            s0 = s0.wrapping_add(x0).wrapping_add(s1);
            s1 = s1.wrapping_add(x1).wrapping_add(s0);
        }
        [s0, s1]
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

/// False at the end of the file, also where it comes in the middle.
fn fill(log: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
