"""Calibrate a library's embedder from the library's own sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from app.core.errors import InvalidInput, NotFound, PassageTooLong, ProviderUnreachable
from app.core.ports import Catalog, Embedder
from app.core.types import Fingerprint, Library
from app.evaluation.comparison import listed_documents, telling_sentences
from app.jobs.context import JobContext
from app.retrieval.calibration import Calibrations, equated
from app.retrieval.options import RetrievalOptions
from app.retrieval.search import Floats

SEED = 20_260_102
PAIRS = 200
"""Sentences asked: the median of so many is known to about 0.02 of a similarity."""

Pair = tuple[str, str]


class CalibrateJob:
    """Handler of `calibrate`. Running it again makes the same row again."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        calibrations: Calibrations,
        options: RetrievalOptions,
        made_with: Callable[[Library], Fingerprint | None],
        embedder_of: Callable[[Library], Embedder | None],
        reference: Callable[[], Embedder],
    ) -> None:
        """Take the parts the job needs.

        Args:
            catalog: The truth, read.
            calibrations: Where the row goes.
            options: Thresholds on the scale of the reference.
            made_with: What a library's vectors were made with.
            embedder_of: Who embeds for a library now.
            reference: The embedder that the thresholds were measured with.
        """
        self._catalog = catalog
        self._calibrations = calibrations
        self._options = options
        self._made_with = made_with
        self._embedder_of = embedder_of
        self._reference = reference

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Embed pairs with both embedders, compare, and keep the row.

        Raises:
            InvalidInput: The library is empty or has too few sentences.
            ProviderError: The embedder does not answer.
            Cancelled: Asked to stop; nothing is kept.
        """
        library = Library(str(context.payload["library"]))
        fingerprint, embedder = self._made_with(library), self._embedder_of(library)
        if fingerprint is None:
            raise InvalidInput(
                f"library {library.value!r} has no vectors; add documents to it first"
            )
        if embedder is None:
            raise ProviderUnreachable(
                f"the embedder of library {library.value!r} is away; see documind doctor"
            )
        known, others = pairs_of(self._catalog, library)
        context.progress(0, 2 * (len(known) + len(others)), "pairs")
        measured: list[Floats] = []
        done = 0
        for by in (embedder, self._reference()):
            for pairs in (known, others):
                measured.append(_similarities(by, pairs, context))
                done += len(pairs)
                context.progress(done)
        near, far, base_near, base_far = measured
        try:
            row = equated(self._options, near, far, base_near, base_far)
        except InvalidInput as error:
            if context.payload.get("automatic") is not True:
                raise
            return {"library": library.value, "calibrated": False, "reason": error.message}
        self._calibrations.keep(fingerprint, row)
        return {
            "library": library.value,
            "calibrated": True,
            "embedding_model": fingerprint.embedding_model,
            "pairs": len(known),
            **row.values(),
        }


def pairs_of(catalog: Catalog, library: Library) -> tuple[list[Pair], list[Pair]]:
    """Return sentences with their passage, and with a passage of another document."""
    rng = np.random.default_rng(SEED)
    documents = list(listed_documents(catalog, library))
    chosen = [documents[at] for at in rng.permutation(len(documents))[:PAIRS].tolist()]
    share = -(-PAIRS // max(1, len(chosen)))
    known: list[Pair] = []
    owners: list[str] = []
    for document in chosen:
        try:
            chunks = catalog.chunks(library, document.doc_id)
        except NotFound:  # deleted after it was listed
            continue
        texts = {chunk.chunk_id: chunk.text for chunk in chunks}
        sentences = list(telling_sentences(chunks))
        for pick in rng.permutation(len(sentences))[:share].tolist():
            sentence, chunk_id = sentences[pick]
            known.append((sentence, texts[chunk_id]))
            owners.append(document.doc_id)
    others: list[Pair] = []
    for at, (sentence, _) in enumerate(known):
        foreign = [
            row for row in rng.integers(0, len(known), size=8).tolist() if owners[row] != owners[at]
        ]
        if foreign:
            others.append((sentence, known[foreign[0]][1]))
    return known[:PAIRS], others[:PAIRS]


def _similarities(embedder: Embedder, pairs: list[Pair], context: JobContext) -> Floats:
    """Return each pair's cosine similarity, float64 `[n]`, without over-long pairs."""
    found: list[float] = []
    for sentence, passage in pairs:
        context.checkpoint()
        try:
            found.append(
                float(embedder.embed_passages([passage])[0] @ embedder.embed_query(sentence))
            )
        except PassageTooLong:
            continue
    return np.array(found, dtype=np.float64)
