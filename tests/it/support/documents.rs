//! Helpers that insert and look up documents in a collection of the library, without a server.

use hapax::collections::{CheckOptions, Collection, CollectionError, InsertOptions, Pending};
use hapax::types::{Content, DocId, OnDuplicate, OnExisting, Verdict};

/// The forms in which a test gives a document.
pub(crate) trait IntoContent {
    fn into_content(self) -> Content;
}

impl IntoContent for Content {
    fn into_content(self) -> Content {
        self
    }
}

impl IntoContent for String {
    fn into_content(self) -> Content {
        Content::Text(self)
    }
}

impl IntoContent for &str {
    fn into_content(self) -> Content {
        self.to_owned().into_content()
    }
}

impl IntoContent for &String {
    fn into_content(self) -> Content {
        self.clone().into_content()
    }
}

impl<const BYTES: usize> IntoContent for &[u8; BYTES] {
    fn into_content(self) -> Content {
        Content::Signature { bytes: self.to_vec(), fingerprint: None, text: None }
    }
}

pub(crate) fn id(text: impl Into<String>) -> DocId {
    DocId::new(text.into()).unwrap()
}

/// The options of an insert. With `OnDuplicate` alone, an id's new content replaces the old content.
pub(crate) trait IntoOptions {
    fn into_options(self) -> InsertOptions;
}

impl IntoOptions for InsertOptions {
    fn into_options(self) -> InsertOptions {
        self
    }
}

impl IntoOptions for OnDuplicate {
    fn into_options(self) -> InsertOptions {
        options(self, OnExisting::Replace)
    }
}

/// Returns options for at most ten matches, without metadata.
pub(crate) const fn options(on_duplicate: OnDuplicate, on_existing: OnExisting) -> InsertOptions {
    InsertOptions { on_duplicate, on_existing, limit: 10, with_metadata: false, explain: false, patient: false }
}

/// Returns options for at most `limit` matches, without metadata.
pub(crate) const fn look(limit: usize) -> CheckOptions {
    CheckOptions { threshold: None, limit, with_metadata: false, explain: false, payload_digest: None, scope: None }
}

/// Decides an insert. The verdict is on disk when the result has been waited for.
pub(crate) async fn begin(
    collection: &Collection,
    id: impl Into<String>,
    content: impl IntoContent,
    options: impl IntoOptions,
) -> Result<Pending<Verdict>, CollectionError> {
    let id = self::id(id);
    let prepared = collection.prepare(content.into_content()).await?;
    collection.insert(id, None, prepared, options.into_options()).await
}

/// Returns the verdict of an insert when it is on disk.
pub(crate) async fn insert(
    collection: &Collection,
    id: impl Into<String>,
    content: impl IntoContent,
    options: impl IntoOptions,
) -> Result<Verdict, CollectionError> {
    begin(collection, id, content, options).await?.wait().await
}

pub(crate) async fn check(
    collection: &Collection,
    content: impl IntoContent,
    options: CheckOptions,
) -> Result<Verdict, CollectionError> {
    let prepared = collection.prepare(content.into_content()).await?;
    collection.check(None, prepared, options).await
}
