//! The collections that one request asks about a document. The document is signed once for each spec, and then looked
//! up in one collection after another. Each lookup sees the data that is durable when it begins, so later lookups can
//! see newer data than earlier ones.

use std::sync::Arc;

use bytes::Bytes;
use hapax_core::{ContentHash, Fingerprint, IllFormed};

use super::{
    CheckOptions, Collection, CollectionError, Elsewhere, JointVerdict, PrepareOptions, Prepared, Purpose, Result,
    TextSigner,
};
use crate::types::{CollectionName, Content, DocId, Extract, Keep, SignedText, Verdict};

/// The largest number of collections in addition to the collection of the path. Each collection costs a lookup, and the
/// lookups run one after another.
const OTHERS_MAX: usize = 15;

/// The collections that a request asks: the one in its path, and then others. Cloning is cheap.
#[derive(Clone)]
pub struct AskedCollections(Arc<Asked>);

struct Asked {
    /// The collection of the path is the first.
    collections: Vec<Collection>,
    /// For each collection, the index of the first one with the same spec.
    by_spec: Vec<usize>,
    /// For each collection, the index of the first one with the same spec that extracts the same text from pages.
    by_page: Vec<usize>,
    /// Whether the collection of the path stores shingles or texts.
    keeps: bool,
}

/// A raw text of any length that is signed for several collections while it arrives.
pub struct AskedTextSigner {
    asked: AskedCollections,
    /// One signer for each spec, with the index of its collection.
    signers: Vec<(usize, TextSigner)>,
}

impl AskedCollections {
    /// Parses a list of other collections to ask: names with commas between them. `own` is the collection of the path.
    pub fn names(listed: &str, own: &CollectionName) -> Result<Vec<CollectionName>> {
        let invalid = |detail: String| Err(CollectionError::Invalid { field: "collections", detail });
        if listed.is_empty() {
            return invalid("must name at least one other collection; leave it out to ask no other collection".into());
        }
        let (given, max) = (listed.split(',').count(), OTHERS_MAX);
        if given > max {
            return invalid(format!("names {given} collections; at most {max} are allowed"));
        }
        let mut names = Vec::with_capacity(given);
        for text in listed.split(',') {
            let name = match CollectionName::new(text) {
                Ok(name) => name,
                Err(error) => {
                    let entry: String = text.chars().take(CollectionName::BYTES_MAX).collect();
                    return invalid(format!(
                        "must be names with commas between them, but `{entry}` is not a name: {error}"
                    ));
                }
            };
            if name == *own {
                return invalid(format!("names `{name}`, which is always asked first; leave that name out"));
            }
            if names.contains(&name) {
                return invalid(format!("names `{name}` twice"));
            }
            names.push(name);
        }
        Ok(names)
    }

    /// Makes the list of collections. `own` is the collection of the path.
    pub fn new(own: Collection, others: Vec<Collection>) -> Self {
        let collections: Vec<Collection> = std::iter::once(own).chain(others).collect();
        let settings: Vec<_> = collections.iter().map(Collection::settings).collect();
        let keeps = settings[0].keep != Keep::Signature;
        let pages: Vec<(Fingerprint, Extract)> =
            settings.iter().map(|settings| (settings.spec.fingerprint(), settings.extract)).collect();
        let specs: Vec<Fingerprint> = pages.iter().map(|(spec, _)| *spec).collect();
        Self(Arc::new(Asked { by_spec: firsts(&specs), by_page: firsts(&pages), collections, keeps }))
    }

    /// Returns the collection of the path.
    pub fn own(&self) -> &Collection {
        &self.0.collections[0]
    }

    /// Returns the other collections, in the order of the request.
    pub fn others(&self) -> &[Collection] {
        &self.0.collections[1..]
    }

    /// Whether a lookup in any of these collections compares shingles.
    pub fn compares_shingles(&self) -> bool {
        self.0.collections.iter().any(Collection::compares_shingles)
    }

    /// Returns the size of the copy of a content that is in memory while the content is prepared, in bytes. A copy is
    /// made only if the content is signed for several specs, one after another.
    pub fn copied_bytes(&self, content: &Content) -> usize {
        if self.leaders(self.like(content)).len() > 1 { content.bytes() } else { 0 }
    }

    /// Returns the largest size that the shingles of a text take in memory, for all specs together.
    pub fn shingle_bytes(&self, purpose: Purpose, text_bytes: usize) -> usize {
        let of = |at: usize, collection: &Collection| {
            let purpose = if at == 0 { purpose } else { Purpose::Check };
            collection.shingle_bytes(purpose, text_bytes)
        };
        let like = &self.0.by_page;
        let members = |leader: usize| (leader..like.len()).filter(move |&member| like[member] == leader);
        let most = |leader| members(leader).map(|member| of(member, &self.0.collections[member])).max().unwrap_or(0);
        self.leaders(like).into_iter().map(most).sum()
    }

