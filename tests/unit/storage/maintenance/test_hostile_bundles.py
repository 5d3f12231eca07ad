"""200 bundles, each with one field made invalid by its schema: none is imported, none ends otherwise than `index_damaged`."""

from __future__ import annotations

import copy
import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from app.core.errors import Conflict, DocuMindError, IndexDamaged
from app.core.ids import document_id
from app.core.types import Library
from app.storage.maintenance.bundle_format import (
    MAGIC,
    MAX_BLOCK_BYTES,
    DocumentRecord,
    FingerprintRecord,
    Header,
    Original,
    Record,
    Trailer,
)
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft
from tests.unit.storage.test_writer import embed_all

PAPERS = Library.PAPERS
LENGTH = struct.Struct("<I")
Blocks = list[tuple[Any, bytes]]
"""JSON and payload of each block, as a file from outside has them."""

NO_TEXT: tuple[object, ...] = (None, 7, True, [], {}, 1.5)
NO_NUMBER: tuple[object, ...] = (None, "7", True, [], {}, 1.5, -1, 10**15)
NO_LIST: tuple[object, ...] = (None, 7, "x", {}, [7], [None])
TOO_LONG = "x" * 100_001
SPANS: tuple[object, ...] = (
    [[0, 0]], [[0, -1, 5, "body", 1]], [[0, 5, 5, "body", 1]], [[0, 9, 5, "body", 1]], [[0, 0, 10**6, "body", 1]],
    [[0, 0, 5, 7, 1]], [[0, 0, 5, "body", "1"]], [[0, 0, 5, "body", 1], [0, 5, 9, "body", 1]], [["0", 0, 5, "body", 1]],
    [[0, 0, 5, "body", 1, 1]], [[0, 0, 16_001, "body", 1]],
)  # fmt: skip
CODES: tuple[object, ...] = (
    [[0, 1, 1]], [[0, 0, 1]], [[0, 33, 1]], [[0, 1, 0]], [[5, 1, 1]], [[0, 1, 1], [0, 1, 1]], [["0", 1, 1]], [[0, 1]],
)  # fmt: skip
WORDS: tuple[object, ...] = (
    [[1, 9.0, 9.0, []], [0, 9.0, 9.0, []]], [[1, 0.0, 9.0, []]], [[1, 9.0, 1e10, []]], [[1, 9.0, 9.0, [["x"]]]], [[1, 9.0, 9.0]],
    [[1, 9.0, 9.0, [[["", 1.0, 1.0, 2.0, 2.0]]]]], [[1, 9.0, 9.0, [[["x", 3.0, 1.0, 2.0, 2.0]]]]],
    [[1, 9.0, 9.0, [[["x", 1.0, 3.0, 2.0, 2.0]]]]], [[1, 9.0, 9.0, [[["x", "1", 1.0, 2.0, 2.0]]]]],
)  # fmt: skip
CORRECTIONS: tuple[object, ...] = (
    [[0, "aunt", "aunt", "", "", "me", "2026-11-26T07:00:00Z", True]],
    [[90, "aunt", "ant", "", "", "me", "2026-11-26T07:00:00Z", True]],
    [[0, "", "ant", "", "", "me", "2026-11-26T07:00:00Z", True]], [[0, "aunt", "ant", "", "", "me", "today", True]],
    [[0, "aunt", "ant", "", "", "me", "2026-11-26T07:00:00Z"]], [[0, "aunt", "ant", "", "", "me", "2026-11-26T07:00:00Z", 1]],
)  # fmt: skip
INVALID: dict[type[Record], dict[str, tuple[object, ...]]] = {
    Header: {
        "kind": (None, "documents", "nonsense", 7),
        "library": (None, 7, "nonsense", "../papers"),
        "created_at": (None, 7, "yesterday", "2026-01-02"),
        "fingerprint": (7, "x", [], {}),
        "codes": (7, "", [], {}),
    },
    FingerprintRecord: {
        "embedding_model": (*NO_TEXT, ""),
        "model_digest": (*NO_TEXT, TOO_LONG),
        "dimension": (*NO_NUMBER, 0),
        "query_prefix": NO_TEXT,
        "passage_prefix": NO_TEXT,
        "chunker": (*NO_TEXT, ""),
        "analyzer": (*NO_TEXT, ""),
    },
    Original: {
        "kind": (None, "trailer", "nonsense"),
        "sha256": (None, 7, "../../victim", "0" * 63, "0" * 64, "G" * 64, "A" * 64),
    },
    DocumentRecord: {
        "doc_id": (*NO_TEXT, "", "../x", "0" * 16, "x" * 5_000),
        "source_key": (*NO_TEXT, "", "/etc/passwd", "../../y", "a/../b", "a\0b", "a\nb", "other.txt"),
        "filename": (*NO_TEXT, TOO_LONG),
        "sha256": (*NO_TEXT, "../../victim", "/etc/victim", "0" * 63, "A" * 64, "0" * 65, "0" * 64),
        "type": (*NO_TEXT, "nonsense", ""),
        "text": (*NO_TEXT, "", "too short"),
        "title": (*NO_TEXT, TOO_LONG),
        "authors": (*NO_LIST, [TOO_LONG]),
        "year": ("2020", True, [], 10**15, 2020.5),
        "arxiv_id": (7, "nonsense", "../1", []),
        "chunks": (*NO_LIST, [], *SPANS),
        "pages": (*NO_LIST, [[1, 0]], [[1, -1, 5]], [[1, 9, 5]], [[1, 0, 10**6]], [["1", 0, 5]]),
        "outline": (*NO_LIST, [[0, 1]], [[-1, 5, 1]], [[9, 5, 1]], [[0, 10**6, 1]], [["0", 5, 1]]),
        "source_url": (7, [], TOO_LONG),
        "licence": (7, {}, TOO_LONG),
        "flags": (*NO_LIST, ["Not A Flag"], [""], ["x" * 80]),
        "has_original": (None, 1, "true", []),
        "source_revision": (7, [], TOO_LONG),
        "codes": (*NO_LIST, *CODES),
        "language": (7, None, "german", "DE", "../"),
        "tags": (*NO_LIST, [TOO_LONG], [""], ["a,b"], ["x" * 80]),
        "metadata": (None, 7, [], "year", {"": 1}, {"a=b": 1}, {"k": None}, {"k": TOO_LONG}, {"k": 1e300}),
        "words": (*NO_LIST, *WORDS),
        "corrections": (*NO_LIST, *CORRECTIONS),
        "vectors": (*NO_LIST[:4], [], [0], [0, 0], [0, 5], [-1, 0], ["0", 1], [True, 1]),
    },
    Trailer: {
        "kind": (None, "header", "nonsense"),
        "blocks": (*NO_NUMBER, 2),
        "library": (None, "nonsense", "public"),
        "documents": (*NO_NUMBER, 0),
        "chunks": (*NO_NUMBER, 0),
        "vectors": (*NO_NUMBER, 0),
        "originals": (*NO_NUMBER, 0),
        "fingerprint": (7, "nonsense", "0" * 8, None),
    },
}  # fmt: skip


