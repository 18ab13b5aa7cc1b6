//! Long documents: a raw text streams in, however long, and says what the same text says in JSON; all of them take
//! turns on a few threads, behind a bounded queue, and short documents never wait for them.

mod sending;
mod streams;
mod turns;
