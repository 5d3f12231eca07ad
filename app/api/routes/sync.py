"""Serve folder syncs: list a folder's documents, remove those without a file."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from app.api.deps import Composition, OneLibrary
from app.api.errors import declared
from app.api.schemas.base import Reply, Request
from app.core.errors import NotFound
from app.core.types import Library, LibraryName

router = APIRouter(prefix="/api/v1/sync", tags=["ingest"])

MAX_FOLDER_CHARACTERS = 5_000
FOLDER = "names the folder; the client makes the name up and always sends the same"


class SyncedDocuments(Reply):
    """Source keys, sorted."""

    source_keys: list[str]


class SyncRemoval(Request):
    """Whose files are gone from a folder."""

    library: LibraryName
    folder: Annotated[
        str, Field(min_length=1, max_length=MAX_FOLDER_CHARACTERS, description=FOLDER)
    ]
    source_keys: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1024)]], Field(max_length=10_000)
    ]


@router.get(
    "/documents", operation_id="list_synced", response_model=SyncedDocuments, responses=declared()
)
def list_synced(
    services: Composition,
    library: OneLibrary,
    folder: Annotated[
        str, Query(min_length=1, max_length=MAX_FOLDER_CHARACTERS, description=FOLDER)
    ],
) -> SyncedDocuments:
    """List documents a folder's sync sent whose bytes are still the same."""
    return SyncedDocuments(source_keys=sorted(services.claims.held(library, folder)))


@router.post(
    "/remove",
    operation_id="remove_synced",
    response_model=SyncedDocuments,
    responses=declared("disk_full", "index_damaged"),
)
def remove_synced(services: Composition, removal: SyncRemoval) -> SyncedDocuments:
    """Remove documents that this folder's sync sent; ignore any other name.

    The reply lists the removed documents.
    """
    library = Library(removal.library)
    held = services.claims.held(library, removal.folder)
    removed = []
    for key in removal.source_keys:
        if key not in held:
            continue
        try:
            services.writer.delete(library, held[key])
        except NotFound:
            continue  # removed by another request just now
        removed.append(key)
    return SyncedDocuments(source_keys=sorted(removed))
