//! The commands of the protocol as Redis commands, and the replies of Redis as answers of the protocol.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hapax_core::SignatureShape;
use redis::Value;

use super::cluster::{Call, Cluster, Packed, Request, Response, Script};
use super::failure::Failure;
use super::first_verdict::FirstVerdict;
use super::keys::{IdField, Keys, Posting};
use super::postings::{self, Field, More};
use super::protocol::{Answer, Band, Bounds, Command, Found, Head, Ref, Reply, State, Step, Token};
use super::record::{HEAD_BYTES, Judged, Set, Stored};
use super::scripts::{CLAIM, KEEP, PEEK, RELEASE, REMOVE, REWRITE, STRIP, SWAP};
use crate::types::{TimestampMs, expires_at};
use crate::verdicts::Terms;

/// The rest of a step on a band that other documents share.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rest {
    /// The posting must be written beside others.
    Share { band: Band, at: Ref, again: bool },
    /// The sorted set must be read. If `post` has the own posting, it is written there first; if it may exist (`true`), it
    /// is removed before.
    More { band: Band, post: Option<(Ref, bool)> },
    /// The posting must be removed from the sorted set, too.
    Remove { band: Band, at: Ref },
    /// The record must be read again as a whole, because its shingles decide. They have so many bytes, and the signatures so
    /// many equal slots.
    Whole { at: Ref, bytes: usize, matching: u32 },
}

/// Which sets of shingles are read with records.
#[derive(Clone)]
pub(super) enum Sets {
    /// All. In a collection that stores none, this is the shortest command.
    All,
    None,
    /// Those that decide whether a document is a duplicate of this one.
    OfDoubtful(Box<Judged>),
}

impl Rest {
    /// Returns how many slots are equal. If too many documents would have to be read, the most similar ones are.
    pub(super) fn matching(&self) -> u32 {
        if let Self::Whole { matching, .. } = self { *matching } else { u32::MAX }
    }
}

/// The document of a machine in terms of keys.
#[derive(Clone)]
pub(super) struct Wire {
    pub keys: Keys,
    pub postings: Vec<Posting>,
    /// The hash and the field of the id, if the document has one.
    pub id: Option<(Vec<u8>, IdField)>,
    /// By what other documents are compared.
    pub terms: Terms,
    pub shape: SignatureShape,
    /// The largest number of postings that are read for a band.
    pub postings_max: usize,
    /// The largest number of documents that share a band and are read.
    pub candidates_max: usize,
    /// The largest number of documents whose shingles are read, and of the bytes of these shingles. One document more may be
    /// read.
    pub exact_reads_max: usize,
    pub exact_bytes_max: u64,
    /// How many replicas must have a write.
    pub acks: usize,
    /// How long after it was last seen a document expires.
    pub ttl: Option<Duration>,
    pub sets: Sets,
}

impl Wire {
    pub(super) fn bands(&self) -> u16 {
        self.postings.len() as u16
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds { bands: self.bands(), candidates_max: self.candidates_max }
    }

    /// Returns the request for a step. `shared`: bands in which other postings were found before.
    pub(super) fn request(&self, step: &Step<Judged>, shared: &BTreeSet<Band>) -> Request {
        let waits = step.waits && self.acks > 0;
        let (slot, calls) = match &step.command {
            Command::Probe { band } => self.on_posting(*band, postings::read),
            Command::Post { band, at, again } if *again || shared.contains(band) => {
                self.on_posting(*band, |posting| postings::share(posting, *at))
            }
            Command::Post { band, at, .. } => self.on_posting(*band, |posting| postings::post_alone(posting, *at)),
            Command::Unpost { band, at } => self.on_posting(*band, |posting| postings::leave(posting, *at)),
            other => {
                let (key, call) = self.request_of_one(other);
                (Cluster::slot_of(&key), vec![call])
            }
        };
        Request { slot, calls, waits }
    }

