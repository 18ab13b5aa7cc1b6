//! The codes of problems. Only this file assigns statuses to them, and its matches have no wildcard arms.

use axum::http::StatusCode;

const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
const FULL: StatusCode = StatusCode::INSUFFICIENT_STORAGE;
const CONFLICT: StatusCode = StatusCode::CONFLICT;
const INTERNAL: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;
const ABSENT: StatusCode = StatusCode::NOT_IMPLEMENTED;

/// The stable name of a problem. Clients branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The body is not JSON.
    MalformedJson,
    /// The body ended early, or its compressed data is invalid.
    MalformedBody,
    /// The API key is missing or wrong.
    Unauthorized,
    /// The API key does not allow the request.
    Forbidden,
    /// The server has no API key, and the request comes from a page of another site or names a foreign host.
    ForeignRequest,
    /// The collection `default` cannot be dropped.
    DefaultStays,
    /// No directory for backups is configured.
    BackupsOff,
    /// The server has no keys file.
    KeysOff,
    /// The server has no audit log.
    AuditOff,
    /// Another backup is running.
    BackupRunning,
    /// A backup of this name exists.
    BackupExists,
    /// Two keys of this name are valid.
    KeyExists,
    /// The request would revoke its own key.
    OwnKey,
    RouteNotFound,
    CollectionNotFound,
    DocumentNotFound,
    JobNotFound,
    KeyNotFound,
    /// The path supports other methods.
    MethodNotAllowed,
    /// The body arrived too slowly.
    RequestTimeout,
    /// The id is stored with other content.
    IdConflict,
    /// The spec or the key does not match the collection's.
    SpecMismatch,
    /// The collection finds documents in another way than the request needs.
    WrongIndex,
    /// The collection exists. Its settings differ from those of the request, or the request is a load.
    CollectionExists,
    /// The settings of the two collections differ, or a merge of them with other options is running.
    NotMergeable,
    /// A limit on bytes, lines or documents was exceeded.
    TooLarge,
    /// The content type or encoding is not supported.
    UnsupportedMediaType,
    /// A field or a parameter has an invalid value.
    InvalidValue,
    /// The maximum number of collections is reached.
    TooManyCollections,
    /// The client has reached one of its own limits.
    RateLimited,
    /// A bug, or a disk error whose details are only for the log.
    Internal,
    /// The collection's file is damaged.
    CollectionDamaged,
    /// The disk refused the write.
    WriteFailed,
    /// The kind of store that the server uses does not have the operation.
    NotInThisStore,
    /// The cluster that has the documents did not answer.
    StoreUnavailable,
    /// The cluster may have taken the write.
    Uncertain,
    /// The collections are being opened.
    Starting,
    /// The server is shutting down.
    ShuttingDown,
    /// Too much work or memory in use.
    Overloaded,
    /// The client did not read its answers.
    Stalled,
    /// The disk is full.
    StorageFull,
    /// The memory budget is used up.
    MemoryBudgetReached,
    /// A limit on the labels of documents is reached.
    LabelsFull,
    /// The limit on the documents of one source is reached.
    SourceFull,
}

impl Code {
    pub const ALL: &[Self] = &[
        Self::MalformedJson,
        Self::MalformedBody,
        Self::Unauthorized,
        Self::Forbidden,
        Self::ForeignRequest,
        Self::DefaultStays,
        Self::BackupsOff,
        Self::KeysOff,
        Self::AuditOff,
        Self::BackupRunning,
        Self::BackupExists,
        Self::KeyExists,
        Self::OwnKey,
        Self::RouteNotFound,
        Self::CollectionNotFound,
        Self::DocumentNotFound,
        Self::JobNotFound,
        Self::KeyNotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::IdConflict,
        Self::SpecMismatch,
        Self::WrongIndex,
        Self::CollectionExists,
        Self::NotMergeable,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::InvalidValue,
        Self::TooManyCollections,
        Self::RateLimited,
        Self::Internal,
        Self::CollectionDamaged,
        Self::WriteFailed,
        Self::NotInThisStore,
        Self::StoreUnavailable,
        Self::Uncertain,
        Self::Starting,
        Self::ShuttingDown,
        Self::Overloaded,
        Self::Stalled,
        Self::StorageFull,
        Self::MemoryBudgetReached,
        Self::LabelsFull,
        Self::SourceFull,
    ];

