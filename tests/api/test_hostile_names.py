"""Three hundred hostile file names through the front door: each is stored as data and served back safely, or refused."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from tests.api.conftest import Site, site
from tests.fakes.hostile.names import names

NAMES = names()
BATCH = 30
_SHOWN = re.compile(
    r"attachment; filename=\"[A-Za-z0-9 ._()-]*\"; filename\*=UTF-8''[A-Za-z0-9%._~-]*"
)
_REORDERS = {"RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI"}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Path]]:
    """A site whose data directory lies deep, so that climbing out of it would be seen."""
    top = tmp_path_factory.mktemp("names")
    deep = top / "a" / "b" / "c"
    deep.mkdir(parents=True)
    with site(deep) as opened:
        yield opened, top


def body(sent: list[tuple[int, bytes]]) -> bytes:
    """Return a form with one file per name, its number in its content; names are quoted as browsers do."""
    parts = []
    for number, name in sent:
        quoted = name.replace(b"\r", b"%0D").replace(b"\n", b"%0A").replace(b'"', b"%22")
        head = (
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="'
            + quoted
            + b'"\r\n\r\n'
        )
        parts.append(head + b"Harbour note number %d, about the tide.\r\n" % number)
        parts.append(
            b'--b\r\nContent-Disposition: form-data; name="source_key"\r\n\r\nkey-%d\r\n' % number
        )
    return b"".join(parts) + b"--b--\r\n"


@pytest.fixture(scope="module")
def stored(shelf: tuple[Site, Path]) -> dict[int, dict[str, object]]:
    """Upload all; the documents by number."""
    opened, _ = shelf
    for first in range(0, len(NAMES), BATCH):
        sent = [(number, NAMES[number]) for number in range(first, min(first + BATCH, len(NAMES)))]
        reply = opened.client.post(
            "/api/v1/ingest?library=papers",
            content=body(sent),
            headers={"Content-Type": "multipart/form-data; boundary=b"},
        )
        assert reply.status_code == 201, reply.text[:2000]
    found: dict[int, dict[str, object]] = {}
    cursor: str | None = None
    while True:
        query: dict[str, str | int] = {
            "library": "papers",
            "limit": 100,
            **({"cursor": cursor} if cursor else {}),
        }
        page = opened.client.get("/api/v1/papers", params=query).json()
        found |= {
            int(str(document["source_key"]).removeprefix("key-")): document
            for document in page["documents"]
        }
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def test_there_are_three_hundred() -> None:
    assert len(NAMES) >= 300


def test_every_name_is_stored_and_safe_to_show(stored: dict[int, dict[str, object]]) -> None:
    assert sorted(stored) == list(range(len(NAMES)))
    for document in stored.values():
        name = str(document["filename"])
        assert name
        assert len(name.encode()) <= 255
        assert name not in {".", ".."}
        assert not any(
            c in "/\\"
            or unicodedata.category(c) in {"Cc", "Cs"}
            or unicodedata.bidirectional(c) in _REORDERS
            for c in name
        )


def test_every_original_comes_back_as_an_attachment_under_a_harmless_header(
    shelf: tuple[Site, Path], stored: dict[int, dict[str, object]]
) -> None:
    opened, _ = shelf
    for number, document in stored.items():
        reply = opened.client.get(
            f"/api/v1/documents/{document['doc_id']}/file", params={"library": "papers"}
        )
        assert reply.status_code == 200
        assert reply.content == b"Harbour note number %d, about the tide." % number
        header = reply.headers["content-disposition"]
        assert _SHOWN.fullmatch(header), header
        assert unquote(header.rpartition("''")[2]) == document["filename"]
        assert reply.headers["content-type"] == "application/octet-stream"
        assert reply.headers["x-content-type-options"] == "nosniff"


def test_nothing_lies_outside_the_data_directory_and_nothing_is_called_as_it_was(
    shelf: tuple[Site, Path], stored: dict[int, dict[str, object]]
) -> None:
    opened, top = shelf
    data = opened.settings.data_dir
    outside = [
        path
        for path in top.rglob("*")
        if path not in data.parents and path != data and data not in path.parents
    ]
    assert outside == []
    originals = [path.name for path in (data / "originals").rglob("*") if path.is_file()]
    assert len(originals) == len(stored)
    assert all(re.fullmatch(r"[0-9a-f]{64}\.bin", name) for name in originals)
    assert not any(path.is_file() for path in (data / "uploads").rglob("*"))
    assert not [
        path
        for number in range(400)
        for path in (Path(f"/tmp/n{number}.txt"), Path(f"n{number}.txt"))
        if path.exists()
    ]


def test_names_are_looked_up_as_data_too(shelf: tuple[Site, Path]) -> None:
    opened, _ = shelf
    for raw in NAMES:
        name = quote(raw.decode("utf-8", "replace"), safe="")
        if name in {".", ".."}:
            continue  # the client resolves these before it sends anything
        for method, path in (
            ("GET", f"/api/v1/papers/{name}"),
            ("GET", f"/api/v1/documents/{name}/file"),
            ("DELETE", f"/api/v1/papers/{name}"),
        ):
            # In `public` there is nothing: whatever the name says, the answer is that, or that it
            # is no name.
            reply = opened.client.request(method, path, params={"library": "public"})
            assert reply.status_code in {404, 405, 422}, (raw, reply.status_code, reply.text[:300])
            assert "root:x:" not in reply.text


@pytest.mark.parametrize(
    "key", ["../x", "/etc/x", "C:\\x", "a/../../x", "..\\x", "", ".", "a" * 1100]
)
def test_source_keys_that_climb_are_refused(shelf: tuple[Site, Path], key: str) -> None:
    opened, _ = shelf
    status, found = opened.upload(("a.txt", b"text"), source_key=key)
    assert (status, dict(found)["code"]) == (422, "invalid_input")  # type: ignore[call-overload]  # a JSON object
