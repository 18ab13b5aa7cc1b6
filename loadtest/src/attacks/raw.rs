//! Bytes on a socket, written as an attacker writes them.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The server's address.
pub(super) struct Raw {
    pub(super) address: SocketAddr,
}

impl Raw {
    pub(super) async fn connect(&self) -> Result<TcpStream> {
        Ok(TcpStream::connect(self.address).await?)
    }

    /// Returns the head of a request with a body, or without one if `body` is "".
    pub(super) fn head(&self, request: &str, body: &str) -> Vec<u8> {
        format!("{request} HTTP/1.1\r\nhost: {}\r\n{body}\r\n", self.address).into_bytes()
    }
}

/// Sends bytes while it reads and drops the answer. Then it reads until the server sends nothing more for a while.
pub(super) async fn send_and_drain(stream: &mut TcpStream, bytes: &[u8]) -> Result<()> {
    let (mut reading, mut writing) = stream.split();
    let send = async {
        writing.write_all(bytes).await?;
        writing.flush().await
    };
    let mut piece = [0; 16 * 1024];
    let drain = async {
        while reading.read(&mut piece).await? > 0 {}
        Ok(())
    };
    tokio::try_join!(send, drain)?;
    Ok(())
}
