//! The write-ahead log, looked at before SQLite does. SQLite plays a log back up to its first bad frame and drops the
//! rest in silence, because a crash leaves such an end. But each commit is synced before the next one begins: a crash
//! can spoil the last transaction alone. A second commit behind a bad frame was acknowledged, so the log is damaged.
//!
//! Within the last transaction a torn write and a flipped bit look the same: there it is [`Look::Torn`].
//!
//! A log that was cut, or lost, shows nothing itself. But beside it a killed process leaves its `-shm` file, which says
//! how many frames were committed; SQLite writes that once they are synced, and makes the file anew when it opens the
//! database. So this has to look before. If that file is missing or unsound, a cut looks like an end. A power failure may
//! leave an older one beside a log that was emptied since: then a note says so (`moved.rs`).
//!
//! The formats: <https://sqlite.org/fileformat2.html#the_write_ahead_log>, <https://sqlite.org/walformat.html>.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

use super::moved::{self, Moved};

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The last bit tells the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;
/// The header of a `-shm` file stands there twice.
const SHARED_HEADER_BYTES: usize = 48;
const SHARED_FORMAT: u32 = 3_007_000;

/// What a log looks like.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store) enum Look {
    /// Nothing is wrong with it. No log is a good log.
    Sound,
    /// Its last transaction is not whole: it was torn, or damaged.
    Torn(String),
    /// It does not hold what was committed.
    Damaged(String),
}

/// Looks at a log, and at what `shared` (the `-shm` file) says of it.
pub(in crate::store) fn look(path: &Path, shared: &Path) -> io::Result<Look> {
    // First: where another connection is just making both anew, the log is seen at least as new as this.
    let noted = Noted::read(shared)?;
    let moved = Moved::read(&moved::path_of(path))?;
    let covered = |noted: &Noted| moved.as_ref().is_some_and(|moved| moved.covers(path, noted.salts, noted.frames));
    let gone = || match &noted {
        Some(noted) if noted.frames > noted.moved && !covered(noted) => Look::Damaged(format!(
            "its write-ahead log is gone, and {} frames of it are not in the database",
            noted.frames - noted.moved
        )),
        _ => Look::Sound,
    };
    let mut log = match File::open(path) {
        Ok(file) => BufReader::with_capacity(1 << 18, file),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(gone()),
        Err(error) => return Err(error),
    };
    let mut bytes = [0; HEADER_BYTES];
    if !fill(&mut log, &mut bytes)? {
        return Ok(gone());
    }
    let Some(header) = Header::read(&bytes) else {
        return Ok(foreign_frames(&mut log, &bytes)?.map_or_else(gone, Look::Damaged));
    };
    let mut frame = vec![0; FRAME_HEADER_BYTES + header.page_bytes];
    let (mut sum, mut at, mut committed, mut last_of_ours) = (header.sum, 0u64, 0, 0);
    let (mut bad, mut commits_behind) = (None, 0);
    while fill(&mut log, &mut frame)? {
        at += 1;
        let (mut ours, mut commits) = (frame[8..16] == header.salts, word(&frame, 4) != 0);
        if bad.is_none() {
            let before = sum;
            sum = header.frame_sum(before, &frame);
            let right = sum == [word(&frame, 16), word(&frame, 20)];
            if !right || !ours {
                bad = Some(at);
                // No sum covers the salts: what is left of an earlier life has another sum, and what has this one is ours.
                ours |= right;
                // Else what ended a transaction would seem to be a part of the next one.
                commits |= ours && !commits && header.has_lost_its_commit(before, &mut frame);
            }
        }
        if ours {
            last_of_ours = at;
        }
        match bad {
            None if commits => committed = at,
            None => {}
            Some(_) => commits_behind += u32::from(ours && commits),
        }
    }
    if let Some(bad) = bad.filter(|_| commits_behind > 1) {
        let detail = format!("frame {bad} of its write-ahead log is bad, and {commits_behind} commits stand behind it");
        return Ok(Look::Damaged(detail));
    }
    if let Some(noted) = noted.filter(|noted| noted.salts == header.salts && noted.frames > committed) {
        let detail =
            format!("its write-ahead log is good up to frame {committed}, and {} were committed", noted.frames);
        return Ok(Look::Damaged(detail));
    }
    if last_of_ours > committed {
        let detail =
            format!("its write-ahead log is good up to frame {committed}; what follows, one transaction, is gone");
        return Ok(Look::Torn(detail));
    }
    Ok(Look::Sound)
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

/// What the `-shm` file of a process that was killed says of the log.
struct Noted {
    /// Frames that were committed.
    frames: u64,
    /// Those of them that are in the database, on disk.
    moved: u64,
    salts: [u8; 8],
}

impl Noted {
    /// `None` where there is no such file, or nothing in it that can be relied upon.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut bytes = [0; 2 * SHARED_HEADER_BYTES + 4];
        let whole = match File::open(path) {
            Ok(mut file) => fill(&mut file, &mut bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        // Numbers are in the byte order of the machine; the last two of the header are its sum.
        let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let header = &bytes[..SHARED_HEADER_BYTES];
        let sum = if cfg!(target_endian = "big") { Order::Big } else { Order::Little }.sum([0, 0], &header[..40]);
        let sound = whole
            && *header == bytes[SHARED_HEADER_BYTES..2 * SHARED_HEADER_BYTES]
            && number(0) == SHARED_FORMAT
            && sum == [number(40), number(44)];
        Ok(sound.then(|| Self {
            frames: u64::from(number(16)),
            moved: u64::from(number(2 * SHARED_HEADER_BYTES)),
            salts: bytes[32..40].try_into().expect("8 bytes"),
        }))
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