def pack(path: Path, blocks: Blocks) -> Path:
    out = bytearray(MAGIC)
    for fields, payload in blocks:
        text = json.dumps(fields).encode()
        out += framed(zstandard.ZstdCompressor().compress(LENGTH.pack(len(text)) + text + payload))
    path.write_bytes(out)
    return path


def framed(packed: bytes) -> bytes:
    return LENGTH.pack(len(packed)) + hashlib.sha256(packed).digest() + packed


def unpack(path: Path) -> Blocks:
    content, at, blocks = path.read_bytes(), len(MAGIC), []
    while at < len(content):
        (length,) = LENGTH.unpack_from(content, at)
        raw = zstandard.ZstdDecompressor().decompress(content[at + 36 : at + 36 + length])
        (size,) = LENGTH.unpack_from(raw)
        blocks.append((json.loads(raw[4 : 4 + size]), raw[4 + size :]))
        at += 36 + length
    return blocks


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Blocks:
    """Header, original, three embedded documents, trailer."""
    path = tmp_path_factory.mktemp("good")
    with IndexStore(
        IndexOptions(path, path / "chroma", tantivy_threads=1), vector_store="off"
    ) as store:
        sha256 = store.writer.store_original(b"original bytes")
        drafts = [
            make_draft(f"{name}.txt", f"{name} whistles in the wind", year=2020)
            for name in ("ant", "bee", "cat")
        ]
        store.writer.write([replace(drafts[0], has_original=True, sha256=sha256), *drafts[1:]])
        embed_all(store)
        store.bundler.export(PAPERS, path / "good.documind")
    return unpack(path / "good.documind")


@pytest.fixture
def target(tmp_path: Path) -> Iterator[IndexStore]:
    path = tmp_path / "target"
    with IndexStore(
        IndexOptions(path, path / "chroma", tantivy_threads=1, max_file_bytes=1 << 20),
        vector_store="off",
    ) as opened:
        opened.writer.write([make_draft("held.txt", "this is here already")])
        embed_all(opened)
        yield opened


