"""pyhapax.client with a real server: every operation, problems, keys and TLS."""

import asyncio
import inspect
import pickle
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from extra import client_extra
from served import BINARY, Served, needs_server

import pyhapax

client = client_extra()
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytestmark = needs_server

TEXT = (
    "The lighthouse keeper writes down every ship that passes, and after some years he knows which of them come back."
)
NEAR = f"{TEXT} Only he."
PAGE = f"<title>Ships</title><p>{TEXT}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with Served(folder, HAPAX__BACKUP__DIR=str(folder / "backups")) as server:
        yield server


@pytest.fixture(scope="module")
def owned(tmp_path_factory):
    """A server with keys and an audit log, and the key of its owner."""
    folder = tmp_path_factory.mktemp("owned")
    key = make_key(folder, "owner", "admin,insert,keys")
    with Served(folder, HAPAX__AUTH__KEYS_FILE="keys.toml", HAPAX__AUDIT__DIR="audit") as server:
        yield server, key


class Blocking:
    """Calls the methods of Client."""

    def __init__(self, url, **settings):
        self.client = client.Client(url, **settings)

    def call(self, method, *arguments, **named):
        answer = getattr(self.client, method)(*arguments, **named)
        return list(answer) if method == "bulk" else answer

    def close(self):
        self.client.close()


class Asynchronous:
    """Calls the methods of AsyncClient, in one event loop."""

    def __init__(self, url, **settings):
        self.runner = asyncio.Runner()
        self.client = client.AsyncClient(url, **settings)

    def call(self, method, *arguments, **named):
        async def ask():
            answer = getattr(self.client, method)(*arguments, **named)
            return [each async for each in answer] if method == "bulk" else await answer

        return self.runner.run(ask())

    def close(self):
        self.runner.run(self.client.aclose())
        self.runner.close()


class Recorder:
    def __init__(self, inner):
        self.inner, self.called = inner, set()

    def __getattr__(self, method):
        def call(*arguments, **named):
            self.called.add(method)
            return self.inner.call(method, *arguments, **named)

        return call

    def until(self, method, holds, *arguments):
        end = time.monotonic() + 30
        while not holds(answer := getattr(self, method)(*arguments)):
            assert time.monotonic() < end
            time.sleep(0.02)
        return answer


@pytest.mark.parametrize("kind", [Blocking, Asynchronous])
def test_every_operation_is_answered(server, owned, kind):
    inner, inner_of_owner = kind(server.url), kind(owned[0].url, key=owned[1])
    made, made_by_owner = Recorder(inner), Recorder(inner_of_owner)
    name = f"every-{kind.__name__.lower()}"
    try:
        about_documents(made, name)
        about_collections(made, name)
        about_the_server(made, name)
        about_keys(made_by_owner, name)
    finally:
        inner.close()
        inner_of_owner.close()
    methods = {each for each, value in vars(client.Client).items() if inspect.isfunction(value) and each[0] != "_"}
    assert made.called | made_by_owner.called == methods - {"close"}


