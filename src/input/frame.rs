//! One zstd frame -> its bytes. The decoder of the previous frame is used again, because it contains the dictionary.
//! Copying and preparing a dictionary of megabytes for each frame of a few bytes would take almost all of the time.
//! Knows nothing of units.

use std::io::{self, BufRead as _, Read};

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation as _, OutBuffer};

use super::rewinding::Rewinding;

/// A decoder of frames that share a dictionary.
pub(super) struct FrameDecoder(Decoder<'static>);

impl FrameDecoder {
    /// Makes a decoder. `dictionary` is empty if there is none. A frame may require 2 to the power of `window_log_max`
    /// bytes of memory.
    pub(super) fn new(dictionary: &[u8], window_log_max: u32) -> io::Result<Self> {
        let mut decoder = Decoder::with_dictionary(dictionary)?;
        decoder.set_parameter(DParameter::WindowLogMax(window_log_max))?;
        Ok(Self(decoder))
    }
}

/// The frame that begins at the present place of a reader.
pub(super) struct Frame {
    raw: Rewinding,
    decoder: FrameDecoder,
    ended: bool,
}

impl Frame {
    pub(super) fn new(raw: Rewinding, mut decoder: FrameDecoder) -> io::Result<Self> {
        decoder.0.reinit()?;
        Ok(Self { raw, decoder, ended: false })
    }

    pub(super) fn raw(&self) -> &Rewinding {
        &self.raw
    }

    /// Returns the reader, whose place is after the bytes that were decoded, and the decoder.
    pub(super) fn into_parts(self) -> (Rewinding, FrameDecoder) {
        (self.raw, self.decoder)
    }
}

impl Read for Frame {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.ended {
            let bytes = self.raw.fill_buf()?;
            let is_last = bytes.is_empty();
            let (mut input, mut output) = (InBuffer::around(bytes), OutBuffer::around(&mut *buffer));
            let hint = self.decoder.0.run(&mut input, &mut output)?;
            let (taken, decoded) = (input.pos(), output.pos());
            self.raw.consume(taken);
            self.ended = hint == 0;
            if decoded > 0 {
                return Ok(decoded);
            }
            if is_last && !self.ended {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete frame"));
            }
        }
        Ok(0)
    }
}
