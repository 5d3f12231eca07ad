"""Measure the quoting answerer on odd lines; with --write fit it on even lines.

    python -m evaluation.studies.extractive [--data DIR] [--questions N] [--write]

Questions of three collections are asked of their own library and of the other two, so that the evidence is right, weak or absent.
Reports go to evaluation/reports/extractive.{json,md}; `--write` uses all questions and replaces app/generation/extractive.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from app.bootstrap.libraries import fingerprint_of
from app.core.ids import fingerprint8
from app.core.release import checkout_sha
from app.evaluation.statistics import bootstrap_interval
from app.generation.extractive import rendered
from app.ingest.options import IngestOptions
from app.providers.minilm import MiniLmEmbedder
from app.retrieval.options import RetrievalOptions
from evaluation.lib.extractive.asked import TOP_K, Asked, Material, gather, holds
from evaluation.lib.extractive.fitting import WEIGHTS, Weights, fit, packaged, shipped
from evaluation.lib.paths import REPORTS
from evaluation.lib.workbench import SEED, arguments, hash_of

COMMAND = "python -m evaluation.studies.extractive --write"


def figures(weights: Weights, questions: Sequence[Asked], threshold: float) -> dict[str, object]:
    """Return how often answers have the gold string, first or at all, or are empty."""
    first, some, none, dangling, words, sentences = [], [], [], [], [], []
    for one in questions:
        quoted = weights.chosen(one) if weights.probability(one) >= threshold else ()
        none.append(not quoted)
        first.append(bool(quoted) and holds(quoted[0].text, one.question))
        some.append(any(holds(candidate.text, one.question) for candidate in quoted))
        if quoted:
            dangling.append(quoted[0].dangles)
            words.append(sum(len(rendered(candidate).split()) for candidate in quoted))
            sentences.append(len(quoted))
    return {
        "questions": len(questions),
        "gold_in_first": _share(first),
        "gold_in_three": _share(some),
        "abstained": _share(none),
        "opens_with_dangling_pronoun": _share(dangling),
        "most_words": max(words, default=0),
        "most_sentences": max(sentences, default=0),
    }


def _share(flags: Sequence[bool]) -> dict[str, float]:
    interval = bootstrap_interval(np.asarray(flags, dtype=np.float64), seed=SEED, resamples=2000)
    return {"share": round(interval.mean, 4), "low": round(interval.low, 4), "high": round(interval.high, 4)}


def abstained(weights: Weights, questions: Sequence[Asked], threshold: float) -> float:
    """Return the share of questions that get the refusal."""
    return float(np.mean([weights.probability(one) < threshold for one in questions]))


def report(material: Material, weights: Weights, threshold: float) -> dict[str, object]:
    """Return the figures of odd lines."""
    odd = {name: [one for one in questions if not one.even] for name, questions in (material.own | material.foreign).items()}
    curve = [
        {
            "answer_from": round(at, 2),
            **{name: round(abstained(weights, questions, at), 4) for name, questions in odd.items()},
        }
        for at in np.arange(0.0, 1.0, 0.1)
    ]
    return {
        "squad": figures(weights, odd["squad"], threshold),
        "abstained": {name: _share([weights.probability(one) < threshold for one in questions]) for name, questions in odd.items()},
        "curve": curve,
    }


def markdown(result: Mapping[str, object]) -> str:
    """Return the report as Markdown."""
    lines = [
        "# Quoted answers",
        "",
        f"Weights fitted on even lines by `{result['command']}`, figures from odd lines, {TOP_K} passages per question,",
        f"nothing quoted under a probability of {result['answer_from']}. Shares with 95 % bootstrap intervals.",
    ]
    for name in ("with_vectors", "words_only"):
        part = result[name]
        assert isinstance(part, dict)
        squad = part["squad"]
        lines += ["", f"## {name}", "", "| measure | share | interval |", "|---|---|---|"]
        for measure in ("gold_in_first", "gold_in_three", "opens_with_dangling_pronoun"):
            lines.append(_line(f"squad, {squad['questions']} answerable questions: {measure.replace('_', ' ')}", squad[measure]))
        lines += [_line(f"nothing quoted: {asked}", share) for asked, share in part["abstained"].items()]
        lines += ["", f"Longest answer: {squad['most_sentences']} sentences, {squad['most_words']} words with marks.", ""]
        names = [key for key in part["curve"][0] if key != "answer_from"]
        lines += [f"| quoted from | {' | '.join(names)} |", f"|---{'|---' * len(names)}|"]
        lines += [f"| {row['answer_from']} | {' | '.join(f'{row[key]:.3f}' for key in names)} |" for row in part["curve"]]
    lines += ["", "Last tables: share of questions that get the refusal, by the probability from which sentences are quoted."]
    made = result["provenance"]
    assert isinstance(made, dict)
    lines += ["", f"Made from git {made['git_sha'][:12]}, index {made['fingerprint']}, seed {made['seed']}."]
    return "\n".join(lines) + "\n"


def _line(name: str, share: Mapping[str, float]) -> str:
    return f"| {name} | {share['share']:.3f} | {share['low']:.3f} to {share['high']:.3f} |"


def main() -> None:
    """Fit, report, and on request write the weights."""
    parser = arguments("Fit and report the quoting answerer.")
    parser.add_argument("--write", action="store_true", help="fit again and replace app/generation/extractive.json")
    parser.add_argument("--questions", type=int, default=1200, help="most questions of squad, unless the weights are fitted")
    parser.add_argument("--answer-from", type=float, default=0.3, help="least probability at which anything is quoted")
    options = parser.parse_args()
    material = gather(options.data, options.cache, None if options.write else options.questions)
    if options.write:
        with_vectors, words_only = fit(material, words_only=False), fit(material, words_only=True)
    else:
        with_vectors, words_only = shipped(words_only=False), shipped(words_only=True)
    model = MiniLmEmbedder(options.cache / "graph").identity
    result = {
        "command": COMMAND,
        "provenance": {
            "git_sha": checkout_sha(),
            "settings_hash": hash_of(RetrievalOptions(), options.answer_from),
            "fingerprint": fingerprint8(fingerprint_of(model, IngestOptions())),
            "models": {model.model: model.digest},
            "seed": SEED,
        },
        "answer_from": options.answer_from,
        "with_vectors": report(material, with_vectors, options.answer_from),
        "words_only": report(material, words_only, options.answer_from),
    }
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / "extractive.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (REPORTS / "extractive.md").write_text(markdown(result), encoding="utf-8")
    print(markdown(result))
    if options.write:
        WEIGHTS.write_text(
            json.dumps(packaged(with_vectors, words_only, options.answer_from, COMMAND), indent=2) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