def about_documents(made, name):
    assert made.create_collection(name, keep="text", threshold=0.7, banding={"bands": 16, "rows": 8}).keep == "text"
    first = made.insert_document("a", TEXT, collection=name, metadata={"n": 1}, labels={"site": "x"}, label=["crawl:1"])
    assert (first.verdict, first.outcome, first.stored, first.is_duplicate) == ("unique", "inserted", True, False)
    again = made.check_document(NEAR, collection=name, with_="metadata", scope="site:x", explain=True, limit=3)
    assert (again.verdict, again.duplicate_of, again.matches[0].metadata) == ("near_duplicate", "a", {"n": 1})
    assert again.explanation.lookup.bands == 16
    assert again.matches[0].first_seen.tzinfo is not None
    assert made.check_html(PAGE.encode("utf-16"), collection=name).page.title == "Ships"
    assert made.check_html(PAGE, collection=name, id="b").duplicate_of == "a"
    assert made.insert_html("b", PAGE, collection=name, on_duplicate="link", page_metadata=True).outcome == "linked"
    assert made.read_documents(id="a", with_="text", collection=name).text.startswith("the lighthouse")
    page = made.read_documents(collection=name, limit=1, label=["site:x", "crawl:1"])
    assert [each.labels for each in page.documents] == [{"site": "x", "crawl": "1"}]
    cursor = made.read_documents(collection=name, limit=1).next_cursor
    assert made.read_documents(collection=name, limit=1, cursor=cursor).documents[0].id == "b"
    found = made.get_documents(["a", "no"], collection=name)
    assert (found.documents[0].id, found.missing) == ("a", ["no"])
    assert [each.id for each in made.read_clusters(collection=name, id="a").members] == ["a", "b"]
    largest = made.list_largest_clusters(collection=name)
    assert [(each.representative, each.documents) for each in largest.clusters] == [("a", 2)]
    batch = made.batch("check", [{"text": TEXT}, {"id": "x"}], collection=name)
    assert batch.results[0].verdict == "exact_duplicate"
    assert (batch.results[1].id, batch.results[1].error.code, batch.summary.errors) == ("x", "invalid_value", 1)
    assert made.batch("delete", [{"id": "no"}], collection=name).results == [client.DeletedDocument(id="no", deleted=0)]
    copies = ({"id": f"c{row}", "text": f"{row} {TEXT}"} for row in range(3))
    answers = made.bulk("insert", copies, collection=name, on_duplicate="store")
    assert [each.id for each in answers] == ["c0", "c1", "c2"]
    listed = made.dedup([{"id": "a", "text": TEXT}, {"text": ""}, {"id": "b", "text": NEAR}], keep="first")
    assert [(each.id, [repeat.id for repeat in each.duplicates]) for each in listed.kept] == [("a", ["b"])]
    assert (listed.summary.documents, [each.index for each in listed.empty]) == (3, [1])
    results = [{"id": "a", "text": TEXT, "score": 1.5}, {"id": "b", "text": NEAR, "score": 1.2}]
    assert [each.id for each in made.dedup(results, extra="ignore").kept] == ["a"]
    assert made.dedup(results).summary.failed == 2
    assert made.compare({"id": "a"}, {"text": NEAR}, collection=name).estimate.similarity > 0.7
    passages = made.compare({"text": TEXT}, {"text": NEAR}, collection=name, with_="passages").passages
    assert (passages.a.text, passages.a.shared[0][0]) == (TEXT, 0)
    items = name + "-items"
    assert made.create_collection(items, index="containment", shingle="word8").index == "containment"
    assert made.insert_document("q", TEXT, collection=items).verdict == "unique"
    found = made.find_overlaps("before " + TEXT, collection=items, min_containment=0.5, limit=1)
    assert (found.overlaps[0].id, found.overlaps[0].containment, found.complete) == ("q", 1.0, True)
    made.drop_collection(items, confirm=items)
    signer = pyhapax.Signer()
    signature = signer.sign(TEXT)
    signed = made.sign(TEXT, collection=name, ranks=True)
    assert (signed.fingerprint, signed.shingles) == (signer.fingerprint, signature.shingles)
    by_signature = made.check_document(signature=signature, fingerprint=signature.fingerprint, collection=name)
    assert by_signature.duplicate_of == "a"
    assert made.check_document(set=["one", 2, "three"], collection=name).verdict == "unique"
    assert made.extract(PAGE, collection=name, extract="visible").title == "Ships"


