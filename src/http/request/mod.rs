//! A request's parts -> what handlers ask for.
//! Every refusal is a [`Problem`](super::error::Problem); axum's own extractors, whose rejections are plain text, are not
//! used on bodies.

mod announced;
mod document;
mod json_text;
mod parsing;
mod path;
mod reading;
mod subject;

pub(super) use document::DocumentBody;
pub(super) use json_text::JsonText;
pub(super) use parsing::parse;
pub(super) use path::{OpenCollections, PathName, Target};
pub(super) use subject::Subject;
