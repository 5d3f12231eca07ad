"""Restore catalog entries of orphan uploads by the normal upload path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.core.errors import InputError
from app.core.types import Library, RawDocument
from app.generation.injection import inspect
from app.index.store import IndexStore
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.sniffing import identify
from app.ingest.pipeline import IngestPipeline
from app.ingest.sandbox import SandboxedParser
from app.settings import Settings

RECOVERED = "recovered"
"""Flag of a document whose entry was made from its kept bytes: its name and source are not known
any more."""


def recover_originals(
    store: IndexStore, settings: Settings, library: Library, names: Sequence[str]
) -> Mapping[str, str]:
    """Parse originals again and add an entry for each, flagged `recovered`.

    Its title comes from the first page. Words are found at once; vectors follow when a server next
    runs.

    Args:
        store: Open, and used by no one else.
        settings: Limits of reading.
        library: Where the entries go.
        names: SHA-256 of the originals.

    Returns:
        Why an original got no entry, by SHA-256. Its bytes stay.
    """
    refused: dict[str, str] = {}
    with SandboxedParser(settings.ingest()) as parser:
        pipeline = IngestPipeline(
            parser,
            store.writer,
            None,
            settings.ingest(),
            inspect=lambda text: (*inspect(text), RECOVERED),
            rereads=lambda: False,
        )
        for sha256 in names:
            path = store.originals.path(sha256)
            try:
                kind = FORMATS[identify(path.read_bytes(), sha256)]
                name = f"recovered-{sha256[:12]}{kind.suffixes[0]}"
            except InputError as error:
                refused[sha256] = error.message
                continue
            (outcome,) = pipeline.ingest(library, [RawDocument(name, name, path)])
            if outcome.status == "failed":
                refused[sha256] = outcome.reason or "it cannot be read"
    return refused
