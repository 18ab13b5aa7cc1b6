//! Commands as bytes, ready to be sent. A document has a hundred commands, so they are written once, without copies.

use redis::Cmd;

/// One command, as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Packed(Vec<u8>);

impl Packed {
    /// Begins a command with this name and as many arguments, which take about `bytes` bytes together.
    pub(crate) fn new(name: &str, arguments: usize, bytes: usize) -> Self {
        let mut packed = Self(Vec::with_capacity(24 + 12 * arguments + bytes));
        packed.line(b'*', 1 + arguments as u64);
        packed.arg(name.as_bytes())
    }

    pub(crate) fn arg(mut self, argument: &[u8]) -> Self {
        self.line(b'$', argument.len() as u64);
        self.0.extend_from_slice(argument);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    pub(crate) fn number(self, number: u64) -> Self {
        let mut digits = [0; DIGITS_MAX];
        self.arg(decimal(number, &mut digits))
    }

    pub(crate) fn signed(mut self, number: i32) -> Self {
        let mut digits = [0; DIGITS_MAX];
        let digits = decimal(number.unsigned_abs().into(), &mut digits);
        let sign = if number < 0 { &b"-"[..] } else { b"" };
        self.line(b'$', (sign.len() + digits.len()) as u64);
        for part in [sign, digits, b"\r\n"] {
            self.0.extend_from_slice(part);
        }
        self
    }

    /// Returns how many bytes are sent.
    pub(crate) fn size(&self) -> usize {
        self.0.len()
    }

    /// Returns the name of the command.
    pub(super) fn name(&self) -> String {
        let name = self.0.split(|byte| *byte == b'\n').nth(2).unwrap_or_default();
        String::from_utf8_lossy(name).trim_end().to_owned()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn line(&mut self, kind: u8, number: u64) {
        self.0.push(kind);
        put_decimal(&mut self.0, number);
        self.0.extend_from_slice(b"\r\n");
    }
}

impl From<Cmd> for Packed {
    fn from(cmd: Cmd) -> Self {
        Self(cmd.get_packed_command())
    }
}

/// Appends the decimal digits of a number.
pub(crate) fn put_decimal(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(decimal(number, &mut [0; DIGITS_MAX]));
}

/// The digits of the largest number.
const DIGITS_MAX: usize = 20;

fn decimal(mut number: u64, digits: &mut [u8; DIGITS_MAX]) -> &[u8] {
    let mut at = DIGITS_MAX;
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_written_as_the_library_writes_them() {
        for number in [0, 9, 10, 1_000_000_007, 1 << 31, u64::MAX] {
            for text in [&b""[..], b"\r\n", &[0; 300]] {
                let mut cmd = redis::cmd("ZADD");
                let signed = (number as i32).wrapping_sub(8);
                cmd.arg(text).arg(number).arg(signed);
                let packed = Packed::new("ZADD", 3, 0).arg(text).number(number).signed(signed);
                assert_eq!(packed.bytes(), cmd.get_packed_command());
                assert_eq!(packed.name(), "ZADD");
            }
        }
    }
}
