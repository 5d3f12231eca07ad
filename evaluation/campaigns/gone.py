"""Plant, delete and purge a document, and search every file for it.

Into evaluation/reports/gone.{md,json}.

make bench-gone
"""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
import struct
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import tantivy
import zstandard
from scipy.signal import oaconvolve

from app.client import DocuMindClient, FileToSend, Json
from app.core.text import tokenise
from app.core.types import FloatArray
from app.storage.catalog.schema import BUILD_SHIFT
from evaluation.lib.reports import Line, options, say, table, write
from evaluation.lib.served import Served
from tests.fakes.ollama_double import DoubleModel, OllamaDouble

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")
ALIKE = 0.999
"""Cosine from which a run of numbers is taken for the vector: float16 keeps three digits,
another chunk's vector is far below."""
LARGEST_FRAME = 1 << 26
MODEL_FOLDER = "models"
"""Folder of the embedded model's weights, made from a package: a hundred megabytes of numbers,
in which no vector is looked for."""


@dataclass(frozen=True, slots=True)
class Secret:
    """Words and vectors that must not be found."""

    words: tuple[str, ...]
    """Words and phrases, in any script; written as in the text."""
    terms: tuple[str, ...]
    """The same as the term dictionary has them."""
    vectors: tuple[FloatArray, ...]
    """float32 `[dim]`, norm 1."""


def look(data: Path, secret: Secret) -> dict[str, set[str]]:
    """Return where the secret is: ways by place (first parts of the path).

    Ways are `text` (the bytes, in three encodings), `json` (escaped as JSON does), `zstd` (inside a
    frame carved from any offset, along SQLite's overflow pages too), `term`, `segment` (a lexical
    segment no index refers to), `float32` and `float16`.
    """
    needles = [word.encode(encoding) for word in secret.words for encoding in ENCODINGS]
    escaped = [
        word.encode("ascii", "backslashreplace") for word in secret.words if not word.isascii()
    ]
    found: dict[str, set[str]] = {}
    for path in sorted(data.rglob("*")):
        if not path.is_file():
            continue
        content = path.read_bytes()
        ways = {"text"} if any(needle in content for needle in needles) else set()
        if any(needle in content for needle in escaped):
            ways.add("json")
        main = path.with_name(path.name.removesuffix("-wal"))
        database = main.read_bytes() if main != path and main.exists() else b""
        if any(needle in frame for frame in frames_in(content, database) for needle in needles):
            ways.add("zstd")
        if MODEL_FOLDER not in path.parts:
            ways |= vectors_in(content, secret.vectors)
        if ways:
            found.setdefault(place_of(data, path), set()).update(ways)
    for index in sorted(data.glob("tantivy/*")):
        if ways := terms_in(index, secret.terms):
            found.setdefault(place_of(data, index), set()).update(ways)
    return found


def place_of(data: Path, path: Path) -> str:
    """Return the part of a path that says which store it is of."""
    parts = tuple(part.removesuffix("-wal") for part in path.relative_to(data).parts)
    return "/".join(parts[:2]) if parts[0] in {"tantivy", "exact"} else parts[0]


def frames_in(content: bytes, database: bytes = b"") -> Iterator[bytes]:
    """Yield what is readable of zstd frames at any offset, along SQLite's overflow pages too."""
    images = list(pages_of(content))
    pages = dict(enumerate((page for _, page in pages_of(database)), start=1)) | dict(images)
    for piece in [page for _, page in images] or [content]:
        at = piece.find(ZSTD_MAGIC)
        while at >= 0:
            yield _decompressed(piece[at:])
            if images:
                yield from _along_pages(pages, piece, at)
            at = piece.find(ZSTD_MAGIC, at + 1)


def _along_pages(pages: Mapping[int, bytes], piece: bytes, at: int) -> Iterator[bytes]:
    """Yield frames continued in overflow pages, for every possible place of the pointer."""
    for end in range(at + len(ZSTD_MAGIC), len(piece) - 3):
        follow = struct.unpack_from(">I", piece, end)[0]
        if follow < 2 or follow not in pages:
            continue
        chain = [piece[at:end]]
        seen: set[int] = set()
        while follow in pages and follow not in seen:
            seen.add(follow)
            chain.append(pages[follow][4:])
            follow = struct.unpack_from(">I", pages[follow])[0]
        yield _decompressed(b"".join(chain))


