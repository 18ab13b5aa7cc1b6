//! The documents of a list -> those that are kept, each with the documents that repeat it. Nothing is stored.

use crate::corpus::{CorpusSigner, Decided, Decision, Deduplicator, Matching, SearchLimits, SignedDocument};
use crate::http::caller::Caller;
use crate::http::dto::document::{DocumentInput, Extra, Invalid, of_fields};
use crate::http::dto::list::{
    FailedBody, KeptBody, ListBody, ListInput, ListOrder, ListSummary, ListedBody, RepeatBody,
};
use crate::http::error::Problem;
use crate::types::DocId;

/// A list whose documents have not been signed yet.
pub(in crate::http) struct List {
    input: ListInput,
    signer: CorpusSigner,
    caller: Caller,
    invalid: Invalid,
    extra: Extra,
    limits: SearchLimits,
    /// The id of the request, for problems.
    request_id: String,
}

/// A document of the list that was signed.
struct Listed {
    index: usize,
    id: Option<DocId>,
    signed: SignedDocument,
}

impl List {
    pub(in crate::http) fn new(
        input: ListInput,
        signer: CorpusSigner,
        (caller, request_id): (Caller, String),
        (invalid, extra): (Invalid, Extra),
        limits: SearchLimits,
    ) -> Self {
        Self { input, signer, caller, invalid, extra, limits, request_id }
    }

    /// Decides on all documents, on this thread.
    pub(in crate::http) fn deduplicate(self) -> Result<ListBody, Problem> {
        let mut body = ListBody::default();
        let mut documents = self.signed(&mut body);
        if self.input.keep == ListOrder::Longest {
            documents.sort_by_key(|document| std::cmp::Reverse(document.signed.bytes()));
        }
        let mut deduplicator = Deduplicator::new(self.signer, Matching::Verified, self.limits);
        let mut summary = ListSummary { documents: self.input.documents.len(), ..ListSummary::default() };
        for Listed { index, id, signed } in documents {
            let own = ListedBody::new(index, id.as_ref());
            let Decided { decision, unread } = deduplicator.decide(signed)?;
            match decision {
                Decision::Kept => body.kept.push(KeptBody { own, complete: unread == 0, duplicates: Vec::new() }),
                Decision::Empty => body.empty.push(own),
                Decision::Duplicate(duplicate) => {
                    summary.exact += usize::from(duplicate.same_content);
                    summary.near += usize::from(!duplicate.same_content);
                    body.kept[duplicate.of].duplicates.push(RepeatBody::new(own, &duplicate));
                }
            }
        }
        // If the longest are kept, the decisions have another order than the list.
        body.kept.sort_by_key(|kept| kept.own.index);
        body.kept.iter_mut().for_each(|kept| kept.duplicates.sort_by_key(|repeat| repeat.own.index));
        body.empty.sort_by_key(|own| own.index);
        let (kept, empty, failed) = (body.kept.len(), body.empty.len(), body.failed.len());
        body.summary = ListSummary { kept, empty, failed, ..summary };
        Ok(body)
    }

    /// Signs all documents that can be used. Adds the others to the body.
    fn signed(&self, body: &mut ListBody) -> Vec<Listed> {
        let mut documents = Vec::with_capacity(self.input.documents.len());
        for (index, json) in self.input.documents.iter().enumerate() {
            let text = std::str::from_utf8(json).expect("it is a part of a String");
            let parsed = of_fields(text, self.invalid, self.extra, &self.caller);
            let id = parsed.as_ref().ok().and_then(|parsed| parsed.id.clone());
            let signed = parsed.and_then(|DocumentInput { content, .. }| Ok(self.signer.sign(content)?));
            match signed {
                Ok(signed) => documents.push(Listed { index, id, signed }),
                Err(problem) => {
                    let own = ListedBody::new(index, id.as_ref());
                    body.failed.push(FailedBody { own, error: problem.into_body(&self.request_id) });
                }
            }
        }
        documents
    }
}
