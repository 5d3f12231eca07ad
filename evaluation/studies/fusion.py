"""Choose fusion, weights and steps on even lines; report on odd ones.

    python -m evaluation.studies.fusion [--data DIR] [--questions N]

Writes evaluation/reports/fusion.{md,csv,json}, and a page with charts and passages in the folder of
the cached vectors. With vectors cached it takes some minutes on two cores.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from app.core.types import Library
from app.evaluation.arms import Arm, plain, standard_arms
from app.evaluation.collections import Collection, from_folder
from app.evaluation.metrics import RESAMPLES
from app.evaluation.report import Experiment, report_of, settings_hash, to_html
from app.evaluation.runner import RetrieverSearch, run
from app.evaluation.workshop import Bench
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions
from evaluation.lib.reports import COLLECTIONS, SEED, options, say, write_arms
from evaluation.lib.workbench import indexed, made_with

SETS = ("squad", "cranfield", "pubmedqa", "foreign/clapnq")
TOP_K = 20
"""Passages asked for, so that both legs are asked for 96 (public, general); quality is measured
at 10."""


def main() -> None:
    given = options(
        __doc__,
        **COLLECTIONS,
        questions=(500, "most questions per collection that are reported"),
        tuning_questions=(150, "most questions per collection that defaults are chosen on"),
    )
    reported: list[Experiment] = []
    chosen: list[Experiment] = []
    encoder = MiniLmEmbedder()
    for name in SETS:
        judged = from_folder(given.data / name).judged()
        with indexed(judged, given.cache, encoder) as bench:
            even = judged.half("even").sample(given.tuning_questions, SEED)
            chosen.append(_compare(bench, even, _tuned(), resamples=200))
            odd = judged.half("odd").sample(given.questions, SEED)
            reported.append(_compare(bench, odd, _reported()))
    report = report_of(
        "Fusion: what each step is worth",
        made_with(settings_hash(reported)),
        reported,
        (
            "The server's own parser, chunker, index and retriever; one text file per passage,"
            " ranked by document; odd lines of the"
            f" questions, at most {given.questions} per collection, both legs asked for 96"
            " candidates.",
            f"Chosen on even lines, at most {given.tuning_questions} (mean nDCG@10 over the"
            f" collections): {_choices(chosen)}.",
        ),
        _against_legs(reported),
    )
    write_arms(report, "fusion")
    page = (
        given.cache / "fusion.html"
    )  # it quotes passages of the collections, which are not ours to publish
    page.write_text(to_html(report), encoding="utf-8")
    say(f"with charts and passages: {page}")


def _tuned() -> list[Arm]:
    default = RetrievalOptions()
    return [
        plain("rrf", "rrf"),
        plain("min-max", "relative_score"),
        *grid(default, {"keyword_fusion_weight": (0.2, 0.3), "phrase_fusion_weight": (0.0, 0.2)}),
        *grid(default, {"dense_weight": (0.4, 0.6)}),
        *grid(default, {"rerank_head": (30,)}),
    ]


def _reported() -> list[Arm]:
    plainer = replace(RetrievalOptions(), rerank="none")
    return [*standard_arms(), Arm("without late", plainer, note="default without late interaction")]


def _compare(
    bench: Bench, collection: Collection, arms: Sequence[Arm], resamples: int = RESAMPLES
) -> Experiment:
    search = RetrieverSearch(
        lambda arm: bench.retriever(arm.options), Library.PUBLIC, bench.passage_of
    )
    return run(
        collection, arms, search, baseline="rrf", seed=SEED, top_k=TOP_K, resamples=resamples,
        progress=say,
    )  # fmt: skip


def grid(base: RetrievalOptions, axes: Mapping[str, Sequence[object]]) -> Iterator[Arm]:
    """Yield an arm per combination of values of options, named like `dense_weight=0.3 rrf_k=60`."""
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        yield Arm(
            " ".join(f"{name}={value}" for name, value in chosen.items()),
            replace(base, **chosen),  # type: ignore[arg-type]
        )


def _choices(experiments: Sequence[Experiment]) -> str:
    names = [arm.name for arm in experiments[0].shown.arms]
    means = {
        name: float(np.mean([e.arm(name).measures["nDCG@10"].mean for e in experiments]))
        for name in names
    }
    return "; ".join(
        f"{name} {mean:.4f}" for name, mean in sorted(means.items(), key=lambda item: -item[1])
    )


def _against_legs(experiments: Sequence[Experiment], resamples: int = 2000) -> dict[str, float]:
    """Return the default over the better leg: per collection, mean, interval over questions."""
    draw = np.random.default_rng(SEED)
    figures: dict[str, float] = {}
    drawn = np.zeros((len(experiments), resamples))
    for row, experiment in enumerate(experiments):
        columns = [
            np.array(list(experiment.arm(arm).per_question.values()))
            for arm in ("default", "dense", "bm25")
        ]
        default, dense, lexical = columns
        figures[f"{experiment.shown.collection}: default / better leg"] = default.mean() / max(
            dense.mean(), lexical.mean()
        )
        for at in range(resamples):
            rows = draw.integers(0, len(default), len(default))
            drawn[row, at] = default[rows].mean() / max(dense[rows].mean(), lexical[rows].mean())
    mean = drawn.mean(axis=0)
    figures["mean ratio to the better leg"] = float(
        np.mean([figures[f"{e.shown.collection}: default / better leg"] for e in experiments])
    )
    figures["its 95 % interval, low"], figures["its 95 % interval, high"] = (
        float(q) for q in np.quantile(mean, [0.025, 0.975])
    )
    return {name: float(value) for name, value in figures.items()}


if __name__ == "__main__":
    main()
