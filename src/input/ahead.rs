//! The bytes of a compressed file, decompressed on a thread of its own while the caller reads the lines before. Bytes and
//! errors come in the order of the file, and few blocks wait. A file that is not compressed is read by the caller.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::buffered::read_buffered;
use super::units::Units;

/// How many blocks may wait. A block has at most 128 KiB, as the decoder makes them, and another one is being made.
const BLOCKS_WAITING: usize = 16;

/// The decompressed bytes of a file.
pub(super) enum Ahead {
    Here(Units),
    Beside(Beside),
}

/// The bytes that a thread decompresses.
pub(super) struct Beside {
    blocks: Receiver<Block>,
    /// The bytes that were not consumed. They begin at `at`.
    bytes: Vec<u8>,
    at: usize,
    taken: u64,
    ended: bool,
}

struct Block {
    /// No bytes are the end of the file.
    bytes: io::Result<Vec<u8>>,
    /// The number of bytes of the file that were read for this block and for those before.
    taken: u64,
}

impl Ahead {
    /// Begins to read ahead if the file is compressed.
    pub(super) fn new(units: Units) -> Self {
        if !units.are_compressed() {
            return Self::Here(units);
        }
        let (give, blocks) = sync_channel(BLOCKS_WAITING);
        let taken = units.taken();
        // The thread ends at the end of the file, and if the receiver is dropped. It is not joined, because it may wait
        // for a pipe.
        thread::spawn(move || decompress(units, &give));
        Self::Beside(Beside { blocks, bytes: Vec::new(), at: 0, taken, ended: false })
    }

    /// The number of bytes of the file that were read for the bytes so far.
    pub(super) fn taken(&self) -> u64 {
        match self {
            Self::Here(units) => units.taken(),
            Self::Beside(beside) => beside.taken,
        }
    }
}

fn decompress(mut units: Units, give: &SyncSender<Block>) {
    loop {
        let bytes = units.fill_buf().map(<[u8]>::to_vec);
        let is_last = bytes.as_ref().map_or(true, Vec::is_empty);
        units.consume(bytes.as_ref().map_or(0, Vec::len));
        if give.send(Block { bytes, taken: units.taken() }).is_err() || is_last {
            return;
        }
    }
}

impl BufRead for Ahead {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Here(units) => units.fill_buf(),
            Self::Beside(beside) => beside.fill(),
        }
    }

    fn consume(&mut self, count: usize) {
        match self {
            Self::Here(units) => units.consume(count),
            Self::Beside(beside) => beside.at += count,
        }
    }
}

impl Beside {
    fn fill(&mut self) -> io::Result<&[u8]> {
        if self.at == self.bytes.len() && !self.ended {
            let lost = || io::Error::other("the decompression has ended without a result");
            let Block { bytes, taken } = self.blocks.recv().map_err(|_| lost())?;
            (self.at, self.taken) = (0, taken);
            self.bytes.clear();
            self.ended = bytes.as_ref().map_or(true, Vec::is_empty);
            self.bytes = bytes?;
        }
        Ok(&self.bytes[self.at..])
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(file: Vec<u8>) -> (Vec<u8>, io::Result<usize>, u64) {
        let mut ahead = Ahead::new(Units::open(Box::new(io::Cursor::new(file)), 20).unwrap());
        let mut bytes = Vec::new();
        let read = ahead.read_to_end(&mut bytes);
        (bytes, read, ahead.taken())
    }

    fn bytes(count: u32) -> Vec<u8> {
        (0..count).flat_map(|number| (number.wrapping_mul(0x9E37_79B9)).to_le_bytes()).collect()
    }

    #[test]
    fn bytes_come_in_order_to_the_end_of_the_file() {
        let whole = bytes(2_000_000);
        let (begin, end) = whole.split_at(5_000_001);
        for file in
            [whole.clone(), gzip(&whole), [gzip(begin), gzip(end)].concat(), zstd::encode_all(&*whole, 1).unwrap()]
        {
            let length = file.len() as u64;
            let (read, result, taken) = read(file);
            assert!(read == whole && result.is_ok());
            assert_eq!(taken, length);
        }
    }

    #[test]
    fn an_error_comes_after_the_bytes_before_it() {
        let whole = bytes(500_000);
        let mut file = gzip(&whole);
        file.truncate(file.len() / 2);
        let (read, result, _) = read(file);
        assert!(result.is_err() && read.len() > 500_000 && whole.starts_with(&read), "{result:?}, {}", read.len());
    }

    #[test]
    fn few_blocks_are_decompressed_before_they_are_read() {
        let whole = vec![b'x'; 64 << 20];
        let mut ahead = Ahead::new(Units::open(Box::new(io::Cursor::new(gzip(&whole))), 20).unwrap());
        ahead.fill_buf().unwrap();
        let Ahead::Beside(beside) = &ahead else { panic!("it is compressed") };
        let waiting: usize = beside.blocks.iter().take(BLOCKS_WAITING).map(|block| block.bytes.unwrap().len()).sum();
        assert!(waiting <= BLOCKS_WAITING << 17, "{waiting}");
    }
}
