//! The bytes of a file -> their decompressed bytes, unit by unit. A unit is a gzip member, a zstd frame, or a whole
//! file that is not compressed. Archives of web pages have a unit for each record, so if a unit is damaged, the next
//! unit can still be read. Knows nothing of records and lines.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::unix::fs::FileExt as _;

use flate2::bufread::GzDecoder;

use super::frame::{Frame, FrameDecoder};
use super::rewinding::Rewinding;

/// The number of decompressed bytes that are requested at once.
const DECODED_BYTES: usize = 1 << 17;
/// The first bytes of a gzip member. The third byte is the compression method, of which there is only one.
const GZIP: &[u8] = &[0x1F, 0x8B, 0x08];
/// The first bytes of a zstd frame.
const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
/// The first bytes of a zstd frame that contains the dictionary for all other frames, as in `.warc.zst` files.
const DICTIONARY: &[u8] = &[0x5D, 0x2A, 0x4D, 0x18];
/// Bytes 2 to 4 of a skippable frame, which contains no data. Byte 1 is 0x50 to 0x5F. `pzstd` begins with such a frame.
const SKIPPED: &[u8] = &[0x2A, 0x4D, 0x18];
/// The longest header of a gzip member that is found after damage. In archives, a header contains at most the name of a
/// file.
const GZIP_HEADER_BYTES_MAX: usize = 1024;
/// The longest dictionary, in bytes.
const DICTIONARY_BYTES_MAX: u32 = 16 << 20;

/// The reason why there are no further bytes.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnitError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(io::Error),
    /// The unit is damaged. The next unit may be intact.
    #[error("the compressed data is damaged: {0}")]
    Damaged(io::Error),
}

impl From<UnitError> for io::Error {
    fn from(error: UnitError) -> Self {
        match error {
            UnitError::Read(error) | UnitError::Damaged(error) => error,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

enum Decoder {
    /// Reads bytes that are not compressed. Also used between two units.
    Raw(Rewinding),
    Gzip(Box<GzDecoder<Rewinding>>),
    Zstd(Frame),
}

impl Decoder {
    fn raw(&self) -> &Rewinding {
        match self {
            Self::Raw(raw) => raw,
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Zstd(frame) => frame.raw(),
        }
    }
}

impl Read for Decoder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Raw(raw) => raw.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(frame) => frame.read(buffer),
        }
    }
}

/// A file, read unit by unit.
pub(super) struct Units {
    /// `None` only while the decoder is being replaced.
    decoder: Option<Decoder>,
    compression: Compression,
    /// The file, if its bytes can be read in any order.
    file: Option<File>,
    /// The decoder of all zstd frames, which contains the dictionary. `None` while a frame is being read, and in files
    /// without zstd.
    frames: Option<FrameDecoder>,
    decoded: Vec<u8>,
    /// The place in `decoded`.
    at: usize,
    /// The offset at which the unit begins in the file.
    begin: u64,
    /// Whether all bytes of the unit are in `decoded`.
    ended: bool,
    damaged: bool,
}

impl Units {
    /// Begins with the first unit. The first bytes of the file show how it is compressed. A zstd frame may require 2 to
    /// the power of `window_log_max` bytes of memory.
    pub(super) fn open(input: Box<dyn Read + Send>, window_log_max: u32) -> io::Result<Self> {
        let mut raw = Rewinding::new(input);
        let has_skipped = skip_frames(&mut raw)?;
        let magic = raw.peek(4)?;
        let (compression, has_dictionary) = match magic {
            magic if magic == DICTIONARY => (Compression::Zstd, true),
            magic if magic == ZSTD || has_skipped => (Compression::Zstd, false),
            magic if magic.starts_with(&GZIP[..2]) => (Compression::Gzip, false),
            _ => (Compression::None, false),
        };
        let dictionary = if has_dictionary { dictionary(&mut raw)? } else { Vec::new() };
        let frames = match compression {
            Compression::Zstd => Some(FrameDecoder::new(&dictionary, window_log_max)?),
            Compression::None | Compression::Gzip => None,
        };
        let mut units = Self {
            decoder: None,
            compression,
            file: None,
            frames,
            decoded: Vec::new(),
            at: 0,
            begin: 0,
            ended: false,
            damaged: false,
        };
        units.start(raw)?;
        Ok(units)
    }

