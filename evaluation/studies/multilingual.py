"""Measure search in several languages, and make the multilingual model's calibration.

    python -m evaluation.studies.multilingual [--data DIR] [--questions N]

Each language of XQuAD (`foreign/xquad`) is a library that is asked in its own language; the English
one is asked in every other one, too. The row of `app/retrieval/calibrations.json` is equated on
sentences of the English one, which MiniLM knows. Writes evaluation/reports/languages.{md,json}.

References:
    Artetxe et al.: On the Cross-lingual Transferability of Monolingual Representations, ACL 2020.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app.bootstrap.evaluation import Bench, bench
from app.core.ids import checkout_sha, embedder_key
from app.core.ports import Embedder
from app.core.sentences import sentence_spans
from app.core.trace import Trace
from app.core.types import Fusion, Library
from app.evaluation.collections import Collection, from_folder
from app.evaluation.metrics import per_question
from app.evaluation.report import ReportProvenance
from app.ingest.names import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.models.multilingual import MultilingualEmbedder
from app.retrieval.pipeline import Retriever
from app.retrieval.reading import Calibration, equated
from app.retrieval.request import RetrievalOptions, SearchRequest
from app.retrieval.search import Floats
from evaluation.lib.workbench import SEED, Figures, arguments, hash_of, say, write_figures

LANGUAGES = ("en", "de", "es", "ru", "zh")
ARMS: tuple[Fusion, ...] = ("relative_score", "dense", "lexical")
SENTENCES = 400
"""Pairs that the calibration is made of."""

Cells = dict[str, float]
"""nDCG@10 by `embedder questions>passages arm`."""


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--questions", type=int, default=200, help="most questions a language")
    given = parser.parse_args()
    sets = {code: from_folder(given.data / "foreign/xquad" / code) for code in LANGUAGES}
    minilm, multilingual = MiniLmEmbedder(given.cache / "graph"), MultilingualEmbedder()
    base = RetrievalOptions()
    row = _calibration(sets["en"], minilm, multilingual, base)
    cells: Cells = {}
    for embedder, options in ((minilm, base), (multilingual, row.applied(base))):
        for code in LANGUAGES:
            with bench({Library.PUBLIC: [sets[code]]}, embedder, ingest=IngestOptions()) as opened:
                asked = LANGUAGES if code == "en" else (code,)
                for name, value in _cells(opened, options, code, asked, sets, given.questions):
                    cells[name] = value
                    say(f"{name}: {value:.3f}")
                key = embedder_key(opened.store.made_with(Library.PUBLIC))  # type: ignore[arg-type]
    models = {one.identity.model: one.identity.digest for one in (minilm, multilingual)}
    made = ReportProvenance(checkout_sha(), hash_of(base, given.questions), "", models, SEED)
    constants = {f"calibration {key} {name}": value for name, value in row.values().items()}
    remark = (
        "nDCG@10 through the retriever, without late interaction; `asked>passages` name the"
        " languages."
    )
    write_figures(
        Figures("Search in several languages", made, cells | constants, remarks=[remark]),
        "languages",
    )


def _cells(
    opened: Bench,
    options: RetrievalOptions,
    code: str,
    asked: tuple[str, ...],
    sets: dict[str, Collection],
    most: int,
) -> Iterator[tuple[str, float]]:
    """Yield the nDCG@10 of each arm for each language that a library is asked in."""
    store = opened.store
    retriever = Retriever(store.catalog, store.vectors, store.lexical, opened.embedder, options)
    for language in asked:
        questions = sets[language].questions[:most]
        for arm in ARMS:
            rankings = {
                question.id: _ranking(retriever, question.text, arm, opened)
                for question in questions
            }
            values = per_question(rankings, sets[language].relevance, ["nDCG@10"])["nDCG@10"]
            name = f"{opened.embedder.identity.provider} {language}>{code} {arm}"
            yield name, float(np.mean(list(values.values())))


def _ranking(retriever: Retriever, text: str, arm: Fusion, opened: Bench) -> list[str]:
    request = SearchRequest(text, Library.PUBLIC, top_k=10, fusion=arm, keep_weak=True)
    hits = retriever.retrieve(request, Trace()).hits
    return list(dict.fromkeys(opened.passage_of[hit.passage.chunk.doc_id] for hit in hits))


def _calibration(
    english: Collection, minilm: Embedder, other: Embedder, base: RetrievalOptions
) -> Calibration:
    """Return the row that puts an embedder's similarities on MiniLM's scale."""
    rng = np.random.default_rng(SEED)
    texts = [passage.text[:900] for passage in english.passages]
    pairs = [
        (text[start:end], at)
        for at, text in enumerate(texts)
        for start, end in sentence_spans(text)
        if end - start > 40
    ]
    chosen = [pairs[at] for at in rng.permutation(len(pairs))[:SENTENCES].tolist()]
    shift = rng.integers(1, len(texts), size=len(chosen)).tolist()
    measured: list[Floats] = []
    for embedder in (other, minilm):
        rows = embedder.embed_passages(texts)
        asked = [(embedder.embed_query(sentence), at) for sentence, at in chosen]
        measured.append(np.array([float(rows[at] @ vector) for vector, at in asked]))
        measured.append(
            np.array(
                [
                    float(rows[(at + by) % len(texts)] @ vector)
                    for (vector, at), by in zip(asked, shift, strict=True)
                ]
            )
        )
    return equated(base, *measured)


if __name__ == "__main__":
    main()
