//! Documents in their order -> the lists of each, for a search on shelves: one for each band key and each signature that
//! several documents have.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};

use super::documents::{FileNames, StoredDocuments};
use super::key_runs::{Entry, KeyRuns, Merged, SortedKeys};
use crate::cli::corpus::output::refuse_interrupted;
use crate::corpus::{CorpusSigner, Lists};

/// The lists of all documents.
pub(in crate::cli) struct SharedLists {
    /// The number of a document, its band, and its list, in ascending order.
    entries: Merged,
    next: Option<Entry>,
    /// The number of bands. It stands for the band of signatures.
    bands: u32,
}

impl SharedLists {
    /// `bytes_max`: the memory that this may take meanwhile.
    pub(in crate::cli) fn of(
        mut documents: StoredDocuments,
        (names, signer): (&FileNames, &CorpusSigner),
        (folder, bytes_max): (&Path, usize),
        stop: &AtomicBool,
    ) -> Result<Self> {
        let settings = signer.settings();
        let bands = settings.banding.bands();
        let mut keys = KeyRuns::create(folder, bands + 1, bytes_max)?;
        let mut number = 0;
        while let Some(document) = documents.next(names, signer)? {
            refuse_interrupted(stop)?;
            let signature = document.signed.signature().expect("it has tokens");
            let of_signature = hapax_core::Banding::key_of_rows(signature, bands);
            let of_bands = settings.banding.keys(signature, settings.spec.shape());
            keys.add(number, of_bands.chain([of_signature]).map(|key| key.0))?;
            number += 1;
        }
        let keys = keys.finish()?;
        let (mut lists, mut end) = (KeyRuns::create(folder, 1, bytes_max / 2)?, 0);
        for band in 0..=bands {
            refuse_interrupted(stop)?;
            add_lists(&keys, band, bytes_max / 2, &mut lists, &mut end)?;
        }
        drop(keys);
        let mut entries = lists.finish()?.merged(0, bytes_max / 2)?;
        Ok(Self { next: entries.next()?, entries, bands })
    }

    /// Returns the lists of a document. The numbers must ascend.
    pub(in crate::cli) fn of_document(&mut self, number: u32) -> Result<Lists> {
        let mut lists = Lists::default();
        while let Some([_, band, list]) = self.next.filter(|next| next[0] == number) {
            if band == self.bands {
                lists.of_signature = Some(list);
            } else {
                lists.of_bands.push((band, list));
            }
            self.next = self.entries.next()?;
        }
        Ok(lists)
    }
}

/// Makes a list for each key of a band that several documents have. `end`: the end of the last list.
fn add_lists(keys: &SortedKeys, band: u32, bytes_max: usize, lists: &mut KeyRuns, end: &mut u32) -> Result<()> {
    let mut entries = keys.merged(band as usize, bytes_max)?;
    let mut before: Option<Entry> = None;
    // The number of documents with the key of the entry before.
    let mut same = 1;
    while let Some(entry) = entries.next()? {
        match before {
            Some(first) if first[..2] == entry[..2] => {
                if same == 1 {
                    lists.add_entry([first[2], band, *end])?;
                }
                lists.add_entry([entry[2], band, *end])?;
                same += 1;
            }
            _ => {
                *end = after(*end, same)?;
                same = 1;
            }
        }
        before = Some(entry);
    }
    *end = after(*end, same)?;
    Ok(())
}

fn after(end: u32, documents: u32) -> Result<u32> {
    let bytes = if documents > 1 { documents + 1 } else { 0 };
    end.checked_add(bytes).context("too many documents share bands with each other; choose fewer bands")
}
