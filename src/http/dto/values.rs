//! Single values as JSON.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::types::{CollectionName, DocId, Labels, Metadata, TimestampMs};

/// Formats a time as RFC 3339, in UTC.
pub(super) fn timestamp(at: TimestampMs) -> String {
    // Stored times are always within jiff's ±9999 years. If one were not, the epoch would make the error visible.
    jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

/// Writes the name of a collection.
pub(super) fn name<S: Serializer>(name: &CollectionName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name.as_str())
}

/// Writes an id.
pub(super) fn id<S: Serializer>(id: &DocId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(id.as_str())
}

/// Writes an id, or `null`.
pub(super) fn some_id<S: Serializer>(id: &Option<DocId>, serializer: S) -> Result<S::Ok, S::Error> {
    id.as_ref().map(DocId::as_str).serialize(serializer)
}

/// Writes a time as RFC 3339, in UTC.
pub(super) fn time<S: Serializer>(at: &TimestampMs, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&timestamp(*at))
}

/// Returns the metadata as it was sent, which is already JSON.
pub(super) fn metadata(metadata: Metadata) -> Box<RawValue> {
    // All metadata from clients passes through compact(), which accepts only JSON.
    RawValue::from_string(metadata.as_str().to_owned()).expect("stored metadata is JSON")
}

/// Writes labels as an object.
pub(super) fn labels<S: Serializer>(labels: &Option<Labels>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(labels.iter().flat_map(Labels::iter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc3339_in_utc() {
        assert_eq!(timestamp(TimestampMs(1_795_168_800_000)), "2026-11-20T10:00:00Z");
        assert_eq!(timestamp(TimestampMs(1_795_168_800_250)), "2026-11-20T10:00:00.25Z");
    }
}
