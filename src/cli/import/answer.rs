//! The fields of an answer line that an import needs.

use serde::Deserialize;

use crate::cli::client::Problem;

#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) verdict: Option<String>,
    pub(super) outcome: Option<String>,
    pub(super) id: Option<String>,
    /// Whether this content is stored under this id.
    #[serde(default)]
    pub(super) stored: bool,
    /// Why the verdict may not be the expected one.
    pub(super) warning: Option<String>,
    pub(super) error: Option<Problem>,
}
