"""The known answers of the core, through Python."""

import xxhash

import pyhapax


def digest(column_or_bytes):
    return xxhash.xxh3_64_hexdigest(bytes(column_or_bytes))


def hexes(numbers):
    return [f"{number:016x}" for number in numbers[:8]]


def test_every_vector_of_a_text_has_its_known_answer(vectors):
    compared = 0
    for case in vectors["cases"]:
        if "text" not in case:
            continue
        key = None if case["spec"].endswith("key=none") else vectors["secret"]
        signer = pyhapax.Signer(case["spec"], key=key)
        stages = case["stages"]
        assert signer.fingerprint == stages["fingerprint"]
        signature = signer.sign(case["text"])
        batch = signer.sign_batch([case["text"]])
        assert batch[0] == signature
        compared += 1
        if stages.get("empty"):
            assert signature is None
            assert signer.ranks(case["text"]) is None
            assert batch.outcome(0) == "empty"
            continue
        assert signature.shingles == stages["windows"]
        assert signature.content_hash.hex() == stages["content"]
        assert bytes(signature).hex().startswith(stages["signature_begins"])
        assert [len(signature), digest(signature)] == stages["signature_bytes_digest"]
        keys = signer.band_keys(signature, *stages["banding"])
        assert hexes(keys) == stages["band_keys"]
        packed = b"".join(key.to_bytes(8, "little") for key in keys)
        assert [len(keys), digest(packed)] == stages["band_keys_count_digest"]
        ranks = signer.ranks(case["text"])
        assert hexes(ranks.to_list()) == stages["ranks"]
        assert [len(ranks), digest(ranks)] == stages["ranks_count_digest"]
    assert compared >= 200
