//! Many documents in one request: all in one body (batch, or a list to deduplicate), or in lines that arrive one by one (bulk).

mod answer_line;
mod bulk;
mod feed;
mod groups;
mod lines;
mod list;
mod operation;
mod parsed;
mod rooms;
mod several;
mod shutdown;
mod source;
mod states;
mod waited;
mod work;
mod writer;

pub(super) use bulk::{Bulk, start};
pub(super) use groups::start_groups;
pub use groups::{Answered, Group, GroupAnswers, Line};
pub(super) use list::List;
pub(super) use operation::Operation;
pub(super) use states::{DocumentAnswer, Input};
pub(super) use work::DocumentWork;