    /// Returns the key and the call of a command on a record or an id.
    fn request_of_one(&self, step: &Command<Judged>) -> (Vec<u8>, Call) {
        match step {
            Command::Create { at, head, body } => {
                let value = [&head_bytes(*head)[..], &body.stored.to_bytes(), &FirstVerdict::ROOM].concat();
                let key = self.keys.record(*at);
                let set = Packed::new("SET", 4, key.len() + value.len()).arg(&key).arg(&value).arg(b"NX").arg(b"GET");
                (key, Call::plain(set))
            }
            Command::Swap { at, from, to } => {
                let from = from.map(head_bytes);
                let from = from.as_ref().map_or(&[][..], |from| &from[..]);
                scripted(&SWAP, self.keys.record(*at), &[from, &head_bytes(*to)])
            }
            Command::Keep { at, from, to, body, tail } => {
                let tail_at = (HEAD_BYTES + body.stored.to_bytes().len()).to_string();
                let args = [&head_bytes(*from)[..], &head_bytes(*to), tail_at.as_bytes(), tail];
                scripted(&KEEP, self.keys.record(*at), &args)
            }
            Command::Rewrite { at, from, to, body } => {
                let value = [&head_bytes(*to)[..], &body.stored.with_verdict()].concat();
                scripted(&REWRITE, self.keys.record(*at), &[&head_bytes(*from), &value])
            }
            Command::Read { at } => match self.sets {
                Sets::All => self.read_whole(*at),
                Sets::None | Sets::OfDoubtful(_) => scripted(&PEEK, self.keys.record(*at), &[]),
            },
            Command::Remove { at, head } => scripted(&REMOVE, self.keys.record(*at), &[&head_bytes(*head)]),
            Command::Strip { at, head } => scripted(&STRIP, self.keys.record(*at), &[&head_bytes(*head)]),
            Command::Claim { from, to } => {
                let (key, field) = self.id.clone().expect("only a document with an id claims it");
                let [from, to_text] = [from, to].map(|at| at.map(|at| at.0.to_string()).unwrap_or_default());
                match to {
                    Some(_) => scripted(&CLAIM, key, &[&field, from.as_bytes(), to_text.as_bytes()]),
                    None => scripted(&RELEASE, key, &[&field, from.as_bytes()]),
                }
            }
            Command::Holder => {
                let (key, field) = self.id.clone().expect("only a document with an id is looked for by it");
                let get = Packed::new("HGET", 2, key.len()).arg(&key).arg(&field);
                (key, Call::plain(get))
            }
            Command::Probe { .. } | Command::Post { .. } | Command::Unpost { .. } => {
                unreachable!("postings have requests of their own")
            }
        }
    }

    fn read_whole(&self, at: Ref) -> (Vec<u8>, Call) {
        let key = self.keys.record(at);
        let get = Packed::new("GET", 1, key.len()).arg(&key);
        (key, Call::plain(get))
    }

    fn posting(&self, band: Band) -> &Posting {
        &self.postings[usize::from(band.0)]
    }

    fn on_posting(&self, band: Band, call: impl FnOnce(&Posting) -> Call) -> (u16, Vec<Call>) {
        let posting = self.posting(band);
        (posting.slot, vec![call(posting)])
    }

    /// Returns the request for the rest of a step.
    pub(super) fn request_of_rest(&self, rest: Rest) -> Request {
        let waits = |writes: bool| writes && self.acks > 0;
        match rest {
            Rest::Share { band, at, .. } => {
                let posting = self.posting(band);
                postings::request(posting, postings::share(posting, at), waits(true))
            }
            Rest::More { band, post } => {
                let more = More::of(self.posting(band));
                let newest = self.postings_max / 2;
                let mut calls: Vec<_> = post.iter().map(|(at, again)| more.post(*at, *again)).collect();
                calls.extend([more.read(false, self.postings_max - newest), more.read(true, newest), more.count()]);
                more.request(calls, waits(post.is_some()))
            }
            Rest::Remove { band, at } => {
                let more = More::of(self.posting(band));
                more.request(vec![more.remove(at)], false)
            }
            Rest::Whole { at, .. } => {
                let (key, call) = self.read_whole(at);
                Request { slot: Cluster::slot_of(&key), calls: vec![call], waits: false }
            }
        }
    }

