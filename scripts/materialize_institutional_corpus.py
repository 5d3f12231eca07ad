"""Copy the sample documents into folders that `documind sync` follows.

python -m scripts.materialize_institutional_corpus --out DIR

Writes DIR/public and DIR/papers, and DIR/manifest.json with the title, source key and SHA-256 of
each document: a small corpus in the form in which an institution would hand over its own. Then:

documind sync DIR/public --library public
documind sync DIR/papers --library papers
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from app.cli.main import run_at_edge
from app.core.errors import Conflict, InvalidInput
from app.core.types import Library
from app.ingest.metadata import describe
from app.ingest.names import source_key
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.sources.folders import LICENCE, SampleDocuments, bundled

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Entry:
    library: str
    file: str
    """Path below the folder of its library."""
    source_key: str
    """What `documind sync` will know it by."""
    title: str
    sha256: str
    licence: str


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="a folder that is empty or does not exist yet"
    )
    out = parser.parse_args().out
    entries = list(materialize(out))
    text = json.dumps(
        {"documents": [asdict(entry) for entry in entries]}, indent=1, ensure_ascii=False
    )
    (out / MANIFEST).write_text(text + "\n", encoding="utf-8")
    print(f"wrote {len(entries)} documents and {MANIFEST} to {out}; next:")
    for library in Library:
        print(f"  documind sync {out / library.value} --library {library.value}")


def materialize(out: Path) -> Iterator[Entry]:
    """Copy the samples of both libraries, and yield what was copied.

    Raises:
        Conflict: The folder is not empty.
        InvalidInput: The folder cannot be made.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        taken = any(out.iterdir())
    except OSError as exc:
        raise InvalidInput(
            f"{str(out)!r} cannot be a folder for the corpus ({exc}); name another one"
        ) from exc
    if taken:
        raise Conflict(
            f"{str(out)!r} is not empty; name an empty folder or one that does not exist yet"
        )
    parser = DirectParser(IngestOptions())
    for library in Library:
        folder = out / library.value
        folder.mkdir()
        for raw in SampleDocuments(library, bundled()):
            path = folder / raw.filename
            shutil.copyfile(str(raw.content), path)
            title = describe(parser.parse(path, raw.filename), raw.filename).title
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            yield Entry(
                library.value, raw.filename, source_key(raw.filename), title, digest, LICENCE
            )


if __name__ == "__main__":
    run_at_edge(main)
