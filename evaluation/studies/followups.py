"""Compare follow-ups without a model: as they are, and with the last subject.

    python -m evaluation.studies.followups [--data DIR]

Last questions of the conversations of mtragun over the passages of all of them; relevant are a
task's own. A change of topic is made here: a question that is found as it stands, asked after the
questions of another conversation. Writes evaluation/reports/followups.{md,json}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from app.answer.conversation import carried
from app.answer.search import LibrarySearcher, fused
from app.core.trace import Trace
from app.core.types import Library
from app.evaluation.metrics import bootstrap_interval
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions, SearchRequest
from evaluation.lib.extractive import Asking, conversations, rows
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


FOLLOW_UP = "Follow-up"
"""What mtragun calls a question that goes on with what was said."""
Turn = tuple[Asking, tuple[str, ...]]
"""A question, and the ones before it."""


def main() -> None:
    given = arguments(__doc__ or "").parse_args()
    asked, earlier = conversations(given.data)
    kinds = {
        str(task["task_id"]): str(task["Multi-Turn"])
        for task in rows(given.data / "foreign" / "mtragun" / "tasks.jsonl")
    }
    encoder = MiniLmEmbedder(given.cache / "graph").late_encoder()
    with indexed({Library.PUBLIC: [asked.collection]}, given.cache, encoder=encoder) as bench:
        turns = [
            (one, said)
            for one, said in zip(asked.questions, earlier, strict=True)
            if said and one.relevant
        ]
        groups = {
            "follow-ups": [turn for turn in turns if FOLLOW_UP in kinds[turn[0].question.id]],
            "other turns": [turn for turn in turns if FOLLOW_UP not in kinds[turn[0].question.id]],
            "changes of topic": _switched(bench, turns),
        }
        lines, figures = _report(bench, groups)
        made = replace(bench.provenance(), settings_hash=hash_of(RetrievalOptions()))
    write_figures(Figures("Follow-ups without a model", made, figures, tables=lines), "followups")


def _switched(bench: Bench, turns: Sequence[Turn]) -> list[Turn]:
    """Return questions that are found as they stand, after another conversation's questions."""
    complete = [one for one, _ in turns if _recall(bench, one, [one.question.text]) == 1.0]
    others = [said for _, said in turns]
    shift = len(others) // 2
    return [(one, others[(at + shift) % len(others)]) for at, one in enumerate(complete)]


def _report(
    bench: Bench, groups: Mapping[str, Sequence[Turn]]
) -> tuple[list[str], dict[str, float]]:
    lexical = bench.store.lexical
    searcher = LibrarySearcher(
        bench.retriever(RetrievalOptions()),
        bench.embedder,
        lambda words: lexical.document_frequencies(Library.PUBLIC, words)[1],
    )

    def carries(text: str, said: tuple[str, ...]) -> str | None:
        return carried(text, said, "public", lambda _: searcher)

    ways: dict[str, Callable[[str, tuple[str, ...]], list[str]]] = {
        "literal": lambda text, _: [text],
        "previous question in front": lambda text, said: [f"{said[-1]} {text}"],
        "carried alone": lambda text, said: [carries(text, said) or text],
        "literal and carried, fused": lambda text, said: [
            *filter(None, [carries(text, said)]),
            text,
        ],
    }
    lines = [
        f"Conversations of mtragun, recall@{TOP_K}, differences to the literal question with 95 %"
        " bootstrap intervals.",
        "",
        "| turns | questions | asked | recall@5 | difference | interval | better | worse |",
        "|---|---|---|---|---|---|---|---|",
    ]
    figures: dict[str, float] = {}
    for group, turns in groups.items():
        base: np.ndarray | None = None
        for name, way in ways.items():
            recalls = np.array(
                [_recall(bench, one, way(one.question.text, said)) for one, said in turns]
            )
            base = recalls if base is None else base
            gained = bootstrap_interval(recalls - base, seed=SEED)
            figures[f"{group}, {name}: recall@{TOP_K}"] = float(recalls.mean())
            cells = [
                f"{recalls.mean():.3f}",
                f"{gained.mean:+.3f}",
                f"{gained.low:+.3f} to {gained.high:+.3f}",
                str(int((recalls > base).sum())),
                str(int((recalls < base).sum())),
            ]
            lines.append(f"| {group} | {len(turns)} | {name} | {' | '.join(cells)} |")
    return [*lines, ""], figures


def _recall(bench: Bench, one: Asking, texts: Sequence[str]) -> float:
    retriever = bench.retriever(RetrievalOptions())
    searched = [
        retriever.retrieve(
            SearchRequest(text, Library.PUBLIC, top_k=TOP_K, keep_weak=True), Trace()
        )
        for text in texts
    ]
    hits = (fused(searched, TOP_K) if len(searched) > 1 else searched[0]).hits
    found = {bench.passage_of[hit.passage.document.doc_id] for hit in hits}
    return len(one.relevant & found) / min(TOP_K, len(one.relevant))


if __name__ == "__main__":
    main()