    /// Adds the response to the rest of a step to its answer. Returns the rest that follows, and how many postings of the
    /// sorted set are not read because there are too many.
    pub(super) fn add_rest(
        &self,
        rest: Rest,
        response: Response,
        answer: &mut Answer<Judged>,
    ) -> Result<(Option<Rest>, u64), Failure> {
        let Response { mut values, acknowledged } = response;
        let is_acknowledged = acknowledged.is_none_or(|replicas| replicas >= self.acks);
        match rest {
            Rest::Share { band, at, again } => {
                let field = Field::of(values.pop().unwrap_or(Value::Nil))?;
                answer.replicated = is_acknowledged;
                let (found, rest) = shared(field, band, (at, again));
                answer.reply = Reply::Postings(found);
                Ok((rest, 0))
            }
            Rest::More { post, .. } => {
                let count = values.pop();
                let (newest, oldest) = (values.pop().unwrap_or(Value::Nil), values.pop().unwrap_or(Value::Nil));
                if post.is_some() {
                    let has_written = matches!(values.pop(), Some(Value::Int(1)));
                    answer.replicated &= has_written && is_acknowledged;
                }
                let mut read = [postings::refs(oldest)?, postings::refs(newest)?].concat();
                read.sort_unstable();
                read.dedup();
                let Some(Value::Int(count)) = count else { return Err(strange("a count that is no number")) };
                let unread = (count as u64).saturating_sub(read.len() as u64);
                let Reply::Postings(found) = &mut answer.reply else { unreachable!("a step on a band has postings") };
                found.append(&mut read);
                Ok((None, unread))
            }
            Rest::Remove { .. } => Ok((None, 0)),
            Rest::Whole { .. } => {
                answer.reply = Reply::Record(self.record(values.pop().unwrap_or(Value::Nil), true)?);
                Ok((None, 0))
            }
        }
    }

    /// Leaves only the oldest and the newest postings of a band if there are more than are read. Returns how many were
    /// removed.
    pub(super) fn bound(&self, found: &mut Vec<Ref>) -> u64 {
        let more = found.len().saturating_sub(self.postings_max);
        if more > 0 {
            found.sort_unstable();
            let oldest = self.postings_max - self.postings_max / 2;
            found.drain(oldest..oldest + more);
        }
        more as u64
    }

    /// Returns the answer to a step, and the rest of the step if it needs more requests.
    pub(super) fn answer(
        &self,
        step: &Step<Judged>,
        response: Response,
    ) -> Result<(Answer<Judged>, Option<Rest>), Failure> {
        let Response { mut values, acknowledged } = response;
        let last = values.pop().unwrap_or(Value::Nil);
        let mut rest = None;
        let (reply, changed) = match &step.command {
            Command::Create { head, .. } => {
                // The request may have been sent twice, so the record may be its own.
                let created = match self.record(last, true)? {
                    None => true,
                    Some(found) => found.head == *head,
                };
                (Reply::Created(created), created)
            }
            Command::Swap { .. } | Command::Keep { .. } | Command::Rewrite { .. } => match last {
                Value::Int(_) => (Reply::Swapped(Ok(())), true),
                other => (Reply::Swapped(Err(head_of(&bytes(other)?)?)), false),
            },
            Command::Read { at } => {
                let found = self.record(last, matches!(self.sets, Sets::All))?;
                rest = self.whole_of(*at, found.as_ref());
                (Reply::Record(found), false)
            }
            Command::Remove { .. } | Command::Strip { .. } => (Reply::Removed, true),
            Command::Unpost { band, at } => {
                rest = matches!(last, Value::Int(1)).then_some(Rest::Remove { band: *band, at: *at });
                (Reply::Removed, true)
            }
            Command::Claim { .. } => match last {
                Value::Int(_) => (Reply::Claimed(Ok(())), true),
                other => (Reply::Claimed(Err(number(&bytes(other)?)?)), false),
            },
            Command::Holder => (Reply::Holder(number(&bytes(last)?)?), false),
            Command::Probe { band } => {
                let Field { refs, has_more } = Field::of(last)?;
                rest = has_more.then_some(Rest::More { band: *band, post: None });
                (Reply::Postings(refs), false)
            }
            Command::Post { band, at, again } => match last {
                Value::Int(1) => (Reply::Postings(vec![*at]), true),
                Value::Int(_) => {
                    rest = Some(Rest::Share { band: *band, at: *at, again: *again });
                    (Reply::Postings(Vec::new()), false)
                }
                other => {
                    let (found, more) = shared(Field::of(other)?, *band, (*at, *again));
                    rest = more;
                    (Reply::Postings(found), true)
                }
            },
        };
        let replicated = changed && acknowledged.is_none_or(|replicas| replicas >= self.acks);
        Ok((Answer { reply, replicated }, rest))
    }

    /// Returns the rest of a read, if the shingles of the document decide.
    fn whole_of(&self, at: Ref, found: Option<&Found<Judged>>) -> Option<Rest> {
        let Sets::OfDoubtful(own) = &self.sets else { return None };
        let body = found?.body.as_ref()?;
        let Set::Unread(bytes) = body.stored.set else { return None };
        own.doubts(body).then(|| Rest::Whole { at, bytes, matching: own.matching(body) })
    }

