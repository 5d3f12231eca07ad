"""The two libraries: counts, build state, clearing."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from app.answer.library_state import asked_by_default
from app.api.deps import AtEdge, Composition, OneLibrary
from app.api.errors import declared
from app.api.routes.health import library_stats
from app.api.schemas.documents import (
    Cleared,
    CollectionStats,
    Embedding,
    LibraryList,
    LibraryStatus,
)
from app.core.errors import InvalidInput
from app.core.types import Library, LibraryName

router = APIRouter(prefix="/api/v1", tags=["libraries"])


@router.get(
    "/libraries", operation_id="list_libraries", response_model=LibraryList, responses=declared()
)
def list_libraries(services: Composition, edge: AtEdge) -> LibraryList:
    """Both libraries with their counts, from the catalog."""
    status = services.status()
    found = []
    for library in Library:
        counts = services.catalog.counts(library)
        found.append(
            LibraryStatus(
                library=library.value,
                documents=counts.documents,
                samples=counts.samples,
                chunks=counts.chunks,
                embedded=counts.embedded,
                bytes=counts.bytes,
                fingerprint=services.catalog.fingerprint(library),
                embedding=Embedding.of(status.embedding[library.value]),
                notices=list(status.embedding[library.value].notices),
                build=status.builds.get(library.value, "none"),
            )
        )
    asked = asked_by_default(services.catalog, edge.settings.default_library)
    return LibraryList(libraries=found, default_library=asked.library, default_reason=asked.reason)


@router.delete(
    "/libraries/{library}/documents",
    operation_id="clear_library",
    response_model=Cleared,
    responses=declared("disk_full"),
)
def clear_library(
    services: Composition,
    library: LibraryName,
    confirm: Annotated[str, Query(description="the library's name, to confirm")],
) -> Cleared:
    """Remove every document of a library. `confirm` must repeat its name."""
    if confirm != library:
        raise InvalidInput(
            f"confirm {confirm!r} must be {library!r}, the library that will be emptied"
        )
    gone = services.writer.delete_all(Library(library))
    return Cleared(
        library=library, documents=gone.documents, chunks=gone.chunks, vectors=gone.embedded
    )


@router.get(
    "/collection/stats",
    operation_id="collection_stats",
    response_model=CollectionStats,
    responses=declared(),
)
def collection_stats(services: Composition, library: OneLibrary) -> CollectionStats:
    """Counts of one library, by type of document."""
    return library_stats(services, library)
