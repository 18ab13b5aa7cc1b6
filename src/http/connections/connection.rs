//! One connection, from its opening to its end. In: an accepted stream and its place. Out: answers. The connection ends
//! when it has waited long enough, when its place is needed, or when the server stops. If possible it ends gracefully:
//! every request that the server has begun to read is still answered.

use std::future::{poll_fn, ready};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, Version};
use futures::future::Either;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulConnection;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};
use tower::Service;

use super::activity::{Activity, Answering, ConnectionState, ConnectionTimes, Ending};
use super::counted::{Counted, counted_request};
use super::places::{ConnectionPlace, UNREAD_SPARED, Wanted};
use super::signal::Signal;
use super::socket::Socket;
use super::wire::Wire;
use crate::config::HttpLimits;
use crate::http::early::Early;
use crate::http::kept_body::Keeping;
use crate::http::notes::Notes;
use crate::http::run_queue::TimedExecutor;
use crate::http::sending::GivenUp;
use crate::telemetry::names::{self, label, value};
use crate::tls::Acceptor;

/// An HTTP/2 client that has been silent this long gets a ping. If it stays silent for the same time again, the
/// connection is closed.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const STREAMS_PER_CONNECTION_MAX: u32 = 256;
/// The limit on the size of all headers of a request together. An id in the query may take 6 KiB of it.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// The same limit for an HTTP/2 request. This limit is lower, because one connection may send many requests and delay
/// the body of each.
const HTTP_2_HEADER_BYTES_MAX: u32 = 16 * 1024;
/// How many bytes of one HTTP/2 request a client may send before the server reads them.
const HTTP_2_STREAM_BYTES: u32 = 64 * 1024;
/// The same number for all requests of an HTTP/2 connection together.
const HTTP_2_CONNECTION_BYTES: u32 = 128 * 1024;

/// How to serve the connections of a listener.
#[derive(Clone)]
pub(crate) struct Serving {
    builder: auto::Builder<TimedExecutor>,
    router: Router,
    early: Option<Early>,
    patience: ConnectionTimes,
    write_timeout: Duration,
    /// Places for HTTP/2 requests. A request that is alone on its connection needs no place. Each request takes about
    /// 20 KB of memory, and up to 36 KB with its headers, until its body has arrived: 1000 connections with 256
    /// requests each would take 5 GB.
    streams: Arc<Semaphore>,
    /// `None`: plain HTTP.
    tls: Option<Acceptor>,
    /// Given when the server stops. Each connection then answers the requests that are on their way, and ends.
    drain: Signal,
    /// Given to close all connections immediately.
    cut: Signal,
}

