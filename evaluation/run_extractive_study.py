"""The quoting answerer: its weights on odd lines of the questions; with --write they are fitted on even lines first.

    python -m evaluation.run_extractive_study [--data ../shared/data] [--questions N] [--write]

Questions of three collections are asked of their own library and of the other two, so that the evidence is right, weak or absent.
Reports go to evaluation/reports/extractive.{json,md}; `--write` uses all questions and replaces app/generation/extractive.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.bootstrap.libraries import fingerprint_of
from app.core.ids import fingerprint8
from app.core.ports import Embedder
from app.core.trace import Trace
from app.core.types import EmbedderIdentity, Evidence, FloatArray, Library
from app.evaluation.collections import Collection, TestQuestion, from_folder
from app.evaluation.statistics import bootstrap_interval
from app.generation.candidates import Candidate, candidates
from app.generation.extractive import choose, probability, rendered
from app.generation.features import (
    FEATURES,
    SUFFICIENCY,
    Floats,
    candidate_weights,
    feature_rows,
    sentence_vectors,
    sufficiency_row,
)
from app.ingest.options import IngestOptions
from app.providers.minilm import MiniLmEmbedder
from app.retrieval.options import RetrievalOptions
from app.retrieval.request import SearchRequest
from evaluation.workbench import REPORTS, ROOT, SEED, Bench, arguments, git_sha, hash_of, indexed

WEIGHTS = ROOT / "app" / "generation" / "extractive.json"
COMMAND = "python -m evaluation.run_extractive_study --write"
TOP_K = 5
_RIDGE = 0.5
_MOST = 300
"""Questions per pair of collections where only abstention is learned."""
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One question with its evidence, read once."""

    question: TestQuestion
    evidence: tuple[Evidence, ...]
    found: tuple[Candidate, ...]
    rows: Floats
    rows_words_only: Floats
    judged: Floats
    judged_words_only: Floats
    gold: Flags
    """Per candidate: it holds one of the answers."""
    fallback: bool

    @property
    def even(self) -> bool:
        """Whether the question is for choosing."""
        return self.question.line % 2 == 0