    /// Like [`open`](Self::open), for a file.
    pub(super) fn of_file(file: File, window_log_max: u32) -> io::Result<Self> {
        let ahead = file.metadata()?.is_file().then(|| file.try_clone()).transpose()?;
        Ok(Self { file: ahead, ..Self::open(Box::new(file), window_log_max)? })
    }

    /// Returns at most `count` bytes of the file, from `offset` on, and does not change the place. Returns `None` if
    /// the file is compressed, or cannot be read out of order.
    pub(super) fn ahead(&self, offset: u64, count: usize) -> Option<Vec<u8>> {
        let file = self.file.as_ref().filter(|_| !self.are_compressed())?;
        let mut bytes = vec![0; count];
        let read = file.read_at(&mut bytes, offset).ok()?;
        bytes.truncate(read);
        Some(bytes)
    }

    /// Whether the file is compressed. A compressed file may have many units.
    pub(super) fn are_compressed(&self) -> bool {
        self.compression != Compression::None
    }

    /// The offset of the next byte in the file; in a compressed file, the offset of its unit.
    pub(super) fn offset(&self) -> u64 {
        match self.compression {
            Compression::None => self.raw().offset() - (self.decoded.len() - self.at) as u64,
            Compression::Gzip | Compression::Zstd => self.begin,
        }
    }

    /// The number of bytes that were read from the file.
    pub(super) fn taken(&self) -> u64 {
        self.raw().taken()
    }

    /// Returns the next bytes of the unit. The result is empty only at the end of the unit.
    pub(super) fn fill(&mut self) -> Result<&[u8], UnitError> {
        self.peek(1)
    }

    /// Returns the next bytes of the unit: at least `count`, except at the end of the unit.
    pub(super) fn peek(&mut self, count: usize) -> Result<&[u8], UnitError> {
        while self.decoded.len() - self.at < count && !self.ended {
            self.decode()?;
        }
        Ok(&self.decoded[self.at..])
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.at += count;
    }

    /// Goes to the next unit. Returns false at the end of the file. After damage, it goes to the next unit that begins
    /// with `wanted`.
    pub(super) fn next(&mut self, wanted: &[u8]) -> Result<bool, UnitError> {
        while !self.ended {
            self.at = self.decoded.len();
            self.decode()?;
        }
        self.at = self.decoded.len();
        if !self.are_compressed() {
            return Ok(false);
        }
        let mut raw = self.take_raw();
        if std::mem::take(&mut self.damaged) {
            return self.recover(raw, wanted);
        }
        let more = match self.compression {
            Compression::Gzip => skip_zeros(&mut raw),
            Compression::None | Compression::Zstd => raw.fill_buf().map(|bytes| !bytes.is_empty()),
        };
        match more {
            Ok(true) => self.start(raw).map(|()| true).map_err(UnitError::Read),
            more => {
                self.decoder = Some(Decoder::Raw(raw));
                more.map_err(UnitError::Read)
            }
        }
    }

    /// Looks for a unit after the beginning of the damaged unit. Compressed bytes may look like the beginning of a
    /// unit, so the first decompressed bytes of the unit decide.
    fn recover(&mut self, mut raw: Rewinding, wanted: &[u8]) -> Result<bool, UnitError> {
        let magic = if self.compression == Compression::Gzip { GZIP } else { ZSTD };
        let mut from = self.begin + 1;
        loop {
            raw.rewind(from);
            let found = raw.find(magic);
            from = raw.offset() + 1;
            if !matches!(found, Ok(true)) {
                self.decoder = Some(Decoder::Raw(raw));
                return found.map_err(UnitError::Read);
            }
            if self.compression == Compression::Gzip {
                match raw.peek(GZIP_HEADER_BYTES_MAX) {
                    Ok(bytes) if has_gzip_header(bytes) => {}
                    Ok(_) => continue,
                    Err(error) => {
                        self.decoder = Some(Decoder::Raw(raw));
                        return Err(UnitError::Read(error));
                    }
                }
            }
            self.start(raw).map_err(UnitError::Read)?;
            match self.peek(wanted.len()) {
                Ok(bytes) if bytes.starts_with(wanted) => return Ok(true),
                Err(UnitError::Read(error)) => return Err(UnitError::Read(error)),
                Ok(_) | Err(UnitError::Damaged(_)) => raw = self.take_raw(),
            }
        }
    }