    /// The name in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MalformedJson => "malformed_json",
            Self::MalformedBody => "malformed_body",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::ForeignRequest => "foreign_request",
            Self::DefaultStays => "default_stays",
            Self::BackupsOff => "backups_off",
            Self::KeysOff => "keys_off",
            Self::AuditOff => "audit_off",
            Self::BackupRunning => "backup_running",
            Self::BackupExists => "backup_exists",
            Self::KeyExists => "key_exists",
            Self::OwnKey => "own_key",
            Self::RouteNotFound => "route_not_found",
            Self::CollectionNotFound => "collection_not_found",
            Self::DocumentNotFound => "document_not_found",
            Self::JobNotFound => "job_not_found",
            Self::KeyNotFound => "key_not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::IdConflict => "id_conflict",
            Self::SpecMismatch => "spec_mismatch",
            Self::WrongIndex => "wrong_index",
            Self::CollectionExists => "collection_exists",
            Self::NotMergeable => "not_mergeable",
            Self::TooLarge => "too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::InvalidValue => "invalid_value",
            Self::TooManyCollections => "too_many_collections",
            Self::RateLimited => "rate_limited",
            Self::Internal => "internal",
            Self::CollectionDamaged => "collection_damaged",
            Self::WriteFailed => "write_failed",
            Self::NotInThisStore => "not_in_this_store",
            Self::StoreUnavailable => "store_unavailable",
            Self::Uncertain => "uncertain",
            Self::Starting => "starting",
            Self::ShuttingDown => "shutting_down",
            Self::Overloaded => "overloaded",
            Self::Stalled => "stalled",
            Self::StorageFull => "storage_full",
            Self::MemoryBudgetReached => "memory_budget_reached",
            Self::LabelsFull => "labels_full",
            Self::SourceFull => "source_full",
        }
    }

    pub fn status(self) -> StatusCode {
        match self {
            Self::MalformedJson | Self::MalformedBody => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden
            | Self::ForeignRequest
            | Self::DefaultStays
            | Self::BackupsOff
            | Self::KeysOff
            | Self::AuditOff => StatusCode::FORBIDDEN,
            Self::BackupRunning
            | Self::BackupExists
            | Self::KeyExists
            | Self::OwnKey
            | Self::IdConflict
            | Self::SpecMismatch
            | Self::WrongIndex
            | Self::CollectionExists
            | Self::NotMergeable => CONFLICT,
            Self::RouteNotFound
            | Self::CollectionNotFound
            | Self::DocumentNotFound
            | Self::JobNotFound
            | Self::KeyNotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout | Self::Stalled => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::InvalidValue => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooManyCollections | Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal | Self::CollectionDamaged => INTERNAL,
            Self::WriteFailed
            | Self::StoreUnavailable
            | Self::Uncertain
            | Self::Starting
            | Self::ShuttingDown
            | Self::Overloaded => UNAVAILABLE,
            Self::NotInThisStore => ABSENT,
            Self::StorageFull | Self::MemoryBudgetReached | Self::LabelsFull | Self::SourceFull => FULL,
        }
    }

    /// A sentence for people, the same for all problems of this code.
    pub fn title(self) -> &'static str {
        match self {
            Self::MalformedJson => "The body is not well-formed JSON",
            Self::MalformedBody => "The body could not be read",
            Self::Unauthorized => "A valid API key is required",
            Self::Forbidden => "The API key does not allow this",
            Self::ForeignRequest => "Without an API key, requests from other sites and host names are refused",
            Self::DefaultStays => "The default collection cannot be dropped",
            Self::BackupsOff => "This server has no directory for backups",
            Self::KeysOff => "This server has no keys file",
            Self::AuditOff => "This server has no audit log",
            Self::BackupRunning => "Another backup is running",
            Self::BackupExists => "A backup with this name already exists",
            Self::KeyExists => "Two keys with this name are valid already",
            Self::OwnKey => "A request cannot revoke its own key",
            Self::RouteNotFound => "There is no such path",
            Self::CollectionNotFound => "There is no such collection",
            Self::DocumentNotFound => "There is no such document",
            Self::JobNotFound => "There is no such job",
            Self::KeyNotFound => "There is no such key",
            Self::MethodNotAllowed => "This path does not support the method",
            Self::RequestTimeout => "The request did not arrive in time",
            Self::IdConflict => "The id is stored with other content",
            Self::SpecMismatch => "The spec or the key does not match the collection",
            Self::WrongIndex => "The collection finds documents in another way",
            Self::CollectionExists => "The collection already exists",
            Self::NotMergeable => "The merge cannot begin",
            Self::TooLarge => "A size limit was exceeded",
            Self::UnsupportedMediaType => "This content type or encoding is not accepted",
            Self::InvalidValue => "A value is not valid",
            Self::TooManyCollections => "The maximum number of collections is reached",
            Self::RateLimited => "A limit of the client is reached",
            Self::Internal => "An internal error happened in the server",
            Self::CollectionDamaged => "The collection's file is damaged",
            Self::WriteFailed => "The write could not be made durable",
            Self::NotInThisStore => "This kind of store does not have the operation",
            Self::StoreUnavailable => "The cluster that has the documents did not answer",
            Self::Uncertain => "The write may have been stored; send it again",
            Self::Starting => "The server is starting",
            Self::ShuttingDown => "The server is shutting down",
            Self::Overloaded => "The server is overloaded",
            Self::Stalled => "The stream made no progress",
            Self::StorageFull => "The disk is full",
            Self::MemoryBudgetReached => "The memory budget is used up",
            Self::LabelsFull => "The collection has too many labels or sets of labels",
            Self::SourceFull => "A source has too many documents",
        }
    }
}
