//! Commands to a node that may be down or paused, without hapax's client.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A connection to a node.
pub struct Admin(BufReader<TcpStream>);

impl Admin {
    pub fn connect(address: &str) -> io::Result<Self> {
        let address: SocketAddr = address.parse().expect("host:port");
        let stream = TcpStream::connect_timeout(&address, ANSWER_MAX)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a command, which is a line of words. Returns the answer as a text. The parts of an array have spaces between
    /// them.
    pub fn tell(&mut self, line: &str) -> io::Result<String> {
        Ok(self.tell_all(&[line.to_owned()])?.remove(0))
    }

    /// Sends commands, all at once. If some of them fail, returns the first error.
    pub fn tell_all(&mut self, lines: &[String]) -> io::Result<Vec<String>> {
        self.send(lines)?;
        self.receive(lines)
    }

    /// Sends commands, and does not wait for their answers.
    pub fn send(&mut self, lines: &[String]) -> io::Result<()> {
        let bytes: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        self.0.get_mut().write_all(bytes.as_bytes())
    }

    /// Takes the answers to the commands that were sent.
    pub fn receive(&mut self, lines: &[String]) -> io::Result<Vec<String>> {
        let answer = |line: &String| self.answer().map_err(|error| io::Error::other(format!("{line}: {error}")));
        // All answers are read, so that the next command gets its own.
        let answers: Vec<_> = lines.iter().map(answer).collect();
        answers.into_iter().collect()
    }

    fn answer(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (kind, rest) = line.trim_end().split_at(1);
        let length = || rest.parse::<i64>().map_err(io::Error::other);
        match kind {
            "-" => Err(io::Error::other(rest.to_owned())),
            "$" => {
                let mut bytes = vec![0; usize::try_from(length()?).map_or(0, |length| length + 2)];
                self.0.read_exact(&mut bytes)?;
                Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
            }
            "*" => Ok((0..length()?).map(|_| self.answer()).collect::<io::Result<Vec<_>>>()?.join(" ")),
            _ => Ok(rest.to_owned()),
        }
    }
}
