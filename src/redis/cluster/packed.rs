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

    pub(crate) fn number(mut self, number: u64) -> Self {
        let mut digits = [0; DIGITS_MAX];
        let digits = decimal(number, &mut digits);
        self.line(b'$', digits.len() as u64);
        self.0.extend_from_slice(digits);
        self.0.extend_from_slice(b"\r\n");
        self
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
        let mut digits = [0; DIGITS_MAX];
        self.0.push(kind);
        self.0.extend_from_slice(decimal(number, &mut digits));
        self.0.extend_from_slice(b"\r\n");
    }
}

impl From<Cmd> for Packed {
    fn from(cmd: Cmd) -> Self {
        Self(cmd.get_packed_command())
    }
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
        for number in [0, 9, 10, 1_000_000_007, u64::MAX] {
            for text in [&b""[..], b"\r\n", &[0; 300]] {
                let mut cmd = redis::cmd("ZADD");
                cmd.arg(text).arg(number).arg("a");
                let packed = Packed::new("ZADD", 3, 0).arg(text).number(number).arg(b"a");
                assert_eq!(packed.bytes(), cmd.get_packed_command());
                assert_eq!(packed.name(), "ZADD");
            }
        }
    }
}