def state_of(store: IndexStore) -> tuple[object, ...]:
    """The whole catalog as text, and the files around it."""
    with store.database.read_raw() as cursor:
        tables = [
            row[0]
            for row in cursor.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            )
        ]
        rows = {
            table: cursor.execute(f"SELECT * FROM {table}").fetchall()
            for table in tables
            if table != "watermarks"
        }
    files = {
        path.name: path.read_bytes() for path in (store.options.data_dir / "originals").iterdir()
    }
    return rows, files


def place(blocks: Blocks, model: type[Record]) -> dict[str, Any]:
    """The JSON of a model in a bundle, to be changed."""
    header, original, documents, trailer = (fields for fields, _ in blocks)
    found = {
        Header: header,
        FingerprintRecord: header["fingerprint"],
        Original: original,
        DocumentRecord: documents["documents"][0],
        Trailer: trailer,
    }[model]
    assert isinstance(found, dict)
    return found


def cases() -> list[tuple[type[Record], str, object]]:
    named = [
        (model, name, value)
        for model, fields in INVALID.items()
        for name, values in fields.items()
        for value in values
    ]
    missing = [
        (model, name, "MISSING")
        for model, fields in INVALID.items()
        for name in fields
        if model.model_fields[name].is_required()
    ]
    return named + missing


def refused(store: IndexStore, path: Path) -> DocuMindError:
    with pytest.raises(DocuMindError) as caught:
        store.bundler.load(path)
    return caught.value


def test_every_field_is_covered() -> None:
    for model, fields in INVALID.items():
        assert set(fields) == set(model.model_fields), model.__name__
    assert len(cases()) >= 200


def test_no_bundle_with_one_invalid_field_is_imported(
    good: Blocks, target: IndexStore, tmp_path: Path
) -> None:
    before = state_of(target)
    for model, name, value in cases():
        blocks = copy.deepcopy(good)
        record = place(blocks, model)
        if value == "MISSING":
            del record[name]
        else:
            record[name] = value
        error = refused(target, pack(tmp_path / "bad.documind", blocks))
        case = f"{model.__name__}.{name} = {value!r:.60}: {error.message}"
        assert error.code == "index_damaged", case
        assert "block " in error.message, case
        assert (
            name in error.message
            or name == "kind"
            or "payload" in error.message
            or "chunks" in error.message
        ), case
        assert "nothing was imported" in error.message, case
    assert state_of(target) == before
    pack(tmp_path / "good.documind", good)
    assert target.bundler.load(tmp_path / "good.documind").documents == 3, (
        "the bundle that all were made from is right"
    )


