"""Compare follow-ups without a model: as they are, and with the last subject.

    python -m evaluation.studies.followups [--data DIR]

Last questions of the conversations of mtragun over the passages of all of them; relevant are a
task's own. Writes evaluation/reports/followups.{md,json}.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from app.answer.carrying import carried
from app.answer.search import LibrarySearcher
from app.core.trace import Trace
from app.core.types import Fusion, Library
from app.evaluation.statistics import bootstrap_interval
from app.providers.minilm import MiniLmEmbedder
from app.retrieval.options import RetrievalOptions
from app.retrieval.request import SearchRequest
from evaluation.lib.extractive.material import Asking, conversations
from evaluation.lib.workbench import (
    SEED,
    Bench,
    Figures,
    arguments,
    hash_of,
    indexed,
    write_figures,
)

TOP_K = 5


def main() -> None:
    """Ask every follow-up in four wordings and write the report."""
    given = arguments(__doc__ or "").parse_args()
    asked, earlier = conversations(given.data)
    encoder = MiniLmEmbedder(given.cache / "graph").late_encoder()
    with indexed({Library.PUBLIC: [asked.collection]}, given.cache, encoder=encoder) as bench:
        followups = [
            (one, said)
            for one, said in zip(asked.questions, earlier, strict=True)
            if said and one.relevant
        ]
        lines, figures = _report(bench, followups)
        made = replace(bench.provenance(), settings_hash=hash_of(RetrievalOptions()))
    write_figures(Figures("Follow-ups without a model", made, figures, tables=lines), "followups")


def _report(
    bench: Bench, followups: list[tuple[Asking, tuple[str, ...]]]
) -> tuple[list[str], dict[str, float]]:
    lexical = bench.store.lexical
    searcher = LibrarySearcher(
        bench.retriever(RetrievalOptions()),
        bench.embedder,
        lambda words: lexical.document_frequencies(Library.PUBLIC, words)[1],
    )
    wordings: dict[str, Callable[[str, tuple[str, ...]], str]] = {
        "literal": lambda text, _: text,
        "previous question in front": lambda text, said: f"{said[-1]} {text}",
        "carried": lambda text, said: carried(text, said, "public", lambda _: searcher) or text,
    }
    lines = [
        f"{len(followups)} follow-ups of mtragun with relevant passages, recall@{TOP_K}, differences to the literal question with"
        " 95 % bootstrap intervals.",
        "",
        "| search | question | recall@5 | difference | interval | better | worse |",
        "|---|---|---|---|---|---|---|",
    ]
    figures: dict[str, float] = {"follow-ups": len(followups)}
    fusions: tuple[Fusion, ...] = ("relative_score", "lexical")
    for fusion in fusions:
        base: np.ndarray | None = None
        for name, wording in wordings.items():
            recalls = np.array(
                [
                    _recall(bench, one, wording(one.question.text, said), fusion)
                    for one, said in followups
                ]
            )
            base = recalls if base is None else base
            gained = bootstrap_interval(recalls - base, seed=SEED)
            figures[f"{fusion}, {name}: recall@{TOP_K}"] = float(recalls.mean())
            cells = [
                f"{recalls.mean():.3f}",
                f"{gained.mean:+.3f}",
                f"{gained.low:+.3f} to {gained.high:+.3f}",
            ]
            cells += [str(int((recalls > base).sum())), str(int((recalls < base).sum()))]
            lines.append(f"| {fusion} | {name} | {' | '.join(cells)} |")
    return [*lines, ""], figures


def _recall(bench: Bench, one: Asking, text: str, fusion: Fusion) -> float:
    request = SearchRequest(text, Library.PUBLIC, top_k=TOP_K, fusion=fusion, keep_weak=True)
    hits = bench.retriever(RetrievalOptions()).retrieve(request, Trace()).hits
    found = {bench.passage_of[hit.passage.document.doc_id] for hit in hits}
    return len(one.relevant & found) / min(TOP_K, len(one.relevant))


if __name__ == "__main__":
    main()