    /// Begins to decode a unit.
    fn start(&mut self, raw: Rewinding) -> io::Result<()> {
        self.begin = raw.offset();
        self.decoded.clear();
        (self.at, self.ended, self.damaged) = (0, false, false);
        self.decoder = Some(match self.compression {
            Compression::None => Decoder::Raw(raw),
            Compression::Gzip => Decoder::Gzip(Box::new(GzDecoder::new(raw))),
            Compression::Zstd => {
                let decoder = self.frames.take().expect("it is absent only inside a frame");
                Decoder::Zstd(Frame::new(raw, decoder)?)
            }
        });
        Ok(())
    }

    /// Decodes more bytes of the unit, and appends them to the decoded bytes that were not consumed.
    fn decode(&mut self) -> Result<(), UnitError> {
        self.decoded.drain(..self.at);
        self.at = 0;
        let filled = self.decoded.len();
        self.decoded.resize(filled + DECODED_BYTES, 0);
        let decoder = self.decoder.as_mut().expect("it is absent only while it is replaced");
        let read = loop {
            match decoder.read(&mut self.decoded[filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.decoded.truncate(filled + read.as_ref().map_or(0, |count| *count));
        match read {
            Ok(0) => {
                self.ended = true;
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) => {
                (self.ended, self.damaged) = (true, true);
                Err(if self.raw().has_failed() { UnitError::Read(error) } else { UnitError::Damaged(error) })
            }
        }
    }

    fn raw(&self) -> &Rewinding {
        self.decoder.as_ref().expect("it is absent only while it is replaced").raw()
    }

    fn take_raw(&mut self) -> Rewinding {
        match self.decoder.take().expect("it is absent only while it is replaced") {
            Decoder::Raw(raw) => raw,
            Decoder::Gzip(decoder) => decoder.into_inner(),
            Decoder::Zstd(frame) => {
                let (raw, decoder) = frame.into_parts();
                self.frames = Some(decoder);
                raw
            }
        }
    }
}

/// Reads the units as one stream. Damage is an error.
impl BufRead for Units {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.fill()?.is_empty() && self.next(&[])? {}
        Ok(&self.decoded[self.at..])
    }

    fn consume(&mut self, count: usize) {
        Self::consume(self, count);
    }
}

impl Read for Units {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut available = self.fill_buf()?;
        let count = available.read(buffer)?;
        Self::consume(self, count);
        Ok(count)
    }
}

/// Skips the frames without data at the beginning of the file, and returns whether there are any.
fn skip_frames(raw: &mut Rewinding) -> io::Result<bool> {
    let mut any = false;
    loop {
        match raw.peek(8)? {
            head @ [0x50..=0x5F, rest @ .., _, _, _, _] if rest == SKIPPED && !head.starts_with(DICTIONARY) => {
                let length = u32::from_le_bytes(head[4..].try_into().expect("four bytes"));
                io::copy(&mut raw.by_ref().take(8 + u64::from(length)), &mut io::sink())?;
                any = true;
            }
            _ => return Ok(any),
        }
    }
}

/// Skips the zeros after a gzip member, as gzip does, and returns whether more bytes follow. Files from tapes end with
/// zeros.
fn skip_zeros(raw: &mut Rewinding) -> io::Result<bool> {
    loop {
        let bytes = raw.fill_buf()?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        let is_all = zeros == bytes.len();
        raw.consume(zeros);
        if !is_all {
            return Ok(true);
        }
    }
}

/// Whether the header of a gzip member ends within these bytes (RFC 1952, section 2.3). A decoder would read a name of
/// up to 65,535 bytes, which takes too long at each place that looks like a member.
fn has_gzip_header(bytes: &[u8]) -> bool {
    const EXTRA: u8 = 1 << 2;
    const NAME: u8 = 1 << 3;
    const COMMENT: u8 = 1 << 4;
    let Some((&[_, _, _, flags, ..], mut rest)) = bytes.split_first_chunk::<10>() else { return false };
    if flags & EXTRA != 0 {
        let Some((&length, field)) = rest.split_first_chunk() else { return false };
        let Some((_, after)) = field.split_at_checked(u16::from_le_bytes(length).into()) else { return false };
        rest = after;
    }
    for _ in 0..(flags & (NAME | COMMENT)).count_ones() {
        let Some(end) = memchr::memchr(0, rest) else { return false };
        rest = &rest[end + 1..];
    }
    true
}

/// Reads the dictionary at the beginning of the file. It is in a skippable frame, and may be compressed
/// (<https://iipc.github.io/warc-specifications/specifications/warc-zstd/>).
fn dictionary(raw: &mut Rewinding) -> io::Result<Vec<u8>> {
    let mut head = [0; 8];
    raw.read_exact(&mut head)?;
    let length = u32::from_le_bytes(head[4..].try_into().expect("four bytes"));
    let refuse = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    if length > DICTIONARY_BYTES_MAX {
        return Err(refuse(format!("the dictionary has {length} bytes; the limit is {DICTIONARY_BYTES_MAX}")));
    }
    let mut bytes = vec![0; length as usize];
    raw.read_exact(&mut bytes)?;
    if !bytes.starts_with(ZSTD) {
        return Ok(bytes);
    }
    let mut decoded = Vec::new();
    let mut decoder = zstd::stream::read::Decoder::new(&*bytes)?;
    decoder.by_ref().take(u64::from(DICTIONARY_BYTES_MAX) + 1).read_to_end(&mut decoded)?;
    if decoded.len() > DICTIONARY_BYTES_MAX as usize {
        return Err(refuse(format!("the dictionary has more than {DICTIONARY_BYTES_MAX} bytes")));
    }
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::time::Instant;

    use super::*;

    fn units(bytes: Vec<u8>) -> Units {
        Units::open(Box::new(Cursor::new(bytes)), 27).unwrap()
    }

    #[test]
    fn headers_of_members_end_soon_or_are_none() {
        let head = |flags: u8| [&[0x1F, 0x8B, 8, flags], [0; 6].as_slice()].concat();
        let with = |flags: u8, rest: &[u8]| has_gzip_header(&[&head(flags), rest].concat());
        assert!(with(0, b"") && with(8, b"name\0") && with(4, b"\x02\0sl") && with(28, b"\x01\0\0name\0comment\0"));
        assert!(!with(8, b"name") && !with(24, b"name\0comment") && !with(4, b"\x03\0sl") && !with(4, b"\0"));
        assert!(!has_gzip_header(&head(0)[..9]));
    }

    #[test]
    fn many_members_with_endless_names_take_linear_time() {
        let mut units = units([0x1F, 0x8B, 0x08, 0x08].repeat(50_000));
        let begun = Instant::now();
        assert!(matches!(units.fill(), Err(UnitError::Damaged(_))));
        assert!(!units.next(b"WARC/").unwrap());
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }

    #[test]
    fn many_frames_share_one_dictionary() {
        let frames = zstd::encode_all(&b""[..], 1).unwrap().repeat(2_000);
        let frames = [frames, zstd::encode_all(&b"last"[..], 1).unwrap()].concat();
        let seconds = |head: &[u8]| {
            let mut units = units([head, &frames].concat());
            let (begun, mut text) = (Instant::now(), String::new());
            units.read_to_string(&mut text).unwrap();
            assert_eq!(text, "last");
            begun.elapsed().as_secs_f64()
        };
        let dictionary = vec![b'x'; DICTIONARY_BYTES_MAX as usize];
        let head = [DICTIONARY, &DICTIONARY_BYTES_MAX.to_le_bytes(), &dictionary].concat();
        // Other tests run at the same time, so the shortest of several times counts.
        let shortest = |head: &[u8]| (0..5).map(|_| seconds(head)).fold(f64::INFINITY, f64::min);
        let (with, without) = (shortest(&head), shortest(b""));
        // If the dictionary were prepared for each frame, this would take several times as long.
        assert!(with < 3.0 * without, "{with} s with a dictionary, {without} s without one");
    }
}