PAYLOADS: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda payload: payload[:-4],
    "too long": lambda payload: payload + b"\0" * 4,
    "NaN": lambda payload: np.full(len(payload) // 2, np.nan, "<f2").tobytes(),
    "one infinity": lambda payload: payload[:-2] + np.array([np.inf], "<f2").tobytes(),
    "zeros": lambda payload: bytes(len(payload)),
    "norm 1.02": lambda payload: (
        (np.frombuffer(payload, "<f2") * np.float16(1.02)).astype("<f2").tobytes()
    ),
    "none": lambda _: b"",
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_vectors_are_of_the_right_size_finite_and_of_norm_1(
    good: Blocks, target: IndexStore, tmp_path: Path, name: str
) -> None:
    before = state_of(target)
    blocks = [
        (fields, PAYLOADS[name](payload) if fields["kind"] == "documents" else payload)
        for fields, payload in good
    ]
    error = refused(target, pack(tmp_path / "bad.documind", blocks))
    assert (error.code, "block 3 (documents), payload: " in error.message) == (
        "index_damaged",
        True,
    )
    assert state_of(target) == before


RAW: dict[str, bytes] = {
    "no zstd": b"nonsense",
    "no JSON": zstandard.compress(LENGTH.pack(8) + b"nonsense"),
    "a list": zstandard.compress(LENGTH.pack(2) + b"[]"),
    "a lone surrogate": zstandard.compress(LENGTH.pack(8) + b'"\\ud800"'),
    "deep": zstandard.compress(LENGTH.pack(20_000) + b"[" * 20_000),
    "shorter than it says": zstandard.compress(LENGTH.pack(99) + b"{}"),
    "empty": zstandard.compress(b""),
    "a huge length": zstandard.compress(LENGTH.pack(2**32 - 1) + b"{}"),
}


@pytest.mark.parametrize("name", RAW)
def test_a_block_that_is_no_record_is_damage(target: IndexStore, tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.documind").write_bytes(MAGIC + framed(RAW[name]))
    error = refused(target, tmp_path / "bad.documind")
    assert (error.code, "block 1, " in error.message) == ("index_damaged", True)


def zeros(total: int, head: bytes, *, stated: bool) -> bytes:
    """A frame of `head` and zeros, `total` bytes in all; whether it says how many is its maker's choice."""
    packer = zstandard.ZstdCompressor().compressobj(size=total if stated else -1)
    out = packer.compress(head)
    left = total - len(head)
    while left:
        piece = min(left, 1 << 24)
        out += packer.compress(bytes(piece))
        left -= piece
    return out + packer.flush()


@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize("kind", ["documents", "original", "fields"])
def test_no_block_unpacks_to_more_than_its_kind_may_take(
    good: Blocks, target: IndexStore, tmp_path: Path, kind: str, *, stated: bool
) -> None:
    if kind == "fields":
        head, total = LENGTH.pack(1 << 30), 1 << 30
    else:
        text = json.dumps(next(fields for fields, _ in good if fields["kind"] == kind)).encode()
        head = LENGTH.pack(len(text)) + text
        total = len(head) + (MAX_BLOCK_BYTES if kind == "documents" else (1 << 20) + 1)
    pack(tmp_path / "bad.documind", good[:1])
    with (tmp_path / "bad.documind").open("ab") as file:
        file.write(framed(zeros(total, head, stated=stated)))
    assert (tmp_path / "bad.documind").stat().st_size < 200_000
    error = refused(target, tmp_path / "bad.documind")
    assert (error.code, "block 2, " in error.message, "at most" in error.message or "more than" in error.message) == (
        "index_damaged", True, True,
    )  # fmt: skip


def test_the_same_document_twice_is_damage(
    good: Blocks, target: IndexStore, tmp_path: Path
) -> None:
    blocks = [*good[:3], good[2], good[3]]
    blocks[4] = ({**good[3][0], "blocks": 4}, b"")
    error = refused(target, pack(tmp_path / "bad.documind", blocks))
    assert (error.code, "is there twice" in error.message) == ("index_damaged", True)


def test_a_document_that_the_library_holds_otherwise_is_a_conflict_before_anything_is_written(
    good: Blocks, target: IndexStore, tmp_path: Path
) -> None:
    target.writer.write(
        [
            replace(
                make_draft("cat.txt", "another one"), doc_id=document_id(Library.PUBLIC, "cat.txt")
            )
        ]
    )
    before = state_of(target)
    assert isinstance(refused(target, pack(tmp_path / "good.documind", good)), Conflict)
    assert state_of(target) == before


def test_flags_are_looked_for_again(good: Blocks, target: IndexStore, tmp_path: Path) -> None:
    blocks = copy.deepcopy(good)
    place(blocks, DocumentRecord)["flags"] = ["override", "stripped:3", "recovered"]
    pack(tmp_path / "flags.documind", blocks)
    target.bundler.load(
        tmp_path / "flags.documind", inspect=lambda text: ("role",) if "bee" in text else ()
    )
    flags = {
        document.source_key: document.flags for document in target.catalog.documents(PAPERS)[0]
    }
    assert flags["ant.txt"] == ("stripped:3", "recovered")
    assert flags["bee.txt"] == ("role",)


def test_a_large_library_travels_in_blocks_that_are_taken_in(
    target: IndexStore, tmp_path: Path
) -> None:
    text = 'Ünïcödé \\ " walrus\n' * 400_000
    path = tmp_path / "source"
    with IndexStore(
        IndexOptions(path, path / "chroma", tantivy_threads=1), vector_store="off"
    ) as store:
        store.writer.write([make_draft(f"{n}.txt", f"{n} {text}", chunks=500) for n in range(8)])
        embed_all(store)
        report = store.bundler.export(PAPERS, tmp_path / "large.documind")
    assert target.bundler.load(tmp_path / "large.documind") == report
    assert report.chunks == 4_000
    assert (
        sum(fields["kind"] == "documents" for fields, _ in unpack(tmp_path / "large.documind")) > 1
    )
    assert target.catalog.fingerprint(PAPERS) is not None


def test_the_error_is_of_the_store(good: Blocks, target: IndexStore, tmp_path: Path) -> None:
    assert isinstance(refused(target, pack(tmp_path / "cut.documind", good[:2])), IndexDamaged)
