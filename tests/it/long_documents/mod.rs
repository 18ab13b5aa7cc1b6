//! Long documents: a raw text of any length is streamed, and gets the same answers as in JSON. All long documents take
//! turns on a few threads, behind a bounded queue, and short documents never wait for them.

mod sending;
mod streams;
mod turns;
