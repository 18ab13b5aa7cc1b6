//! A request's parts -> the arguments of handlers.
//! Every refusal is a [`Problem`](super::error::Problem). axum's own extractors are not used for bodies, because their
//! refusals are plain text.

mod announced;
mod document;
mod json_text;
mod page;
mod parsing;
mod path;
mod reading;
mod subject;
mod targets;

pub(super) use document::DocumentBody;
pub(super) use json_text::{BatchText, JsonText};
pub(super) use page::PageInput;
pub(super) use parsing::{ill_formed, parse};
pub(super) use path::{OpenCollections, PathName, Target};
pub(super) use subject::{Subject, SubjectText};
pub(super) use targets::Targets;