def _decompressed(data: bytes) -> bytes:
    out = b""
    with suppress(zstandard.ZstdError):
        reader = zstandard.ZstdDecompressor(max_window_size=LARGEST_FRAME).stream_reader(data)
        while piece := reader.read(1 << 16):
            out += piece
    return out


def pages_of(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of each page of an SQLite file or log; else nothing.

    References:
        https://sqlite.org/fileformat.html, sections 1.3 and 4.1.
    """
    if content[:16] == b"SQLite format 3\0":
        size = struct.unpack_from(">H", content, 16)[0]
        size = 65536 if size == 1 else size
        yield from (
            (at // size + 1, content[at : at + size]) for at in range(0, len(content), size)
        )
    elif len(content) > 32 and struct.unpack_from(">I", content)[0] & ~1 == 0x377F0682:
        size = struct.unpack_from(">I", content, 8)[0]
        for at in range(32, len(content) - size - 23, size + 24):
            yield struct.unpack_from(">I", content, at)[0], content[at + 24 : at + 24 + size]


def vectors_in(content: bytes, vectors: Sequence[FloatArray]) -> set[str]:
    """Return the precisions in which a vector occurs at any offset, also scaled to norm 1."""
    found: set[str] = set()
    for name, dtype, width in (("float32", "<f4", 4), ("float16", "<f2", 2)):
        for offset in range(width):
            n = (len(content) - offset) // width
            if any(n >= len(vector) for vector in vectors):
                with np.errstate(all="ignore"):  # most bytes are no numbers
                    numbers = np.frombuffer(content, dtype, n, offset).astype(np.float64)
                if any(_holds(numbers, vector) for vector in vectors if n >= len(vector)):
                    found.add(name)
    return found


def _holds(numbers: np.ndarray[tuple[int], np.dtype[np.float64]], vector: FloatArray) -> bool:
    with np.errstate(all="ignore"):
        # NaN fails too: a value outside a unit vector counts as 0
        clean = np.where(np.abs(numbers) <= 1.5, numbers, 0.0)
    dots = oaconvolve(clean, vector[::-1].astype(np.float64), mode="valid")
    squares = np.concatenate([[0.0], np.cumsum(clean * clean)])
    norms = np.sqrt(np.maximum(squares[len(vector) :] - squares[: -len(vector)], 1e-12))
    return bool(np.any((dots / norms > ALIKE) & (norms > 0.5)))


def terms_in(index: Path, terms: Sequence[str]) -> set[str]:
    """Return `term` if the dictionary lists one, `segment` for files of no segment."""
    if not (index / "meta.json").exists():
        return set()
    meta = (index / "meta.json").read_text("utf-8")
    known = {name.replace("-", "") for name in re.findall(r'"segment_id":\s*"([0-9a-f-]+)"', meta)}
    held = {
        path.name.split(".")[0]
        for path in index.iterdir()
        if re.fullmatch(r"[0-9a-f]{32}\..*", path.name)
    }
    ways = {"segment"} if held - known else set()
    searcher = tantivy.Index.open(str(index)).searcher()
    for field in ("body", "title", "section"):
        with suppress(ValueError):  # not a field of this index
            if any(searcher.terms_with_prefix(field, term) for term in terms):
                ways.add("term")
    return ways


MODELS = (DoubleModel("small:latest", dimension=256), DoubleModel("large:latest", dimension=320))
CANARY = ("zyxquill", "vormblatt", "quorndaxian", "鳳凰梧桐七弦琴", "잿빛두루미", "ьжфщёвка")
PHRASE = "The zyxquill vormblatt opens at the third bell of quorndaxian."
OLD_CANARY = "trebuxolite"
QUESTIONS = ("When does it open at the third bell?", "What opens at the third bell?")
FILE = "memo.md"


Sight = dict[str, list[str]]
"""Ways in which the planted document was found, by place."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    sights: dict[str, Sight]
    """By moment."""
    quoted: int
    """Stored answers that quoted the document before it was deleted."""
    deleted: Json
    """What the server said of the deletion."""
    purged: Json
    """What it said of the purge."""


def text_of(seed: int, extra: str) -> str:
    """Return a memo in several scripts whose zstd text exceeds a catalog page."""
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    lines = [
        "# Zyxquill memo",
        "",
        PHRASE,
        extra,
        "",
        f"合言葉は{CANARY[3]}である。",
        f"{CANARY[4]} 그리고 {CANARY[5]}.",
        "",
    ]
    for _ in range(60):
        words = ("".join(rng.choices(letters, k=rng.randint(4, 11))) for _ in range(18))
        lines += [f"The vormblatt of {' '.join(words)}.", ""]
    return "\n".join(lines)


def run(directory: Path, filler: int) -> TrialResult:
    """Do one trial.

    Args:
        directory: Empty; the data directory is made in it.
        filler: Other documents of the library; above 1,000 chunks Chroma writes its graph files.
    """
    data, files = directory / "data", directory / "files"
    files.mkdir(parents=True)
    sights: dict[str, Sight] = {}
    with OllamaDouble(MODELS) as double:
        settings = {"OLLAMA_BASE_URL": double.url, "EMBEDDING_PROVIDER": "ollama"}
        with Served(data, **settings, EMBEDDING_MODEL="small") as server:
            client = server.client
            _fill(client, files, filler)
            # With another document, so that its segment of the lexical index outlives it.
            _send(client, files / FILE, text_of(1, f"The {OLD_CANARY} is of the first draft."))
            _send(client, files / FILE, text_of(2, "This is the second draft."))
            model = {"library": "papers", "provider": "ollama", "model": "large"}
            _finish(client, client.post("/api/v1/reembed", model))
            quoted = _ask(client)
            server.wait_followed("papers")
            secret = _secret(data, client)
            # Copies as the keeper leaves them when it found damage.
            shutil.copytree(data / "chroma", data / "chroma.broken.20260101T000000Z")
            papers = data / "tantivy" / "papers"
            shutil.copytree(papers, papers.with_name("papers.broken.20260101T000001Z"))

            def sight(when: str) -> None:
                found = sorted(look(data, secret).items())
                sights[when] = {place: sorted(ways) for place, ways in found}
                say(when)

            sight("planted")
            deleted = client.delete("papers", FILE)
            sight("deleted")
            purged = _finish(client, client.post("/api/v1/purge"))
            sight("purged")
            hits = str(client.search(PHRASE, "papers", limit=10)["hits"])
            assert CANARY[0] not in hits.lower(), "a search finds it"
        sight("stopped")
    return TrialResult(sights, quoted, deleted, purged["result"])


def _fill(client: DocuMindClient, files: Path, filler: int) -> None:
    sent = []
    for n in range(filler):
        path = files / f"other{n}.txt"
        page = f"Ledger {n} page {{}} lists grain, rope and tallow of the harbour house."
        path.write_text("\n\n".join(page.format(k) * 12 for k in range(10)))
        sent.append(FileToSend(path))
    for at in range(0, len(sent), 16):
        client.ingest(sent[at : at + 16], "papers")


def _send(client: DocuMindClient, path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    companion = path.with_name(f"companion{len(list(path.parent.iterdir()))}.txt")
    companion.write_text(f"{companion.name} keeps the segment of its neighbour alive.")
    client.ingest([FileToSend(path), FileToSend(companion)], "papers")


def _finish(client: DocuMindClient, job: Json) -> Json:
    done = client.follow(str(job["id"]))
    assert done["state"] == "done", done
    return done


def _ask(client: DocuMindClient) -> int:
    """Ask, alone and in a conversation; return how many answers quote the document."""
    quoted = 0
    for question in QUESTIONS:
        for path, field in (("/api/v1/query", "question"), ("/api/v1/chat", "message")):
            answer = client.post(path, {field: question, "library": "papers"})
            quoted += CANARY[0] in str(answer["answer"])
    return quoted


def _secret(data: Path, client: DocuMindClient) -> Secret:
    """Return what to search for; vectors are read from the catalog, of every build."""
    document = next(row for row in client.documents("papers") if row["source_key"] == FILE)
    with sqlite3.connect(f"file:{data / 'catalog.sqlite3'}?mode=ro", uri=True) as connection:
        rows = connection.execute(
            "SELECT v.vector FROM vectors v JOIN chunks c ON c.chunk_id = v.key &"
            f" {(1 << BUILD_SHIFT) - 1}"
            " JOIN documents d ON d.doc = c.doc AND d.revision = c.revision WHERE d.doc_id = ? AND"
            " c.ordinal < 2",
            (document["doc_id"],),
        ).fetchall()
    connection.close()
    vectors: list[FloatArray] = [np.frombuffer(row[0], "<f2").astype(np.float32) for row in rows]
    assert {len(vector) for vector in vectors} == {model.dimension for model in MODELS}
    words = (*CANARY, CANARY[0].capitalize(), OLD_CANARY)
    terms = tuple(term for word in words for term in tokenise(word))
    return Secret(words, terms, tuple(vectors))


MUST_FIND = {
    "catalog.sqlite3": {"zstd", "text", "float16"},
    "tantivy/papers": {"term"},
    "chroma": {"float32"},
    "originals": {"text"},
    "chroma.broken.20260101T000000Z": {"float32"},
    "tantivy/papers.broken.20260101T000001Z": {"term"},
}
"""Where the control must find the document before it is deleted, or the search looks in the
wrong way."""

AFTER_DELETION = {place for place in MUST_FIND if place.startswith(("tantivy", "chroma"))}
"""Where a deletion alone leaves it, which is what a purge is for."""


def faults(result: TrialResult) -> list[str]:
    """Return what speaks against the promise or against the trial."""
    planted, deleted = result.sights["planted"], result.sights["deleted"]
    found = [
        f"the control did not find {way} in {place}"
        for place, ways in MUST_FIND.items()
        for way in sorted(ways - set(planted.get(place, [])))
    ]
    left = AFTER_DELETION - set(deleted)
    found += [f"the control without a purge did not find it in {place}" for place in left]
    found += [
        f"{', '.join(ways)} in {place} after the purge ({when})"
        for when in ("purged", "stopped")
        for place, ways in result.sights[when].items()
    ]
    if not result.quoted:
        found.append("no stored answer quoted the document: the trial proves nothing about answers")
    for name, reply in (("deletion", result.deleted), ("purge", result.purged)):
        if not any("backup" in str(line) for line in reply.get("out_of_reach", [])):
            found.append(f"the reply to the {name} does not list what is out of reach")
    return found


REMARKS = (
    "A document with words in several scripts was uploaded twice, embedded by two models, asked"
    " about, deleted and purged over HTTP, with others. Every file of the data directory was then"
    " searched for its words (UTF-8, UTF-16, JSON escapes), inside every zstd frame that can be carved"
    " from any offset (along the overflow pages of SQLite too, free pages and write-ahead log"
    " included), for its terms in the lexical dictionaries, and for its vectors as float32 or float16,"
    " by cosine, at any offset.",
)


def main() -> int:
    args = options(__doc__, filler=(120, "other documents, about ten chunks each"))
    with tempfile.TemporaryDirectory(prefix="documind-gone-") as temporary:
        result = run(Path(temporary), args.filler)
    wrong = faults(result)
    places = sorted({place for sight in result.sights.values() for place in sight})
    rows = [
        (place, *(", ".join(sight.get(place, [])) or "-" for sight in result.sights.values()))
        for place in places
    ]
    tables = [
        *table(("file", *result.sights), rows),
        "",
        "Out of reach, and listed in both replies:",
        "",
        *(f"- {line}" for line in result.purged.get("out_of_reach", [])),
        *(f"\n**{line}**" for line in wrong),
    ]
    lines = [Line("bytes left after the purge, or a blind control", len(wrong))]
    figures = {
        "other documents": args.filler,
        "stored answers that quoted it before": result.quoted,
        "quotes blanked": float(result.deleted.get("quotes_blanked", 0)),
    }
    command = f"python -m evaluation.campaigns.gone --filler {args.filler}"
    return write(
        "gone", "Deleted means gone", REMARKS, lines, figures, command, tables=tables,
        extra={**asdict(result), "faults": wrong},
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
