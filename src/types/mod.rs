//! The vocabulary of the service: ids, contents, verdicts.
//! Every value is valid by construction. Nothing here knows about storage, HTTP or threads.

mod capture;
mod content;
mod document;
mod expiry;
mod explanation;
mod fit;
mod golden;
mod ids;
mod job;
mod json_text;
mod labels;
mod options;
mod page;
mod password;
mod places;
pub mod retry_after;
mod revisit;
mod similarity;
mod statistics;
pub mod strict_json;
mod verdict;

pub use capture::{Capture, CaptureDate, InvalidCapture, PayloadDigest};
pub use content::{Content, IndexKind, Keep, Payload, PayloadKind, SetElement, SignedText, content_prefix};
pub use document::{DOCUMENT_FIELDS, Document, StoredText};
pub use expiry::{expires_at, overdue};
pub use explanation::{Below, BucketLook, Explanation, Hidden, LookupTimes};
pub use fit::fitting;
pub use golden::GoldenPair;
pub use ids::{
    CollectionName, DocId, ID_BYTES_MAX, ID_JSON_BYTES_MAX, InvalidName, METADATA_BYTES_MAX, Metadata, json_bytes,
};
pub use job::{Job, LabelDeletion, Merge, MergeReport, MergeSource, Merged};
pub use json_text::write_json_text;
pub use labels::{InvalidLabel, LABELS_MAX, Label, LabelLimits, Labels, SCOPE_TERMS_MAX, SOURCE, Scope, ScopeTerm};
pub use options::{OnDuplicate, OnExisting};
pub use page::{Extract, Html, PageFacts, PageMark, Syntax};
pub use password::Password;
pub use places::{ClusterPlace, ClusterRank, Seq, TimestampMs};
pub use revisit::Revisit;
pub use similarity::{Method, Overlap, Similarity, Verify, ratio};
pub use statistics::Statistics;
pub(crate) use verdict::fit_matches;
pub use verdict::{Match, Omitted, Outcome, Previous, Verdict, VerdictKind};
