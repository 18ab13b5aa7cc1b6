//! What hapax tells about itself.

pub mod names;
