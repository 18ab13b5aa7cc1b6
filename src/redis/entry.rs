//! The entry of one collection in the list: its name, its number and its settings, which other servers may change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;

use super::asked::refuse;
use super::catalogue::{Catalogue, Listed};
use crate::types::{CollectionName, TimestampMs};
use crate::verdicts::{Changes, CollectionError, Result, Settings, Terms};

/// How often an operation begins again because another server has changed the settings.
const ATTEMPTS: usize = 8;

/// The entry of a collection, as this server last read or wrote it.
pub(super) struct Entry {
    catalogue: Catalogue,
    name: CollectionName,
    number: u64,
    created: TimestampMs,
    settings: ArcSwap<Settings>,
    /// Whether enough replicas are known to have the entry.
    is_confirmed: AtomicBool,
}

impl Entry {
    pub(super) fn new(catalogue: Catalogue, name: CollectionName, listed: &Listed, settings: Settings) -> Self {
        let (number, created, settings) = (listed.number, listed.created(), ArcSwap::from_pointee(settings));
        Self { catalogue, name, number, created, settings, is_confirmed: AtomicBool::new(false) }
    }

    pub(super) fn name(&self) -> &CollectionName {
        &self.name
    }

    /// Returns the number in the keys of the collection.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn created(&self) -> TimestampMs {
        self.created
    }

    pub(super) fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Sets the settings, unless they have been changed since they were `held`.
    pub(super) fn replace(&self, held: &Arc<Settings>, settings: Settings) {
        if **held != settings {
            self.settings.compare_and_swap(held, Arc::new(settings));
        }
    }

    pub(super) fn set(&self, settings: Settings) {
        self.settings.store(Arc::new(settings));
    }

    /// Returns an error unless enough replicas have the entry. A failover may undo the entry of a collection that was just
    /// created. Then another server may create it with another number, and the documents of the two would not know each
    /// other.
    pub(super) async fn confirm(&self) -> Result<()> {
        if self.is_confirmed.load(Ordering::Relaxed) {
            return Ok(());
        }
        for _ in 0..ATTEMPTS {
            let (text, ..) = self.read().await?;
            if self.catalogue.confirm(self.name.as_str(), &text).await? {
                self.is_confirmed.store(true, Ordering::Relaxed);
                return Ok(());
            }
        }
        Err(self.keeps_changing())
    }

    /// Returns an error if the collection was dropped.
    pub(super) async fn look(&self) -> Result<()> {
        self.read().await.map(drop)
    }

    /// Reads the entry from the cluster. Returns its text and its values.
    async fn read(&self) -> Result<(String, Listed, Settings)> {
        let gone = || CollectionError::NoSuchCollection(self.name.clone());
        let text = self.catalogue.find(&self.name).await?.ok_or_else(gone)?;
        let (listed, settings) = Listed::read(&self.name, &text)?;
        if listed.number == self.number { Ok((text, listed, settings)) } else { Err(gone()) }
    }

    fn keeps_changing(&self) -> CollectionError {
        CollectionError::StoreUnavailable {
            detail: format!("other servers are changing the collection `{}`; send the request again", self.name),
            uncertain: false,
        }
    }

    /// Changes settings. When this returns, this server uses them; the others read them within two seconds. A new
    /// threshold leaves the banding as it is, because the documents have postings for it alone.
    pub(super) async fn change(&self, changes: Changes) -> Result<()> {
        refuse(changes.touch == Some(true), "`touch`")?;
        for _ in 0..ATTEMPTS {
            let (text, listed, held) = self.read().await?;
            let settings = changed(changes.clone(), held)?;
            if self.catalogue.replace(&self.name, &text, &listed.with(&settings).to_text()).await? {
                self.set(settings);
                return Ok(());
            }
        }
        Err(self.keeps_changing())
    }
}

/// Returns the terms by which documents are compared, with another threshold if there is one.
pub(super) fn terms_of(settings: &Settings, threshold: Option<f64>) -> Terms {
    Terms::new(settings.verify, threshold.unwrap_or(settings.threshold), &settings.spec)
}

/// Returns `held` with these changes.
fn changed(changes: Changes, held: Settings) -> Result<Settings> {
    let (banding, asks_banding) = (held.banding, changes.banding.is_some());
    let settings = changes.applied_to(held).checked()?;
    refuse(asks_banding && settings.banding != banding, "changes of the banding")?;
    Ok(Settings { banding, ..settings })
}