impl Serving {
    /// `streams_max` is the number of places for HTTP/2 requests; see [`Serving::streams`].
    pub(crate) fn new(
        router: Router,
        early: Option<Early>,
        limits: &HttpLimits,
        streams_max: usize,
        tls: Option<Acceptor>,
    ) -> Self {
        let mut builder = auto::Builder::new(TimedExecutor);
        // Hyper's own timeout is off, because it measures the time of a head from the end of the last answer.
        builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(HEADER_BYTES_MAX);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_INTERVAL)
            .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
            // Bytes that arrive before they are read wait in memory that no budget counts.
            .initial_stream_window_size(HTTP_2_STREAM_BYTES)
            .initial_connection_window_size(HTTP_2_CONNECTION_BYTES)
            .max_header_list_size(HTTP_2_HEADER_BYTES_MAX);
        let patience = ConnectionTimes {
            header_timeout: limits.header_timeout,
            keep_alive_timeout: limits.keep_alive_timeout,
            // At most half of `drain_timeout` is spent on waiting for requests. The other half is for their answers.
            drain_idle: limits.drain_idle.min(limits.drain_timeout / 2),
        };
        let streams = Arc::new(Semaphore::new(streams_max));
        let (drain, cut) = Default::default();
        Self { builder, router, early, patience, write_timeout: limits.write_timeout, streams, tls, drain, cut }
    }

    /// Tells every client to send its next request elsewhere, and soon closes the connections that have no request.
    pub(crate) fn drain(&self) {
        self.drain.give();
    }

    /// Closes all connections immediately.
    pub(crate) fn cut(&self) {
        self.cut.give();
    }

    /// Serves one connection to its end.
    pub(crate) async fn serve(
        self,
        (stream, peer): (TcpStream, IpAddr),
        activity: Arc<Activity>,
        place: ConnectionPlace,
    ) {
        let socket = Socket::new(stream, Arc::clone(&activity), self.write_timeout, place.leaving());
        let wire = Wire::new(socket, self.tls.as_ref());
        let (router, early, counted, wanted) = (self.router, self.early, Arc::clone(&activity), place.wanted());
        let (drain, cut) = (self.drain.child(), self.cut.child());
        let (streams, ends) = (self.streams, Arc::new(Ends { leave: drain.clone(), close: cut.clone(), wanted }));
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Notes::from(peer));
            let multiplexed = request.version() == Version::HTTP_2;
            let Some(stream) = stream_place(&streams, if multiplexed { counted.answers() } else { 0 }) else {
                metrics::counter!(names::HTTP_STREAMS_REFUSED).increment(1);
                // This error says that the request was not begun, so the client may send it again.
                return Either::Left(ready(Err(h2::Error::from(h2::Reason::REFUSED_STREAM))));
            };
            let open = Open { _answering: counted.answer(multiplexed), _place: stream };
            let request = counted_request(request, &counted);
            let refusal = early.as_ref().and_then(|early| Some((early.clone(), early.refusal(&request)?)));
            let answer = match refusal {
                Some((early, problem)) => Either::Left(early.refused(problem, request)),
                None => Either::Right(router.clone().call(request)),
            };
            let (ends, sent) = (Arc::clone(&ends), Arc::clone(&counted));
            Either::Right(async move {
                let Ok(mut answer) = answer.await;
                // After this yield, all requests that have arrived are worked on first. Then all answers are sent, so
                // that a sleeping client is woken only once. Waking the client for each answer took a third of the time
                // of a short check.
                tokio::task::yield_now().await;
                let open = match answer.extensions_mut().remove::<GivenUp>() {
                    Some(given_up) => {
                        sent.sends(given_up.unread());
                        ends.if_given_up(&given_up, open, multiplexed)
                    }
                    None => Opened::Owned(open),
                };
                let makes_room = !ends.leave.is_given() && ends.wanted.take();
                if makes_room {
                    count(value::CLOSED_FOR_ROOM);
                }
                if makes_room && multiplexed {
                    ends.leave.give();
                } else if !multiplexed && (makes_room || ends.leave.is_given()) {
                    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok(answer.map(|body| Counted::new(Keeping::new(body, open), sent)))
            })
        });
        let connection = self.builder.serve_connection(TokioIo::new(wire), service).into_owned();
        let watch = ConnectionWatch { activity, place, patience: self.patience, ending: Ending::No };
        tokio::select! {
            biased;
            () = cut.wait() => {}
            () = watch.until_over(connection, drain) => {}
        }
    }
}

/// Ends a connection that has waited too long, or that must make room.
struct ConnectionWatch {
    activity: Arc<Activity>,
    place: ConnectionPlace,
    patience: ConnectionTimes,
    ending: Ending,
}

#[derive(PartialEq)]
enum Fate {
    GoesOn,
    /// The connection was told to shut down gracefully.
    Leaves,
    IsDropped,
}

impl ConnectionWatch {
    async fn until_over<C: GracefulConnection>(mut self, connection: C, drain: Signal)
    where
        C::Error: std::fmt::Display,
    {
        let mut connection = pin!(connection);
        let mut drained = pin!(drain.wait());
        let mut timer = pin!(tokio::time::sleep(self.patience.header_timeout));
        poll_fn(|cx| {
            if self.ending == Ending::No && drained.as_mut().poll(cx).is_ready() {
                self.ending = Ending::Stopping(Instant::now());
            }
            loop {
                self.activity.register(cx);
                // Poll first: the connection must not be closed if a request has already arrived.
                if let Poll::Ready(result) = connection.as_mut().poll(cx) {
                    if let Err(error) = result {
                        tracing::debug!(%error, "connection ended");
                    }
                    return Poll::Ready(());
                }
                match self.next(timer.as_mut(), cx) {
                    Fate::GoesOn => return Poll::Pending,
                    Fate::Leaves => connection.as_mut().graceful_shutdown(),
                    Fate::IsDropped => return Poll::Ready(()),
                }
            }
        })
        .await;
    }