def about_collections(made, name):
    assert name in [each.name for each in made.list_collections().collections]
    assert made.update_collection(name, threshold=0.75).threshold == 0.75
    assert made.describe_collection(name).created.year > 2000
    assert made.list_buckets(collection=name, limit=2).buckets[0].documents >= 2
    assert {each.name for each in made.list_labels(collection=name).labels} == {"site", "crawl"}
    assert made.read_statistics(collection=name, name="site").all.documents >= 2
    assert made.set_golden_set([{"a": TEXT, "b": NEAR, "duplicate": True}], collection=name).pairs == 1
    assert made.evaluate_golden_set(collection=name).by_similarity[0].from_ >= 0
    assert made.delete_golden_set(collection=name).pairs == 0
    made.create_collection(f"{name}-2", keep="text", threshold=0.75, banding={"bands": 16, "rows": 8})
    merge = made.merge_collection(name, collection=f"{name}-2", on_duplicate="store")
    assert (merge.kind, merge.from_) == ("merge", name)
    assert made.until("read_job", lambda job: job.state != "running", merge.job).state == "done"
    assert made.stop_job(merge.job).state == "done"
    assert {each.id for each in made.read_reports(merge.job).reports} >= {"a", "c1"}
    assert [each.job for each in made.list_jobs(collection=f"{name}-2", state="ended").jobs] == [merge.job]
    assert made.delete_document(id="a", collection=name).deleted == 1
    assert made.delete_documents(["c0", "a"], collection=name).deleted == 1
    assert made.delete_document(label="site:x", collection=f"{name}-2").kind == "delete_label"
    assert made.drop_collection(f"{name}-2", confirm=f"{name}-2").dropped == f"{name}-2"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "signatures.parquet"
        table = pa.table(pyhapax.Signer().sign_batch([TEXT])).append_column("id", pa.array(["a"]))
        pq.write_table(table, file)
        loaded = made.load_collection(file, collection=f"{name}-2")
    assert (loaded.documents, loaded.collection.name) == (1, f"{name}-2")
    assert made.insert_document(id="a", text=TEXT, collection=f"{name}-2").outcome == "unchanged"
    assert made.drop_collection(f"{name}-2", confirm=f"{name}-2").dropped == f"{name}-2"


def about_the_server(made, name):
    assert made.start_backup(name=name).name == name
    assert made.until("read_backups", lambda found: found.latest.state != "running").latest.state == "done"
    assert made.cancel_backup().cancelled == 0
    assert made.tune(threshold=0.7, sketch="fss").candidates_at.percent_99 > 0
    assert made.tune(banding={"bands": 16, "rows": 8}).banding.bands == 16
    assert "keys" in made.read_access().scopes
    assert made.version().name == "hapax"
    assert made.livez().status == "alive"
    assert made.readyz().status == "ready"
    assert "hapax_" in made.metrics()
    assert made.openapi().startswith("openapi:")


def about_keys(made, name):
    access = made.read_access()
    assert (access.required, access.key.name) == (True, "owner")
    added = made.add_key(name, ["check"], expires="90d", limits={"requests_per_second": 9})
    assert added.text.startswith("hapax_")
    assert added.text not in repr(added)
    assert {"owner", name} <= {each.name for each in made.list_keys().keys}
    made.insert_document(name, f"{name} {TEXT}")
    made.until("search_audit_log", lambda found: any(each.id == name for each in found.decisions))
    assert made.search_audit_log(id=name, op="insert", limit=1).decisions[0].verdict is not None
    assert made.revoke_key(added.id).revoked == 1
    with pytest.raises(client.Conflict):
        made.revoke_key(access.key.id)


def test_problems_are_exceptions_of_their_status(server):
    with client.Client(server.url) as made:
        with pytest.raises(client.NotFound) as missing:
            made.read_documents(id="no such document")
        assert (missing.value.status, missing.value.code) == (404, "document_not_found")
        assert missing.value.request_id
        with pytest.raises(client.InvalidValue, match="^422 invalid_value: threshold: ") as invalid:
            made.check_document("x", threshold=2)
        assert [each.field for each in invalid.value.errors] == ["threshold"]
        made.insert_document("taken", TEXT)
        with pytest.raises(client.Conflict) as conflict:
            made.insert_document("taken", "some quite different words under the same id")
        assert pickle.loads(pickle.dumps(conflict.value)).code == "id_conflict"


