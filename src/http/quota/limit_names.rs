//! The names of the limits: as settings, and in words.

/// One of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Requests,
    Bytes,
    Documents,
    InFlight,
}

impl Limit {
    pub(super) const RATES: [Self; 3] = [Self::Requests, Self::Bytes, Self::Documents];
    pub(super) const ALL: [Self; 4] = [Self::Requests, Self::Bytes, Self::Documents, Self::InFlight];

    /// The name of the setting.
    pub(super) fn setting(self) -> &'static str {
        match self {
            Self::Requests => "requests_per_second",
            Self::Bytes => "bytes_per_second",
            Self::Documents => "documents_per_second",
            Self::InFlight => "requests_in_flight",
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Requests => "requests per second",
            Self::Bytes => "bytes per second",
            Self::Documents => "documents per second",
            Self::InFlight => "requests in flight",
        }
    }
}
