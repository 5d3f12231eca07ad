"""Originals keep one contract in a directory and in an object store (a double of S3 by moto)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from obstore.store import S3Store

from app.core.errors import InvalidInput, OriginalsAway
from app.core.ids import content_sha256
from app.core.types import Library
from app.shared.originals import IN_USE_S, ObjectOriginals
from app.storage.files.durable import Steps
from app.storage.files.originals import Originals
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft

BODY = b"%PDF-1.7 the bytes of an upload" * 1000


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Serve a double of S3 on loopback."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def url(endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Make an empty bucket; return its address."""
    import boto3  # noqa: PLC0415  # slow to import

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    bucket = f"bucket-{content_sha256(str(tmp_path).encode())[:20]}"
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket=bucket)
    return f"s3://{bucket}/originals?endpoint={endpoint}"


Opened = Callable[[str], Originals]


@pytest.fixture(params=["directory", "object store"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Open the originals of one machine by its name."""
    if request.param == "directory":
        return lambda name: Originals(tmp_path / "shared", Steps())
    url = request.getfixturevalue("url")
    return lambda name: ObjectOriginals(tmp_path / name, Steps(), url, 1 << 30)


def test_what_is_stored_is_read_by_another_machine(opened: Opened, tmp_path: Path) -> None:
    sha256 = opened("one").store(BODY)
    other = opened("two")
    assert sha256 == content_sha256(BODY)
    assert other.exists(sha256)
    assert other.names() == {sha256}
    assert other.path(sha256).read_bytes() == BODY
    assert not other.damaged(sha256)
    file = tmp_path / "upload.pdf"
    file.write_bytes(b"from a file")
    assert other.path(other.store(file)).read_bytes() == b"from a file"


def test_the_same_bytes_are_kept_once_by_many_writers(opened: Opened) -> None:
    recorded: list[str] = []
    kept = opened("one")
    kept.before_keeping = recorded.extend
    with ThreadPoolExecutor(8) as pool:
        assert len({*pool.map(lambda _: kept.store(BODY), range(8))}) == 1
    assert kept.names() == {content_sha256(BODY)}
    before = len(recorded)
    kept.store(BODY)
    assert len(recorded) == before  # nothing new, so nothing to record


def test_deleted_bytes_are_gone_everywhere(opened: Opened) -> None:
    one, two = opened("one"), opened("two")
    sha256 = one.store(BODY)
    assert two.delete(sha256)
    assert not two.delete(sha256)
    assert not one.exists(sha256)
    assert one.damaged(sha256)
    assert one.names() == set()
    assert not one.delete("../etc/passwd")


def test_the_cache_keeps_to_its_bound(url: str, tmp_path: Path) -> None:
    kept = ObjectOriginals(tmp_path / "cache", Steps(), url, 2000)
    names = [kept.store(bytes([n]) * 1000) for n in range(4)]
    for n, name in enumerate(names):
        os.utime(kept.path(name), (n, n))  # long ago: no job is about to open it
    cached = [file.stem for file in (tmp_path / "cache").glob("*.bin")]
    assert names[3] in cached
    assert len(cached) <= 3  # the one fetched last comes on top of the bound until the next
    assert kept.path(names[0]).read_bytes() == bytes(1000)


def test_a_file_in_use_outlives_the_bound(url: str, tmp_path: Path) -> None:
    kept = ObjectOriginals(tmp_path / "cache", Steps(), url, 1)
    files = [kept.path(kept.store(bytes([n]) * 1000)) for n in range(3)]
    assert all(file.exists() for file in files)
    assert IN_USE_S > 0


def test_a_damaged_object_is_found(url: str, tmp_path: Path) -> None:
    kept = ObjectOriginals(tmp_path / "cache", Steps(), url, 1 << 20)
    sha256 = kept.store(BODY)
    bucket, _, rest = url.removeprefix("s3://").partition("/")
    prefix, _, endpoint = rest.partition("?endpoint=")
    store = S3Store(bucket, prefix=prefix, endpoint=endpoint, client_options={"allow_http": True})
    store.put(f"{sha256}.bin", b"other bytes")
    assert kept.damaged(sha256)


@pytest.mark.parametrize(
    "wrong", ["http://host/bucket", "s3://", "s3://b?endpoint=http://127.0.0.1:1"]
)
def test_a_wrong_address_or_a_silent_one_names_the_setting(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="ORIGINALS_URL"):
        ObjectOriginals(tmp_path, Steps(), wrong, 1)


def test_a_store_that_goes_away_says_so_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    import boto3  # noqa: PLC0415  # slow to import

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket="away")
    kept = ObjectOriginals(tmp_path, Steps(), f"s3://away?endpoint={endpoint}", 1 << 20)
    server.stop()
    with pytest.raises(OriginalsAway, match="away"):
        kept.store(BODY)
    again = ThreadedMotoServer(ip_address="127.0.0.1", port=port)
    again.start()
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket="away")
    assert kept.exists(kept.store(BODY))
    again.stop()


def test_a_library_lives_with_its_originals_in_the_store(url: str, tmp_path: Path) -> None:
    before = IndexOptions(data_dir=tmp_path / "data", chroma_dir=tmp_path / "data" / "chroma")
    with IndexStore(before, vector_store="off") as store:
        held = store.writer.store_original(BODY)
        store.writer.write([make_draft("a.pdf", "A text.", sha256=held, has_original=True)])
    moved = IndexOptions(data_dir=before.data_dir, chroma_dir=before.chroma_dir, originals_url=url)
    with IndexStore(moved, vector_store="off") as store:
        document = store.catalog.documents(Library.PAPERS)[0][0]
        assert store.catalog.original(Library.PAPERS, document.doc_id).read_bytes() == BODY
        assert store.originals.names() == {held}  # the start put it there
        assert not store.fsck.run(repair=False).faults
        assert store.backup(tmp_path / "backup").originals == 1
        store.writer.delete(Library.PAPERS, document.doc_id)
        assert store.originals.names() == set()


@pytest.mark.parametrize("shared", [False, True])
def test_a_start_takes_what_another_machine_deleted_out_of_the_cache(
    url: str, tmp_path: Path, shared: bool
) -> None:
    options = IndexOptions(tmp_path / "data", tmp_path / "data" / "chroma", originals_url=url)
    with IndexStore(options, vector_store="off") as store:
        one, names = (
            store.originals,
            [store.writer.store_original(text) for text in (BODY, b"Kept.")],
        )
        gone, kept = (one.path(name) for name in names)
        ObjectOriginals(tmp_path / "two", Steps(), url, 1 << 20).delete(names[0])
        replace(store.unlinks, shared=shared).unlink_at_start()
        assert not gone.exists()
        assert kept.exists() is shared  # no document has it, and it is old enough for one server
