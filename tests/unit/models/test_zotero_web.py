"""A library of zotero.org by a key: the same documents, new files alone, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import (
    Busy,
    InvalidInput,
    NotFound,
    ProviderBadResponse,
    ProviderTimeout,
    ProviderUnreachable,
)
from app.models.options import ZoteroOptions
from app.models.zotero import WEB, ZoteroClient, ZoteroRead, ZoteroWeb, open_zotero
from tests.fakes.http_double import Canned
from tests.fakes.zotero_double import WEB_KEY, ZoteroDouble, ZoteroWebDouble

PDF = b"%PDF-1.4 silt"
Open = Callable[..., ZoteroWeb]


@pytest.fixture
def double(tmp_path: Path) -> Iterator[ZoteroWebDouble]:
    with ZoteroWebDouble(tmp_path / "web") as running:
        yield running


@pytest.fixture
def opened(double: ZoteroWebDouble, tmp_path: Path) -> Open:
    def web(**given: Any) -> ZoteroWeb:
        into = tmp_path / "fetched"
        into.mkdir(exist_ok=True)
        library, key = given.pop("library", "users/475425"), given.pop("key", WEB_KEY)
        options = {"max_bytes": 2**20, "silence_s": 10.0, **given}
        return ZoteroWeb(double.url, library, key, into, **options)

    return web


def fill(double: ZoteroDouble) -> None:
    inner = double.collect("Floods", double.collect("Thesis"))
    paper = double.add(
        itemType="journalArticle",
        title="Rivers that carry silt",
        creators=[{"creatorType": "author", "firstName": "Ann", "lastName": "Baker"}],
        date="March 2021",
        DOI="10.1234/silt",
        tags=[{"tag": "river"}],
        collections=[inner],
    )
    file = double.attach(paper, "Baker 2021.pdf", PDF)
    double.annotate(file, 3, "Silt settles at 0.2 m/s.", "Check the table.")
    double.add(itemType="note", parentItem=paper, note="<p>Ask <b>Cole</b>.</p>")


def contents(read: ZoteroRead) -> dict[str, tuple[object, ...]]:
    return {
        one.source_key: (
            one.filename,
            one.labels,
            one.content if isinstance(one.content, bytes) else one.content.read_bytes(),
        )
        for one in read.documents
    }


def test_it_gives_the_same_documents_as_the_program(
    double: ZoteroWebDouble, opened: Open, tmp_path: Path
) -> None:
    fill(double)
    web = opened().read()
    with ZoteroDouble(tmp_path / "local") as program:
        fill(program)
        local = ZoteroClient(program.url).read()
    assert contents(web) == contents(local)
    assert len(web.documents) == 3
    assert web.version == str(double.version)
    assert double.keys_at_the_store == [], "the key goes to the API alone"
    assert {
        one.headers["Zotero-API-Version"] for one in double.asked if "store" not in one.path
    } == {"3"}


def test_an_unchanged_library_is_one_request(double: ZoteroWebDouble, opened: Open) -> None:
    fill(double)
    version = opened().read().version
    double.asked.clear()
    again = opened().read(since=version)
    assert (again.is_unchanged, again.documents, len(double.asked)) == (True, (), 1)
    double.add(itemType="book", title="Sand")
    assert not opened().read(since=version).is_unchanged


def test_files_that_are_known_are_not_fetched(double: ZoteroWebDouble, opened: Open) -> None:
    fill(double)
    told = []

    def is_known(key: str, labels: object, md5: str) -> bool:
        told.append((key, md5))
        return True

    read = opened().read(is_known=is_known)
    ((key, md5),) = told
    assert read.known == (key,)
    assert read.md5s == {key: md5}
    assert double.fetched == []


def test_more_than_a_page_is_read_in_pages_of_a_hundred(
    double: ZoteroWebDouble, opened: Open
) -> None:
    for number in range(230):
        double.add(itemType="book", title=f"Book {number}")
    assert len(opened().read().documents) == 230
    pages = [
        one.path for one in double.asked if "limit=100" in one.path and "/items?sort" in one.path
    ]
    assert [path.partition("start=")[2].partition("&")[0] for path in pages] == ["0", "100", "200"]


def test_a_group_has_its_own_addresses(double: ZoteroWebDouble, opened: Open) -> None:
    paper = double.add("groups/4711", itemType="book", title="Sand")
    file = double.attach(paper, "sand.pdf", PDF, place="groups/4711")
    web = opened(library="groups/4711")
    (document,) = web.read().documents
    assert document.source_key == f"zotero/groups/4711/items/{file}/file"
    assert document.labels.metadata["zotero"] == f"zotero://open-pdf/groups/4711/items/{file}"
    assert web.folder == "zotero.org:groups/4711"


def test_it_rests_as_long_as_it_is_asked_to(double: ZoteroWebDouble, opened: Open) -> None:
    fill(double)
    rests: list[float] = []
    double.queue(
        Canned(b"Rate limited", 429, "text/plain", {"Retry-After": "7"}),
        Canned(b"", 503, "text/plain", {"Backoff": "3"}),
        Canned(b"", 200, headers={"Last-Modified-Version": "9", "Backoff": "5"}),
    )
    assert len(opened(sleep=rests.append).read().documents) == 3
    assert rests == [7.0, 10.0, 5.0], "10 where it does not say"
    double.queue(Canned(b"", 429, "text/plain", {"Retry-After": "600"}))
    with pytest.raises(Busy, match="come back in 600 s"):
        opened(sleep=rests.append).read()
    double.queue(*[Canned(b"", 429, "text/plain", {"Retry-After": "1"})] * 5)
    with pytest.raises(Busy, match="too much to do"):
        opened(sleep=rests.append).read()


def test_a_wrong_key_a_wrong_library_and_a_silent_host_say_what_to_do(
    double: ZoteroWebDouble, opened: Open, tmp_path: Path
) -> None:
    with pytest.raises(ProviderBadResponse, match="set ZOTERO_API_KEY") as refused:
        opened(key="wrong-key-of-mine").read()
    assert "wrong-key-of-mine" not in str(refused.value)
    with pytest.raises(ProviderBadResponse, match="no library 'groups/5'"):
        opened(library="groups/5").read()
    double.queue(Canned(b"oops", 500, "text/plain"))
    with pytest.raises(ProviderBadResponse, match="answered 500"):
        opened().read()
    with pytest.raises(ProviderUnreachable):
        ZoteroWeb("http://127.0.0.1:9", "users/1", WEB_KEY, tmp_path, max_bytes=9).read()
    double.queue(Canned(b"[", declared=90))
    with pytest.raises(ProviderUnreachable):
        opened().read()
    double.queue(Canned(b"", 200, headers={"Last-Modified-Version": "9"}), Canned(b"", declared=9))
    with pytest.raises((ProviderTimeout, ProviderUnreachable)):
        opened(silence_s=0.1).read()


def test_files_that_cannot_be_had_fail_alone(double: ZoteroWebDouble, opened: Open) -> None:
    def reason(key: str) -> str:
        return dict(found.failed)[f"zotero/library/items/{key}/file"]

    whole = double.attach("", "whole.pdf", PDF)
    half = double.attach("", "half.pdf", PDF)
    other = double.attach("", "other.pdf", PDF, md5="0" * 32)
    packed = double.attach("", "page.html", b"<p>Silt", linkMode="imported_url")
    away = double.attach("", "away.pdf", PDF)
    double.path(away).unlink()
    linked = double.attach("", "linked.pdf", PDF, linkMode="linked_file", md5=None)
    large = double.attach("", "film.mp4", b"x" * (2**20 + 1))
    unsent = double.attach("", "unsent.pdf", PDF, md5=None)
    double.half, double.packed = {half}, {packed}
    found = opened().read()
    assert [one.source_key for one in found.documents] == [f"zotero/library/items/{whole}/file"]
    assert "broke off" in reason(half)
    assert "broke off" in reason(other)
    assert "keeps packed" in reason(packed)
    assert "allow the key to read them" in reason(away)
    assert "on another machine" in reason(linked)
    assert "MAX_FILE_SIZE_MB" in reason(large)
    waits = (f"zotero/library/items/{unsent}/file", "it has not arrived at zotero.org yet")
    assert found.waiting == (waits,)
    assert large not in double.fetched


def test_the_key_goes_nowhere_else(tmp_path: Path) -> None:
    for other in ("https://zotero.example", "http://api.zotero.org", "https://10.0.0.8"):
        with pytest.raises(InvalidInput, match=r"goes to https://api\.zotero\.org alone"):
            ZoteroWeb(other, "users/1", WEB_KEY, tmp_path, max_bytes=9)
    ZoteroWeb(WEB, "users/1", WEB_KEY, tmp_path, max_bytes=9).close()
    options = ZoteroOptions("", "users/1", WEB_KEY)
    assert WEB_KEY not in repr(options)
    assert open_zotero(options, tmp_path).folder == "zotero.org:users/1"


def test_a_file_store_in_the_local_network_is_not_asked(
    double: ZoteroWebDouble, opened: Open
) -> None:
    key = double.attach("", "a.pdf", PDF)
    double.queue(Canned(b"", 302, headers={"Location": "http://10.0.0.8/secret"}))
    with pytest.raises(NotFound, match=r"does not say where 'a\.pdf' is"):
        opened()._file("/users/475425", double.entries["library"][key])
