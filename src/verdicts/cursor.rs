//! Pages of documents, and cursors, which say where the next page begins. Clients see a cursor as an opaque text. Only
//! the collection that made the page reads it, as a place in the order of documents or clusters.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use smallvec::SmallVec;

use super::error::{CollectionError, Result};
use crate::types::{ClusterPlace, ClusterRank, Document, Seq};

/// The first byte of a cursor of clusters in the order of their sizes. It makes such a cursor longer than all others.
const BY_SIZE: u8 = 1;

/// The end of a page, after which the next page begins. It is opaque: only the collection that made the page can read
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(SmallVec<[u8; 16]>);

/// A page of documents, in order of `seq`.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentsPage {
    pub documents: Vec<Document>,
    /// The cursor of the next page, if there may be more documents.
    pub next: Option<Cursor>,
}

impl Cursor {
    /// Parses the text of a cursor.
    pub fn parse(text: &str) -> Result<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| foreign())?;
        Ok(Self(SmallVec::from_slice(&bytes)))
    }

    /// Returns the last document of a page of documents.
    pub(crate) fn document(&self) -> Result<Seq> {
        let bytes = <[u8; 8]>::try_from(&*self.0).map_err(|_| foreign())?;
        Ok(Seq(u64::from_be_bytes(bytes)))
    }

    /// Returns the last place of a page of clusters.
    pub(crate) fn cluster(&self) -> Result<ClusterPlace> {
        let both = <[u8; 16]>::try_from(&*self.0).map(u128::from_be_bytes).map_err(|_| foreign())?;
        Ok(ClusterPlace { cluster: Seq((both >> 64) as u64), seq: Seq(both as u64) })
    }

    /// Returns the last cluster of a page of clusters in the order of their sizes.
    pub(crate) fn rank(&self) -> Result<ClusterRank> {
        let both = match &*self.0 {
            [BY_SIZE, both @ ..] => <[u8; 16]>::try_from(both).map(u128::from_be_bytes).map_err(|_| foreign())?,
            _ => return Err(foreign()),
        };
        Ok(ClusterRank { joined: (both >> 64) as u64, cluster: Seq(both as u64) })
    }
}

fn foreign() -> CollectionError {
    CollectionError::Invalid { field: "cursor", detail: "is not a cursor from a page of this kind".into() }
}

impl From<Seq> for Cursor {
    fn from(seq: Seq) -> Self {
        Self(SmallVec::from_slice(&seq.0.to_be_bytes()))
    }
}

impl From<ClusterPlace> for Cursor {
    fn from(place: ClusterPlace) -> Self {
        let [cluster, seq] = [place.cluster, place.seq].map(|seq| seq.0.to_be_bytes());
        Self(cluster.into_iter().chain(seq).collect())
    }
}

impl From<ClusterRank> for Cursor {
    fn from(rank: ClusterRank) -> Self {
        let [joined, cluster] = [rank.joined, rank.cluster.0].map(u64::to_be_bytes);
        Self([BY_SIZE].into_iter().chain(joined).chain(cluster).collect())
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(&self.0))
    }
}

impl DocumentsPage {
    /// Makes a page of documents in order of `seq`. `more` says whether more documents may follow.
    pub(crate) fn new(documents: Vec<Document>, more: bool) -> Self {
        let next = documents.last().filter(|_| more).map(|last| Cursor::from(last.seq));
        Self { documents, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back() {
        for seq in [0, 1, u64::MAX] {
            let text = Cursor::from(Seq(seq)).to_string();
            assert_eq!(Cursor::parse(&text).unwrap().document().unwrap(), Seq(seq));
        }
        for (cluster, seq) in [(0, 0), (7, u64::MAX), (u64::MAX, 1)] {
            let place = ClusterPlace { cluster: Seq(cluster), seq: Seq(seq) };
            let text = Cursor::from(place).to_string();
            assert_eq!(Cursor::parse(&text).unwrap().cluster().unwrap(), place);
            let rank = ClusterRank { joined: seq, cluster: Seq(cluster) };
            let text = Cursor::from(rank).to_string();
            assert_eq!(Cursor::parse(&text).unwrap().rank().unwrap(), rank);
        }
    }

    #[test]
    fn their_texts_stay_what_they_are() {
        assert_eq!(Cursor::from(Seq(258)).to_string(), "AAAAAAAAAQI");
        let place = ClusterPlace { cluster: Seq(1), seq: Seq(258) };
        assert_eq!(Cursor::from(place).to_string(), "AAAAAAAAAAEAAAAAAAABAg");
    }

    #[test]
    fn a_text_that_no_page_gave_is_refused() {
        let refused = |error: CollectionError| {
            assert!(matches!(error, CollectionError::Invalid { field: "cursor", .. }), "{error}");
        };
        for text in ["!!!!!!!!!!!", "!!!!!!!!!!!!!!!!!!!!!!"] {
            refused(Cursor::parse(text).unwrap_err());
        }
        for text in ["", "AAAA", "AAAAAAAAAAAAAAAA"] {
            let cursor = Cursor::parse(text).unwrap();
            refused(cursor.document().unwrap_err());
            refused(cursor.cluster().unwrap_err());
            refused(cursor.rank().unwrap_err());
        }
        refused(Cursor::from(Seq(1)).cluster().unwrap_err());
        refused(Cursor::from(ClusterPlace::default()).document().unwrap_err());
    }
}
