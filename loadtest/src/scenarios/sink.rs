//! The limit of this client itself: requests to a server that answers at once and does nothing else.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::bench::{Bench, counted, runtime};
use crate::client::{Pace, Request};
use crate::options::Args;
use crate::pinning::{self, Split};
use crate::server::Server;
use crate::works::{Prepared, check_body, path};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 33\r\n\r\n\
                        {\"verdict\":\"unique\",\"matches\":[]}";

pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut bench = start(args)?;
    load(&mut bench)?;
    bench.report.finish(args)
}

/// Returns how many requests per second this client can send.
pub(super) fn limit(args: &Args) -> Result<f64> {
    load(&mut start(args)?)
}

fn start(args: &Args) -> Result<Bench> {
    let split = args.pin.then(Split::half).transpose()?;
    // This runs in a thread that is bound to the server's processors. The threads of the runtime inherit this binding.
    let processors = split.as_ref().map(|split| split.server.clone());
    let started = std::thread::spawn(move || {
        processors.map(|processors| pinning::bind(&processors)).transpose()?;
        let runtime = runtime(None, 0)?;
        let address = runtime.block_on(listen())?;
        Ok::<_, anyhow::Error>((runtime, address))
    });
    let (serving, address) = started.join().expect("the thread returns its errors")?;
    let server = Server::sink(address, serving);
    Bench::with("sink", args, server, split.as_ref())
}

/// Measures how many requests per second this client can send, and the latency that it adds at half of that rate.
fn load(bench: &mut Bench) -> Result<f64> {
    let to = path("default", "check");
    let texts = (0..64).map(|n| Request::post("check", &to, check_body(bench.texts.fresh(n).as_bytes())));
    let work = Prepared::new(texts.collect());
    let seconds = bench.args.seconds;
    let most = bench.phase("as fast as it can", &work, Pace::Closed, seconds / 2.0)?;
    let rate = most.good().len() as f64 / counted(seconds / 2.0);
    let pace = bench.args.rate.map_or_else(|| bench.open(rate / 2.0), |rate| bench.open(rate));
    let half = bench.phase("at a rate", &work, pace, seconds / 2.0)?;
    bench.report.nothing_wrong("as fast as it can", &most);
    bench.report.nothing_wrong("at a rate", &half);
    Ok(rate)
}

async fn listen() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen")?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // If a connection fails, the client notices and reports it.
            tokio::spawn(answer_all(stream));
        }
    });
    Ok(address)
}

/// Answers each request when its body has arrived.
async fn answer_all(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut read = Vec::with_capacity(1 << 16);
    loop {
        while let Some(length) = whole_request(&read) {
            read.drain(..length);
            stream.write_all(ANSWER).await?;
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    }
}

/// Returns the length of the first request, if the request has arrived completely.
fn whole_request(read: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length: ";
    let head = read.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let lines = read[..head].split(|&byte| byte == b'\n');
    let value = lines.filter_map(|line| line.strip_prefix(NAME)).next();
    let body = value.map_or(Some(0), |value| std::str::from_utf8(value).ok()?.trim().parse().ok())?;
    Some(head + body).filter(|length| read.len() >= *length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_when_its_body_is() {
        let request = b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabcGET";
        assert_eq!(whole_request(request), Some(request.len() - 3));
        assert_eq!(whole_request(&request[..request.len() - 4]), None);
        assert_eq!(whole_request(b"GET / HTTP/1.1\r\n\r\n"), Some(18));
    }
}