    fn next(&mut self, mut timer: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Fate {
        // An HTTP/2 client is told at once to send no further requests. Requests on their way are still answered.
        // HTTP/1 has no such message, so the next answer carries `Connection: close`.
        if matches!(self.ending, Ending::Stopping(_)) && self.activity.is_multiplexed() {
            return self.leaves();
        }
        if self.activity.is_flooded() {
            return dropped(value::CLOSED_FLOOD);
        }
        if self.activity.take_asked_to_leave() {
            match self.activity.state() {
                ConnectionState::Busy if self.activity.unread_for() >= Some(UNREAD_SPARED) => {
                    return dropped(value::CLOSED_FOR_ROOM);
                }
                ConnectionState::Busy => {}
                _ if matches!(self.ending, Ending::Leaving(_)) => {}
                ConnectionState::Idle if self.place.vacate() => {
                    count(value::CLOSED_FOR_ROOM);
                    return self.leaves();
                }
                ConnectionState::Idle | ConnectionState::Head => return dropped(value::CLOSED_FOR_ROOM),
            }
        }
        loop {
            let Some(due) = self.activity.due(&self.patience, self.ending) else { return Fate::GoesOn };
            // The timer is only moved to an earlier time. If the due time has moved to a later time, this is noticed
            // when the timer fires. So a request does not have to reset the timer.
            if due < timer.deadline() || timer.is_elapsed() {
                timer.as_mut().reset(due);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Fate::GoesOn;
            }
            if due > Instant::now() {
                continue;
            }
            return match (self.ending, self.activity.state()) {
                (Ending::No, ConnectionState::Idle) => {
                    count(value::CLOSED_IDLE);
                    self.leaves()
                }
                (Ending::No, _) => dropped(value::CLOSED_NO_REQUEST),
                // If a part of a head has arrived, the rest must arrive within LEAVING_TIME.
                (Ending::Stopping(_), _) => self.leaves(),
                (Ending::Leaving(_), _) => Fate::IsDropped,
            };
        }
    }

    fn leaves(&mut self) -> Fate {
        self.ending = Ending::Leaving(Instant::now());
        Fate::Leaves
    }
}

fn dropped(reason: &'static str) -> Fate {
    count(reason);
    Fate::IsDropped
}

fn count(reason: &'static str) {
    tracing::debug!(reason, "connection closed");
    metrics::counter!(names::HTTP_CONNECTIONS_CLOSED, label::REASON => reason).increment(1);
}

/// Returns a place for an HTTP/2 request on a connection with `others` other requests. `Some(None)`: the first request
/// needs no place, because the connection has one. `None`: fewer places are free than `others`, and the request is
/// refused. This rule keeps one client from taking all places.
fn stream_place(places: &Arc<Semaphore>, others: usize) -> Option<Option<OwnedSemaphorePermit>> {
    match others {
        0 => Some(None),
        _ if places.available_permits() < others => None,
        _ => Arc::clone(places).try_acquire_owned().ok().map(Some),
    }
}

/// A request from its head to the end of its answer.
struct Open {
    _answering: Answering,
    /// See [`Serving::streams`].
    _place: Option<OwnedSemaphorePermit>,
}

/// A request together with the body of its answer. The request counts as being answered until this value is dropped.
enum Opened {
    Owned(#[expect(dead_code, reason = "it is dropped with the answer")] Open),
    /// The request also stops counting if its answer is given up earlier.
    Shared(#[expect(dead_code, reason = "it is dropped with the answer")] Arc<Mutex<Option<Open>>>),
}

/// The ways in which answers end a connection.
struct Ends {
    /// Given to make the connection take no further requests.
    leave: Signal,
    /// Given to close the connection at once.
    close: Signal,
    /// Whether another client waits for a place.
    wanted: Wanted,
}

impl Ends {
    /// If the answer is given up, ends the request (HTTP/2) or the connection (HTTP/1).
    fn if_given_up(self: &Arc<Self>, given_up: &GivenUp, open: Open, multiplexed: bool) -> Opened {
        let shared = Arc::new(Mutex::new(Some(open)));
        let (ends, open) = (Arc::clone(self), Arc::clone(&shared));
        given_up.then(move || match multiplexed {
            // The other answers are sent to their end, and then the connection is closed. A stream without a window
            // cannot be ended alone: it holds a piece of its answer until the connection closes.
            true => {
                ends.leave.give();
                open.lock().take();
            }
            false => ends.close.give(),
        });
        Opened::Shared(shared)
    }
}