class RememberingEmbedder:
    """An embedder that computes each text once: questions of one library share their sentences."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._passages: dict[str, FloatArray] = {}

    @property
    def identity(self) -> EmbedderIdentity:
        """Of the embedder behind."""
        return self._inner.identity

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return float32 `[n, dim]`, rows of L2 norm 1, in order."""
        new = [text for text in dict.fromkeys(texts) if text not in self._passages]
        if new:
            self._passages.update(zip(new, self._inner.embed_passages(new), strict=True))
        return np.stack([self._passages[text] for text in texts])

    def embed_query(self, text: str) -> FloatArray:
        """Return float32 `[dim]` of L2 norm 1."""
        return self._inner.embed_query(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the model's own counts."""
        return self._inner.count_tokens(texts)


def evidence_for(bench: Bench, library: Library, question: TestQuestion) -> tuple[Evidence, ...]:
    """Return numbered passages as the server would read them for a question."""
    hits = bench.retriever(RetrievalOptions()).retrieve(SearchRequest(question.text, library, top_k=TOP_K), Trace()).hits
    return tuple(Evidence(n, hit) for n, hit in enumerate(hits, start=1))


def ask(bench: Bench, library: Library, questions: Sequence[TestQuestion]) -> list[Asked]:
    """Return every question with its evidence, candidates and features."""
    embedder = RememberingEmbedder(bench.embedder)
    return [_read(question, evidence_for(bench, library, question), embedder) for question in questions]


def _read(question: TestQuestion, evidence: tuple[Evidence, ...], embedder: Embedder) -> Asked:
    found = tuple(candidates(evidence))
    weights = candidate_weights(found)
    vectors = sentence_vectors(question.text, found, weights, embedder)
    rows = feature_rows(question.text, found, weights, vectors)
    words_only = feature_rows(question.text, found, weights, None)
    none = np.zeros(len(SUFFICIENCY))
    gold = np.array([holds(candidate.text, question) for candidate in found], dtype=bool)
    return Asked(
        question,
        evidence,
        found,
        rows,
        words_only,
        sufficiency_row(question.text, found, rows, vectors) if found else none,
        sufficiency_row(question.text, found, words_only, None) if found else none,
        gold,
        all(item.hit.fallback for item in evidence),
    )


def holds(text: str, question: TestQuestion) -> bool:
    """Whether a text has one of the answers in it."""
    return any(answer.lower() in text.lower() for answer in question.answers)


def fit_ranking(questions: Sequence[Asked], *, words_only: bool) -> Floats:
    """Return weights that make a sentence with the answer the likeliest of its question.

    The loss is the negative logarithm of the softmax mass on sentences that hold an answer, with a ridge; convex enough for L-BFGS
    to end in the same place from zero each time.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - the eval extra

    usable = [one for one in questions if one.gold.any() and not one.gold.all()]
    rows = np.vstack([one.rows_words_only if words_only else one.rows for one in usable])
    gold = np.concatenate([one.gold for one in usable])
    sizes = [len(one.gold) for one in usable]
    owner = np.repeat(np.arange(len(usable)), sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = rows @ weights
        mass = np.exp(scores - np.maximum.reduceat(scores, starts)[owner])
        right = mass * gold
        whole, part = np.add.reduceat(mass, starts), np.add.reduceat(right, starts)
        slope = rows.T @ (mass / whole[owner] - right / part[owner]) + _RIDGE * weights
        return float(-(np.log(part) - np.log(whole)).sum() + _RIDGE * (weights @ weights) / 2), slope

    found: Floats = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x
    return found


def fit_sufficiency(groups: Sequence[tuple[Sequence[Asked], bool]], *, words_only: bool) -> Floats:
    """Return logistic weights and bias that tell evidence which bears on its question from evidence that does not.

    Groups count alike whatever their size, and both classes count alike.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - the eval extra

    rows, labels, shares = [], [], []
    for questions, bears in groups:
        same = sum(label == bears for _, label in groups)
        for one in questions:
            rows.append(np.append(one.judged_words_only if words_only else one.judged, 1.0))
            labels.append(bears)
            shares.append(1000.0 / (same * len(questions)))
    matrix, target, share = np.vstack(rows), np.asarray(labels, dtype=np.float64), np.asarray(shares)

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = matrix @ weights
        likelihood = share * (np.logaddexp(0, scores) - target * scores)
        slope = matrix.T @ (share * (1 / (1 + np.exp(-scores)) - target)) + _RIDGE * weights
        return float(likelihood.sum() + _RIDGE * (weights @ weights) / 2), slope

    found: Floats = minimize(loss, np.zeros(matrix.shape[1]), jac=True, method="L-BFGS-B").x
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """What one way of reading (with vectors or words only) was fitted to."""

    ranking: Floats
    sufficiency: Floats
    words_only: bool

    def probability(self, one: Asked) -> float:
        """Return the probability that a question's evidence bears on it; 0 for a fallback."""
        if one.fallback or not one.found:
            return 0.0
        return probability(one.judged_words_only if self.words_only else one.judged, self.sufficiency)

    def chosen(self, one: Asked) -> tuple[Candidate, ...]:
        """Return the sentences that would be quoted if any are."""
        return choose(one.found, (one.rows_words_only if self.words_only else one.rows) @ self.ranking)


def figures(weights: Weights, questions: Sequence[Asked], threshold: float) -> dict[str, object]:
    """Return how often the gold string stands in the first and in any sentence, and how often nothing is quoted."""
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


@dataclass(frozen=True, slots=True)
class Material:
    """All questions by what they were asked of."""

    own: dict[str, list[Asked]]
    """The library holds their answers, by collection."""
    foreign: dict[str, list[Asked]]
    """It does not, by `questions > library`."""


def gather(data: Path, cache: Path, most: int | None) -> Material:
    """Ask the questions of each collection of its own library and of the others; of squad `most` at most, drawn by the seed."""
    squad, pubmed, cranfield = (from_folder(data / name).judged() for name in ("squad", "pubmedqa", "cranfield"))
    own: dict[str, list[Asked]] = {}
    foreign: dict[str, list[Asked]] = {}

    def others(bench: Bench, library: Library, home: str, guests: Sequence[Collection]) -> None:
        for guest in guests:
            foreign[f"{guest.name} > {home}"] = ask(bench, library, guest.sample(_MOST, SEED).questions)

    with indexed({Library.PUBLIC: [squad], Library.PAPERS: [pubmed]}, cache) as bench:
        chosen = squad if most is None else squad.sample(most, SEED)
        with_answers = [question for question in chosen.questions if question.answers]
        own["squad"] = ask(bench, Library.PUBLIC, with_answers)
        others(bench, Library.PUBLIC, "squad", (pubmed, cranfield))
        own["pubmedqa"] = ask(bench, Library.PAPERS, pubmed.questions)
        others(bench, Library.PAPERS, "pubmedqa", (squad, cranfield))
    with indexed({Library.PAPERS: [cranfield]}, cache) as bench:
        own["cranfield"] = ask(bench, Library.PAPERS, cranfield.questions)
        others(bench, Library.PAPERS, "cranfield", (squad, pubmed))
    return Material(own, foreign)


def shipped(*, words_only: bool) -> Weights:
    """Return the weights in use."""
    kept = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    kind = "_words_only" if words_only else ""
    return Weights(np.array(kept[f"ranking{kind}"]), np.array(kept[f"sufficiency{kind}"]), words_only)


def fit(material: Material, *, words_only: bool) -> Weights:
    """Return weights fitted on even lines."""
    even = {name: [one for one in questions if one.even] for name, questions in (material.own | material.foreign).items()}
    groups = [(even[name], name in material.own) for name in even]
    ranking = fit_ranking(even["squad"], words_only=words_only)
    return Weights(ranking, fit_sufficiency(groups, words_only=words_only), words_only)


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
    parser.add_argument("--write", action="store_true", help="fit anew and replace app/generation/extractive.json")
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
            "git_sha": git_sha(),
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
        WEIGHTS.write_text(json.dumps(_packaged(with_vectors, words_only, options.answer_from), indent=2) + "\n", encoding="utf-8")


def _packaged(with_vectors: Weights, words_only: Weights, answer_from: float) -> dict[str, object]:
    def plain(values: Floats) -> list[float]:
        return [round(float(value), 4) for value in values]

    return {
        "command": COMMAND,
        "embedding_model": "all-MiniLM-L6-v2",
        "features": list(FEATURES),
        "ranking": plain(with_vectors.ranking),
        "ranking_words_only": plain(words_only.ranking),
        "sufficiency_features": list(SUFFICIENCY),
        "sufficiency": plain(with_vectors.sufficiency),
        "sufficiency_words_only": plain(words_only.sufficiency),
        "answer_from": answer_from,
    }


if __name__ == "__main__":
    main()