    /// Prepares a document for all collections: with these options for the collection of the path, and for a lookup in
    /// the others. Fails if one of the collections cannot take the content.
    pub async fn prepare(&self, content: Content, options: PrepareOptions) -> Result<Vec<Prepared>> {
        if let Content::Signature { bytes, fingerprint, text } = content {
            return self.given(bytes, fingerprint, text, options).await;
        }
        let like = self.like(&content);
        let leaders = self.leaders(like);
        let mut signed = Vec::with_capacity(leaders.len());
        let mut content = Some(content);
        for (at, &leader) in leaders.iter().enumerate() {
            let last = at + 1 == leaders.len();
            let content = if last { content.take() } else { content.clone() };
            let content = content.expect("only the last one takes it");
            let options = PrepareOptions { purpose: self.purpose(like, leader, options.purpose), ..options };
            signed.push((leader, self.0.collections[leader].prepare_with(content, options).await?));
        }
        let mut prepared = self.handed_out(like, signed);
        if options.purpose == Purpose::Insert && !self.0.keeps {
            // The shingles were only needed for the lookups in the other collections.
            let own = prepared.remove(0).without_shingles();
            prepared.insert(0, own);
        }
        Ok(prepared)
    }

    /// Takes a given signature for each collection. Each collection checks whether the signature fits.
    async fn given(
        &self,
        bytes: Vec<u8>,
        fingerprint: Option<Fingerprint>,
        text: Option<SignedText>,
        options: PrepareOptions,
    ) -> Result<Vec<Prepared>> {
        let mut prepared = Vec::with_capacity(self.0.collections.len());
        // A signature without a fingerprint counts as made with the spec of the collection of the path. So collections
        // with another spec refuse it.
        let spec = self.own().settings().spec.fingerprint();
        for (at, collection) in self.0.collections.iter().enumerate() {
            let (purpose, fingerprint) = match at {
                0 => (options.purpose, fingerprint),
                _ => (Purpose::Check, fingerprint.or(Some(spec))),
            };
            let content = Content::Signature { bytes: bytes.clone(), fingerprint, text };
            prepared.push(collection.prepare_with(content, PrepareOptions { purpose, ..options }).await?);
        }
        Ok(prepared)
    }

    /// Begins a text that arrives in pieces, to look it up.
    pub fn text_signer(&self, ill_formed: IllFormed, options: PrepareOptions) -> Result<AskedTextSigner> {
        let like = &self.0.by_spec;
        let signer = |leader: usize| {
            let options = PrepareOptions { purpose: self.purpose(like, leader, options.purpose), ..options };
            Ok((leader, self.0.collections[leader].text_signer(ill_formed, options)?))
        };
        let signers = self.leaders(like).into_iter().map(signer).collect::<Result<_>>()?;
        Ok(AskedTextSigner { asked: self.clone(), signers })
    }

    /// Looks a document up in all collections. The answer has at most `bytes_max` bytes. `id` is the document's id in
    /// the collection of the path. In the other collections, the document has no id. `said` receives each verdict, with
    /// the index of its collection and the hash of the content. Fails if one of the lookups fails.
    pub async fn check(
        &self,
        mut id: Option<DocId>,
        prepared: Vec<Prepared>,
        options: CheckOptions,
        bytes_max: usize,
        said: impl Fn(usize, &Verdict, Option<ContentHash>) + Send,
    ) -> Result<JointVerdict> {
        let mut all: Option<JointVerdict> = None;
        for (at, (collection, prepared)) in self.0.collections.iter().zip(prepared).enumerate() {
            give_way(at).await;
            let content = prepared.content();
            let verdict = collection.check_within(id.take(), prepared, options.clone(), bytes_max).await?;
            said(at, &verdict, content);
            match &mut all {
                None => all = Some(JointVerdict::begin(collection.name(), verdict)),
                Some(all) => all.join(collection.name(), verdict, options.limit),
            }
            // This is done after each lookup, so that no more than two answers are in memory.
            all.iter_mut().for_each(|all| all.fit(bytes_max));
        }
        Ok(all.expect("the collection of the path is always asked"))
    }

