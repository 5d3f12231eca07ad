"""Make notices of a search that found nothing, or searched by words alone."""

from __future__ import annotations

from app.core.languages import language_name
from app.core.ports import Catalog
from app.core.types import Notice
from app.retrieval.legs import Pool
from app.retrieval.request import SearchRequest


def nothing_found(catalog: Catalog, request: SearchRequest) -> tuple[Notice, ...]:
    """Return why no passage can be found: an empty library, or the filters."""
    if not catalog.counts(request.library).chunks:
        name = request.library.value
        return (
            Notice(
                "library_empty",
                f"the library {name!r} is empty; add documents to it, or load the samples",
            ),
        )
    if request.filters:
        return (
            Notice(
                "filter_matched_nothing", "no passage matches the filters; widen or remove them"
            ),
        )
    return ()


def trouble(pool: Pool) -> tuple[Notice, ...]:
    """Return notices about the dense leg."""
    if pool.unknown_language:
        language = language_name(pool.unknown_language)
        return (
            Notice(
                "language_differs",
                f"the question is in {language}, which the embedding model of this library does"
                " not know: passages are"
                " found by their words; for a model of many languages, run: documind models use"
                " multilingual",
            ),
        )
    if pool.trouble == "embedder_unavailable":
        return (
            Notice(
                "embedder_unavailable",
                "the question could not be embedded; passages were ranked by their words alone",
            ),
        )
    if pool.trouble == "index_rebuilding":
        return (
            Notice(
                "index_rebuilding",
                "the vector index is being made ready; passages were found by their words alone",
            ),
        )
    if pool.without_vector:
        return (
            Notice(
                "vectors_missing",
                f"{pool.without_vector} of {len(pool.candidates)} candidates have no vector yet:"
                " ranked by their words alone",
            ),
        )
    return ()
