//! Hashes a document id to 64 bits. Memory holds this hash instead of the id. The hash is stored with the signature. If
//! the hash function changed, no stored id would be found again, so a test pins the output.

use xxhash_rust::xxh3::xxh3_64;

use crate::types::DocId;

/// Returns the fingerprint of an id. Two ids may have the same fingerprint, so for every match, compare the id with the
/// id in the record.
pub fn id_fingerprint(id: &DocId) -> u64 {
    xxh3_64(id.as_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_frozen() {
        // The values come from the reference implementation of XXH3.
        for (id, expected) in [
            ("a", 0xe6c6_32b6_1e96_4e1f),
            ("https://a.example/x", 0x107b_ef62_4e5d_b64f),
            ("αβγ 😀", 0xc1a7_c0ca_7440_7e26),
            (&*"x".repeat(300), 0xa5d1_b460_7dc8_3554),
        ] {
            assert_eq!(id_fingerprint(&DocId::new(id).unwrap()), expected, "{id}");
        }
    }
}