    /// Returns whether the shingles of a document would decide, and it has none: a server of an earlier version has stored it.
    pub(super) fn is_undecided(&self, found: &Found<Judged>) -> bool {
        let (Sets::OfDoubtful(own), Some(body)) = (&self.sets, &found.body) else { return false };
        body.stored.set == Set::None && own.doubts(body)
    }

    /// Reads a record. `is_whole`: with its set of shingles, if it has one.
    fn record(&self, value: Value, is_whole: bool) -> Result<Option<Found<Judged>>, Failure> {
        let bytes = bytes(value)?;
        let Some(head) = head_of(&bytes)? else { return Ok(None) };
        let rest = &bytes[HEAD_BYTES..];
        let body = if rest.is_empty() {
            // Only for a document that is over can a record be written without its content.
            if !head.state.is_over() {
                return Err(strange("a record without a document"));
            }
            None
        } else {
            let stored =
                Stored::of_bytes(rest, is_whole).ok_or_else(|| strange("a record that this version cannot read"))?;
            if stored.signature.len() != self.shape.bytes() {
                return Err(strange("a record with a signature of another size"));
            }
            Some(Judged { stored: Arc::new(stored), terms: self.terms, shape: self.shape, limit: 0 })
        };
        let is_over = |body: &Judged, ttl| expires_at(body.stored.last_seen(), ttl) <= TimestampMs::now();
        let expired = self.ttl.zip(body.as_ref()).is_some_and(|(ttl, body)| is_over(body, ttl));
        Ok(Some(Found { head, body, expired }))
    }
}

/// Returns the postings of a field after the own one was added, and the rest of the step. If the own one is not in the
/// field, it belongs into the sorted set.
fn shared(field: Field, band: Band, (at, again): (Ref, bool)) -> (Vec<Ref>, Option<Rest>) {
    let is_inside = field.refs.contains(&at);
    let rest = Rest::More { band, post: (!is_inside).then_some((at, again)) };
    let has_rest = field.has_more || !is_inside;
    (field.refs, has_rest.then_some(rest))
}

/// Removes a field of a hash of ids, if it leads to this document.
pub(super) fn release(group: &[u8], field: &[u8], at: Ref) -> Call {
    Call::script_on(&RELEASE, group, &[field, at.0.to_string().as_bytes()])
}

/// Returns the record of a document that is stored, and that no failover undoes.
pub(super) fn sealed(stored: &Stored, token: Token) -> Vec<u8> {
    [&head_bytes(Head::new(State::Sealed, token))[..], &stored.with_verdict()].concat()
}

fn scripted(script: &'static Script, key: Vec<u8>, arguments: &[&[u8]]) -> (Vec<u8>, Call) {
    let call = Call::script_on(script, &key, arguments);
    (key, call)
}

fn head_bytes(Head { state, token }: Head) -> [u8; HEAD_BYTES] {
    let mut bytes = [0; HEAD_BYTES];
    bytes[0] = match state {
        State::Pending => b'p',
        State::Kept => b'k',
        State::Sealed => b's',
        State::Aborted => b'a',
        State::Deleted => b'd',
        State::Superseded => b'r',
    };
    bytes[1..].copy_from_slice(&token.0.to_be_bytes());
    bytes
}

/// Reads the head of a record; `None` if there is no record.
fn head_of(bytes: &[u8]) -> Result<Option<Head>, Failure> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let head = bytes.first_chunk::<HEAD_BYTES>().and_then(|[state, token @ ..]| {
        let state = match state {
            b'p' => State::Pending,
            b'k' => State::Kept,
            b's' => State::Sealed,
            b'a' => State::Aborted,
            b'd' => State::Deleted,
            b'r' => State::Superseded,
            _ => return None,
        };
        Some(Head::new(state, Token(u64::from_be_bytes(*token))))
    });
    head.map(Some).ok_or_else(|| strange("a record whose beginning is not hapax's"))
}

fn bytes(value: Value) -> Result<Vec<u8>, Failure> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.into_bytes()),
        other => Err(strange(&format!("an answer of another type: {other:?}"))),
    }
}

fn number(bytes: &[u8]) -> Result<Option<Ref>, Failure> {
    if bytes.is_empty() {
        return Ok(None);
    }
    postings::number(bytes).map(Some).ok_or_else(|| strange("a document number that is not a number"))
}

fn strange(what: &str) -> Failure {
    Failure::Strange(what.to_owned())
}