def test_text_that_is_not_unicode_is_refused_or_replaced_by_the_server(server):
    with client.Client(server.url) as made:
        with pytest.raises(client.InvalidValue):
            made.check_document("a lone \ud800 surrogate")
        assert made.check_document("a lone \ud800 surrogate", invalid="replace").verdict == "unique"


def test_a_long_text_is_checked_and_signed(server):
    with client.Client(server.url) as made:
        long = "a text of which the words are repeated, ü; " * 400_000
        signed = made.sign(long)
        assert (signed.shingles, signed.fingerprint) == (
            pyhapax.Signer().sign(long).shingles,
            pyhapax.Signer().fingerprint,
        )
        assert made.check_document(long, id="long", limit=1).id == "long"
        with pytest.raises(client.TooLarge):
            made.check_document(long, metadata={})


def test_many_threads_and_many_tasks_share_a_client(server):
    from concurrent.futures import ThreadPoolExecutor

    with client.Client(server.url) as made, ThreadPoolExecutor(8) as pool:
        kinds = pool.map(lambda row: made.check_document(f"{row} {TEXT}").outcome, range(100))
        assert set(kinds) == {"checked"}

    async def ask():
        async with client.AsyncClient(server.url) as made:
            return await asyncio.gather(*(made.check_document(f"{row} {TEXT}") for row in range(100)))

    assert {each.outcome for each in asyncio.run(ask())} == {"checked"}


def make_key(folder, name, scopes):
    made = subprocess.run(
        [BINARY, "keys", "add", name, "--keys-file", "keys.toml", "--scopes", scopes],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return made.stdout.strip()


def test_keys_are_taken_in_three_ways_and_told_to_nobody(tmp_path, monkeypatch):
    secret = make_key(tmp_path, "reader", "check")
    (tmp_path / "key").write_text(secret + "\n")
    (tmp_path / "key").chmod(0o600)
    monkeypatch.setenv("TEST_HAPAX_KEY", secret)
    with Served(tmp_path, HAPAX__AUTH__KEYS_FILE="keys.toml") as server:
        for given in [{"key": secret}, {"key_file": tmp_path / "key"}, {"key_env": "TEST_HAPAX_KEY"}]:
            with client.Client(server.url, **given) as made:
                assert made.check_document(TEXT).verdict == "unique"
                with pytest.raises(client.Forbidden) as refused:
                    made.insert_document("a", TEXT)
                assert secret not in str(refused.value) + repr(refused.value) + repr(made) + repr(vars(made))
        with client.Client(server.url) as made, pytest.raises(client.Unauthorized):
            made.check_document(TEXT)
        with client.Client(server.url, key="wrong", retries=0) as made, pytest.raises(client.Unauthorized):
            list(made.bulk("check", [{"text": TEXT}]))


def test_a_certificate_of_an_authority_of_ones_own_is_checked(tmp_path):
    import trustme

    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    other.cert_pem.write_to_path(tmp_path / "other.pem")
    made = authority.issue_cert("127.0.0.1")
    made.private_key_pem.write_to_path(tmp_path / "tls.key")
    for each in made.cert_chain_pems:
        each.write_to_path(tmp_path / "tls.crt", append=True)
    with Served(tmp_path, HAPAX__TLS__CERT_FILE="tls.crt", HAPAX__TLS__KEY_FILE="tls.key") as server:
        assert server.url.startswith("https://")
        with client.Client(server.url, ca_file=tmp_path / "ca.pem") as trusting:
            assert trusting.version().name == "hapax"
            documents = [{"text": f"{row} {TEXT}"} for row in range(2000)]
            assert len(list(trusting.bulk("check", documents))) == 2000
        started = time.monotonic()
        for given in [{}, {"ca_file": tmp_path / "other.pem"}]:
            with (
                client.Client(server.url, **given) as refusing,
                pytest.raises(client.TransportError, match="(?i)certificate"),
            ):
                refusing.version()
        # The client does not try again, because another attempt would fail too.
        assert time.monotonic() - started < 5
