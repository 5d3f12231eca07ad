"""Hold the figures of the retrieval studies against their limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

COLLECTIONS = ("squad", "cranfield", "pubmedqa", "clapnq")
LEVEL = 0.05
_MEAN = ("mean ratio to the better leg", "its 95 % interval, low", "its 95 % interval, high")


Read = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A figure, what it must be, and whether it is."""

    what: str
    value: str
    limit: str
    kept: bool
    report: str


def by_collection(report: Read) -> dict[str, Read]:
    """Return the experiments of a report by the name of their collection."""
    return {experiment["collection"]: experiment for experiment in report["experiments"]}


def mean_of(experiment: Read, arm: str) -> float:
    """Return the mean nDCG@10 of an arm, in [0, 1]."""
    return float(
        next(a for a in experiment["arms"] if a["name"] == arm)["measures"]["nDCG@10"]["mean"]
    )


def comparison_of(experiment: Read, arm: str) -> Read:
    """Return how an arm compares with the baseline of its experiment."""
    found: Read = next(c for c in experiment["comparisons"] if c["arm"] == arm)
    return found


def _fusion(report: Read) -> Iterator[Row]:
    found = by_collection(report)
    for arm, least in (("dense", 0.76), ("bm25", 0.87)):
        alone = mean_of(found["squad"], arm)
        yield Row(
            f"squad: {arm} alone, nDCG@10",
            f"{alone:.4f}",
            f"at least {least}",
            alone >= least,
            "fusion",
        )
    for name in COLLECTIONS:
        against = comparison_of(found[name], "default")
        difference, p = against["difference"], against["p_holm"]
        value = (
            f"{difference['mean']:+.4f} [{difference['low']:+.4f}, {difference['high']:+.4f}],"
            f" p {p:.4f}"
        )
        if name == "squad":
            kept = difference["mean"] >= 0.03 and p <= LEVEL
            yield Row(
                "squad: default above RRF (k = 60)",
                value,
                "at least 0.03, significantly",
                kept,
                "fusion",
            )
        else:
            kept = difference["mean"] >= 0 or p > LEVEL
            yield Row(
                f"{name}: default against RRF", value, "never significantly below", kept, "fusion"
            )
    figures = report["figures"]
    for name in COLLECTIONS:
        ratio = float(figures[f"{name}: default / better leg"])
        yield Row(
            f"{name}: default / better leg",
            f"{ratio:.4f}",
            "at least 0.995",
            ratio >= 0.995,
            "fusion",
        )
    gain = sum(
        mean_of(found[name], "default") - mean_of(found[name], "rrf") for name in COLLECTIONS
    )
    gain /= len(COLLECTIONS)
    yield Row(
        "default above RRF of the same legs, mean", f"{gain:+.4f}", "over 0", gain > 0, "fusion"
    )
    mean, low, high = (float(figures[key]) for key in _MEAN)
    yield Row(
        "mean ratio to the better leg", f"{mean:.4f}", "at least 1.03", mean >= 1.03, "fusion"
    )
    yield Row(
        "its 95 % interval", f"{low:.4f} to {high:.4f}", "lower end above 1.00", low > 1.0, "fusion"
    )


def _ann(report: Read) -> Iterator[Row]:
    largest = report["steps"][-1]
    value, vectors = float(largest["dense recall@10"]), int(largest["vectors"])
    yield Row(
        f"approximate search at {vectors:,} vectors, recall@10",
        f"{value:.4f} (p95 {largest['dense p95_ms']:.1f} ms)",
        "at least 0.97",
        value >= 0.97,
        "ann",
    )


def _poison(report: Read) -> Iterator[Row]:
    value = float(
        report["figures"]["share of the top five taken by a question's near-copies, default"]
    )
    yield Row(
        "20 topics x 5 near-copies: their share of the top five",
        f"{value:.3f}",
        "at most 0.2",
        value <= 0.2 + 1e-9,
        "poison",
    )


def _two(report: Read) -> Iterator[Row]:
    figures = report["figures"]
    sizes = (
        f"{int(figures['papers at a time'])} papers and {int(figures['public passages']):,}"
        " passages"
    )
    for k in (5, 10):
        alone, both = (
            float(figures[f"{title}: gold among {k}"])
            for title in ("papers alone", "both libraries")
        )
        value = f"{both:.3f} against {alone:.3f} alone"
        yield Row(
            f"{sizes}: gold among {k}",
            value,
            "at most 0.02 lost",
            alone - both <= 0.02,
            "two_libraries",
        )
    named = int(figures["library public: calls that name papers"])
    yield Row("`library: public`: reads of papers", str(named), "none", named == 0, "two_libraries")


def _closeness(report: Read) -> Iterator[Row]:
    figures: dict[str, float] = report["figures"]
    areas = {
        name: value
        for name, value in figures.items()
        if name.endswith("AUC closeness") and "unanswerable" not in name
    }
    least = min(areas, key=lambda name: areas[name])
    yield Row(
        f"questions of another subject, lowest AUC ({least.split(':')[0]})",
        f"{areas[least]:.4f}",
        "reported",
        True,
        "closeness",
    )
    for name, value in figures.items():
        if "unanswerable" in name and name.endswith("AUC closeness"):
            yield Row(
                "unanswerable squad questions, AUC",
                f"{value:.3f}",
                "reported, nothing is promised",
                True,
                "closeness",
            )


def _late(report: Read) -> Iterator[Row]:
    """The default against search without its five steps, on each development set."""
    gains = []
    for name, experiment in by_collection(report).items():
        difference = comparison_of(experiment, "default")["difference"]
        gains.append(float(difference["mean"]))
        yield Row(
            f"{name}, {experiment['questions']} questions: default against before",
            f"{difference['mean']:+.4f} [{difference['low']:+.4f}, {difference['high']:+.4f}]",
            "harms no set by more than 0.005",
            gains[-1] >= -0.005,
            "late",
        )
    mean = sum(gains) / len(gains)
    yield Row("its mean over the sets", f"{mean:+.4f}", "helps", mean > 0, "late")


LIMITS = {
    "fusion": _fusion,
    "late": _late,
    "closeness": _closeness,
    "poison": _poison,
    "ann": _ann,
    "two_libraries": _two,
}
