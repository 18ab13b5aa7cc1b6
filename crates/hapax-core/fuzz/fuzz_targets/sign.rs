//! Text -> signature. The signature is the same with all instructions. It does not depend on where the text is cut, or
//! on whether the text is given as `str` or as bytes.

#![no_main]

use hapax_core::{IllFormed, NotUtf8, Pipeline, SignScratch, Signed};
use hapax_core_fuzz::Case;
use libfuzzer_sys::fuzz_target;

/// Signs the text in pieces, each with a new signer.
fn in_pieces(
    pipeline: &Pipeline,
    scratch: &mut SignScratch,
    case: &Case<'_>,
    ill_formed: IllFormed,
) -> Result<Option<Signed>, NotUtf8> {
    let _ = pipeline.signer(scratch);
    for piece in case.pieces() {
        pipeline.resume(scratch).push_bytes(piece, ill_formed)?;
    }
    pipeline.resume(scratch).finish_bytes(ill_formed)
}

fuzz_target!(|data: &[u8]| {
    let Some(case) = Case::new(data) else { return };
    let text = case.text();
    let mut expected: Option<(Option<Signed>, Vec<u64>)> = None;
    for pipeline in case.pipelines() {
        let mut scratch = SignScratch::default();
        let whole = pipeline.sign(&mut scratch, &text);
        let ranks = pipeline.ranks(&scratch).as_slice().to_owned();
        assert_eq!(in_pieces(&pipeline, &mut scratch, &case, IllFormed::Replace), Ok(whole.clone()));
        let refused = in_pieces(&pipeline, &mut scratch, &case, IllFormed::Refuse);
        match std::str::from_utf8(case.bytes) {
            Ok(_) => assert_eq!(refused, Ok(whole.clone())),
            Err(error) => assert_eq!(refused, Err(NotUtf8 { offset: error.valid_up_to() as u64 })),
        }
        let made = (whole, ranks);
        assert_eq!(*expected.get_or_insert_with(|| made.clone()), made);
    }
});