    /// Looks a document up in the other collections, after the decision in the collection of the path. `prepared` has
    /// the document for each of the other collections. This part of the answer has at most `bytes_max` bytes. If a
    /// lookup fails, its error becomes part of the answer, because the decision has already been made.
    pub async fn elsewhere(
        &self,
        prepared: Vec<Prepared>,
        options: CheckOptions,
        bytes_max: usize,
        said: impl Fn(usize, &Verdict, Option<ContentHash>) + Send,
    ) -> Elsewhere {
        let mut elsewhere = Elsewhere::default();
        for (at, (collection, prepared)) in self.others().iter().zip(prepared).enumerate() {
            give_way(at).await;
            let content = prepared.content();
            let verdict = collection.check_within(None, prepared, options.clone(), bytes_max).await;
            if let Ok(verdict) = &verdict {
                said(at, verdict, content);
            }
            elsewhere.add(collection.name(), verdict, options.limit);
            elsewhere.fit(bytes_max);
        }
        elsewhere
    }

    /// Adds the opinions of the other collections to the verdict on an insertion.
    pub fn inserted(&self, verdict: Verdict, elsewhere: Elsewhere) -> JointVerdict {
        JointVerdict::inserted(self.own().name(), verdict, elsewhere)
    }

    /// Returns, for each collection, the index of the first collection in which the content has the same signature.
    fn like(&self, content: &Content) -> &[usize] {
        if let Content::Html(_) = content { &self.0.by_page } else { &self.0.by_spec }
    }

    /// Returns the indexes of the collections that sign the content: the first one of each group with equal signatures.
    fn leaders(&self, like: &[usize]) -> Vec<usize> {
        (0..like.len()).filter(|&at| like[at] == at).collect()
    }

    /// Returns the purpose to sign with. Signing for this purpose makes the data that all collections with the same
    /// signature need.
    fn purpose(&self, like: &[usize], leader: usize, own: Purpose) -> Purpose {
        let purpose = if leader == 0 { own } else { Purpose::Check };
        let members = self.0.collections.iter().zip(like).filter(|(_, like)| **like == leader);
        let compare = members.map(|(collection, _)| collection).any(Collection::compares_shingles);
        match purpose {
            Purpose::Insert if self.0.keeps => purpose,
            Purpose::Insert | Purpose::Check if compare => Purpose::Compare,
            _ => purpose,
        }
    }

    /// Gives each collection its document.
    fn handed_out(&self, like: &[usize], signed: Vec<(usize, Prepared)>) -> Vec<Prepared> {
        let copy_of = |leader: usize| {
            let found = signed.iter().find(|(at, _)| *at == leader);
            found.expect("each leader has signed").1.for_lookup()
        };
        let mut prepared: Vec<Prepared> = like[1..].iter().map(|&leader| copy_of(leader)).collect();
        let own = signed.into_iter().next().expect("the collection of the path has signed").1;
        prepared.insert(0, own);
        prepared
    }
}

impl AskedTextSigner {
    /// Signs the next piece for each spec.
    pub async fn push(mut self, piece: Bytes) -> Result<Self> {
        let mut signers = Vec::with_capacity(self.signers.len());
        for (leader, signer) in self.signers {
            signers.push((leader, signer.push(piece.clone()).await?));
        }
        self.signers = signers;
        Ok(self)
    }

    /// Signs the last piece, which may be empty, and returns the document for each collection.
    pub async fn finish(self, piece: Bytes) -> Result<Vec<Prepared>> {
        let mut signed = Vec::with_capacity(self.signers.len());
        for (leader, signer) in self.signers {
            signed.push((leader, signer.finish(piece.clone()).await?));
        }
        Ok(self.asked.handed_out(&self.asked.0.by_spec, signed))
    }
}

/// Lets other tasks of the thread run between two lookups, because a lookup can end without any wait.
async fn give_way(lookups_before: usize) {
    if lookups_before > 0 {
        tokio::task::yield_now().await;
    }
}

/// Returns, for each element, the index of the first element that is equal to it.
fn firsts<T: PartialEq>(elements: &[T]) -> Vec<usize> {
    let first = |element: &T| elements.iter().position(|other| other == element);
    elements.iter().map(|element| first(element).expect("it equals itself")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_each_name_once_and_not_that_of_the_path() {
        let own = CollectionName::default_collection();
        let of = |listed: &str| AskedCollections::names(listed, &own);
        let names: Vec<String> = of("b,a-1").unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["b", "a-1"]);
        for (listed, part) in [
            ("", "at least one"),
            ("a,,b", "`` is not a name"),
            ("a, b", "` b` is not a name"),
            ("a,default", "names `default`, which is always asked first"),
            ("a,b,a", "names `a` twice"),
            ("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", "names 16 collections; at most 15 are allowed"),
        ] {
            let error = of(listed).unwrap_err().to_string();
            assert!(error.contains(part), "{listed}: {error}");
        }
        assert!(of(&"x".repeat(10_000)).unwrap_err().to_string().len() < 300);
    }

    #[test]
    fn equal_elements_have_the_same_first() {
        assert_eq!(firsts(&["a", "b", "a", "c", "b"]), [0, 1, 0, 3, 1]);
    }
}
