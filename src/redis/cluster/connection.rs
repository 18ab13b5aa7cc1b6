//! A connection to a node. In: commands as bytes. Out: one value for each command, in their order.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, OnceLock};

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use redis::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::replies;

/// Pipelines that wait to be written. A lane sends fewer at once.
const QUEUE: usize = 32;
/// There is room for so many bytes of answers before each read.
const READ_MIN: usize = 16 << 10;
/// The buffer for answers keeps no more memory than this while it is empty.
const BUFFER_KEPT: usize = 1 << 20;

/// A connection to a node. It closes with its last clone.
#[derive(Clone)]
pub(super) struct Connection {
    pipelines: mpsc::Sender<(Vec<u8>, Awaited)>,
    ended: Arc<OnceLock<String>>,
    _task: Arc<AbortOnDropHandle<()>>,
}

/// The answers to a pipeline.
struct Awaited {
    count: usize,
    values: Vec<Value>,
    reply: oneshot::Sender<Vec<Value>>,
}

impl Connection {
    pub(super) fn of(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (pipelines, queue) = mpsc::channel(QUEUE);
        let ended = Arc::new(OnceLock::new());
        let reason = Arc::clone(&ended);
        let task = tokio::spawn(async move {
            let error = serve(stream, queue).await;
            let _ = reason.set(error.to_string());
        });
        Self { pipelines, ended, _task: Arc::new(AbortOnDropHandle::new(task)) }
    }

    /// Returns whether the connection has broken.
    pub(super) fn is_broken(&self) -> bool {
        self.ended.get().is_some()
    }

    /// Sends `count` commands, without others between them, and returns one value for each. Errors of single commands
    /// are among the values. If the caller does not wait for the end, the commands are sent all the same.
    pub(super) async fn send(&self, commands: Vec<u8>, count: usize) -> Result<Vec<Value>, String> {
        let (reply, values) = oneshot::channel();
        let awaited = Awaited { count, values: Vec::with_capacity(count), reply };
        let broken = || self.ended.get().cloned().unwrap_or_else(|| "the connection was closed".to_owned());
        self.pipelines.send((commands, awaited)).await.map_err(|_| broken())?;
        values.await.map_err(|_| broken())
    }
}

/// Writes pipelines and reads their answers until the connection breaks. Returns the reason.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    mut queue: mpsc::Receiver<(Vec<u8>, Awaited)>,
) -> io::Error {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let awaited = Mutex::new(VecDeque::new());
    let writing = async {
        while let Some((commands, answers)) = queue.recv().await {
            awaited.lock().push_back(answers);
            writer.write_all(&commands).await?;
            writer.flush().await?;
        }
        Err::<(), _>(io::Error::other("it is not used any more"))
    };
    let reading = async {
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(READ_MIN);
            if reader.read_buf(&mut buffer).await? == 0 {
                return Err(io::Error::other("the node has closed the connection"));
            }
            take_answers(&mut buffer, &awaited)?;
            if buffer.is_empty() && buffer.capacity() > BUFFER_KEPT {
                buffer = BytesMut::new();
            }
        }
    };
    match tokio::try_join!(writing, reading) {
        Ok(((), ())) => unreachable!("both end with an error"),
        Err(error) => error,
    }
}

/// Gives complete answers to those who wait for them.
fn take_answers(buffer: &mut BytesMut, awaited: &Mutex<VecDeque<Awaited>>) -> io::Result<()> {
    let strange = || io::Error::other("its answers are not those of Redis");
    let mut awaited = awaited.lock();
    let mut read = 0;
    while let Some((value, bytes)) = replies::read(&buffer[read..]).map_err(|_| strange())? {
        read += bytes;
        let first = awaited.front_mut().ok_or_else(strange)?;
        first.values.push(value);
        if first.values.len() == first.count {
            let first = awaited.pop_front().expect("it was there");
            // The caller may have given up meanwhile. This is no error.
            let _ = first.reply.send(first.values);
        }
    }
    buffer.advance(read);
    Ok(())
}
