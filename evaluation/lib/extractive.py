"""Weights of the quoting answerer: fitted, read, written."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from app.answer.intent import past_questions
from app.core.ports import Embedder
from app.core.text import words
from app.core.trace import Trace
from app.core.types import EmbedderIdentity, Evidence, Filters, FloatArray, Library, Message
from app.evaluation.collections import Collection, TestPassage, TestQuestion, from_folder
from app.evaluation.metrics import area_under_curve, bootstrap_interval
from app.generation.candidates import Candidate, candidates
from app.generation.quote_features import (
    FEATURES,
    SUFFICIENCY,
    Floats,
    Vectors,
    candidate_weights,
    feature_rows,
    lead_of,
    sentence_vectors,
    sufficiency_row,
)
from app.generation.quoting import ExtractiveModel, Weighing, choose, quotable, room_for
from app.ingest.parsers.html import table_lines
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions, SearchRequest
from evaluation.lib.paths import ROOT
from evaluation.lib.workbench import SEED, Bench, indexed, say

_QUOTED = 0.8
"""Share of the words of a span that a quote must hold."""


_DRAW = 5
"""Seed of the draw of squad's questions."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A question, what makes a quote right, and the one document it is about."""

    question: TestQuestion
    spans: tuple[str, ...] = ()
    relevant: frozenset[str] = frozenset()
    document: str | None = None

    def covered(self, quoted: str) -> float:
        """Return the share of the spans of which a quote holds four fifths of the words."""
        held = Counter(words(quoted))
        return sum(_held(span, held) for span in self.spans) / max(1, len(self.spans))

    def right(self, quoted: str, passage: str | None) -> bool:
        """Return whether a quote, or the passage it comes from, answers the question."""
        if not quoted or not self.question.answerable:
            return False
        if self.spans:
            return self.covered(quoted) > 0
        if self.question.answers:
            return any(answer.lower() in quoted.lower() for answer in self.question.answers)
        return passage in self.relevant


def _held(span: str, held: Counter[str]) -> bool:
    wanted = Counter(words(span))
    return sum((wanted & held).values()) >= _QUOTED * sum(wanted.values())


@dataclass(frozen=True, slots=True)
class Asked:
    """A collection and the questions that are put to it."""

    collection: Collection
    questions: tuple[Asking, ...] = field(default=())


def squad(data: Path, most: int) -> tuple[Asked, Asked]:
    """Return the answerable and the unanswerable questions, `most` of each."""
    whole = from_folder(data / "squad")
    draw = random.Random(_DRAW)
    halves = []
    for answerable in (True, False):
        chosen = [
            q
            for q in whole.questions
            if q.answerable is answerable and (q.answers or not answerable)
        ]
        drawn = draw.sample(chosen, min(most, len(chosen)))
        name = "squad" if answerable else "squad unanswerable"
        halves.append(
            Asked(replace(whole, name=name), tuple(Asking(question) for question in drawn))
        )
    return halves[0], halves[1]


def judged(data: Path, name: str, most: int) -> Asked:
    """Return questions of which only the passage is known that answers them."""
    whole = from_folder(data / name).judged().sample(most, SEED)
    asked = (
        Asking(
            question,
            relevant=frozenset(
                passage for passage, grade in whole.relevance[question.id].items() if grade > 0
            ),
        )
        for question in whole.questions
    )
    return Asked(whole, tuple(asked))


def clapnq(data: Path) -> Asked:
    """Return real questions, half of which the passage found for them does not answer."""
    folder = data / "foreign" / "clapnq"
    spans = {str(row["_id"]): _texts(row.get("spans")) for row in rows(folder / "queries.jsonl")}
    whole = from_folder(folder)
    return Asked(whole, tuple(Asking(q, spans[q.id] or q.answers) for q in whole.questions))


def chunking(data: Path) -> Asked:
    """Return questions about three long texts."""
    folder = data / "foreign" / "chunking"
    texts = tuple(
        TestPassage(path.stem, "", path.read_text("utf-8")) for path in sorted(folder.glob("*.md"))
    )
    asked = [
        Asking(
            TestQuestion(str(line), str(row["question"]), line),
            _texts(row["references"], "content"),
        )
        for line, row in enumerate(rows(folder / "questions.jsonl"), start=1)
    ]
    return Asked(Collection("chunking", texts, (), {}), tuple(asked))


def covidqa(data: Path, most: int) -> Asked:
    """Return every second question about whole papers, each with its paper."""
    folder = data / "foreign" / "covidqa"
    texts = tuple(
        TestPassage(str(row["_id"]), "", str(row["text"]))
        for row in rows(folder / "documents.jsonl")
    )
    asked = [
        Asking(
            TestQuestion(str(n), str(row["question"]), n),
            _texts(row["answers"], "text"),
            document=str(row["doc"]),
        )
        for n, row in enumerate(rows(folder / "questions.jsonl")[::2])
    ]
    return Asked(Collection("covidqa", texts, (), {}), tuple(asked[:most]))


def tables(data: Path) -> Asked:
    """Return questions about tables; a span is what one row says of them."""
    passages, asked = [], []
    for line, row in enumerate(rows(data / "foreign" / "fetaqa" / "tables.jsonl"), start=1):
        cells = cast("list[list[str]]", row["table_array"])
        text = "\n".join([str(row["table_section_title"]), "", *table_lines(cells)])
        passages.append(TestPassage(str(row["feta_id"]), str(row["table_page_title"]), text))
        wanted: dict[int, list[str]] = {}
        for at, column in cast("list[tuple[int, int]]", row["highlighted_cell_ids"]):
            wanted.setdefault(at, []).append(cells[at][column])
        spans = tuple(" ".join(held) for at, held in wanted.items() if at > 0)
        if spans:
            question = TestQuestion(str(row["feta_id"]), str(row["question"]), line)
            asked.append(Asking(question, spans))
    return Asked(Collection("fetaqa", tuple(passages), (), {}), tuple(asked))


def conversations(data: Path) -> tuple[Asked, list[tuple[str, ...]]]:
    """Return conversations' last questions and history; corpus: all passages."""
    tasks = rows(data / "foreign" / "mtragun" / "tasks.jsonl")
    passages = {
        str(c["document_id"]): str(c["text"]) for task in tasks for c in _dicts(task["contexts"])
    }
    texts = tuple(TestPassage(name, "", text) for name, text in passages.items())
    asked, earlier = [], []
    for line, task in enumerate(tasks, start=1):
        said = [str(turn["text"]) for turn in _dicts(task["input"]) if turn["speaker"] == "user"]
        answerable = bool({"ANSWERABLE", "PARTIAL"} & set(_texts(task["answerability"])))
        relevant = frozenset(str(c["document_id"]) for c in _dicts(task["contexts"]))
        question = TestQuestion(str(task["task_id"]), said[-1], line, answerable=answerable)
        asked.append(Asking(question, relevant=relevant))
        earlier.append(tuple(past_questions([Message("user", text) for text in said[:-1]])))
    return Asked(Collection("mtragun", texts, (), {}), tuple(asked)), earlier


def rows(path: Path) -> list[Mapping[str, object]]:
    """Return the rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _dicts(value: object) -> Sequence[Mapping[str, object]]:
    assert isinstance(value, list)
    return value


def _texts(value: object, key: str = "") -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    found = (str(one[key]) if key else str(one) for one in value)
    return tuple(text for text in found if words(text))


TOP_K = 5
TABLES, ABSENT_TABLES = "fetaqa", "fetaqa absent"
"""Questions about tables; the same where their own table gives nothing."""
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ReadQuestion:
    asking: Asking
    evidence: tuple[Evidence, ...]
    found: tuple[Candidate, ...]
    vectors: Vectors | None
    rows: Floats
    rows_words_only: Floats
    gold: Flags
    """Per candidate: it holds one of the answers."""
    sources: tuple[str, ...]
    """The passage of each piece of evidence."""

    @property
    def even(self) -> bool:
        return self.asking.question.line % 2 == 0

    @property
    def usable(self) -> bool:
        """Return whether a sentence can be quoted."""
        return any(quotable(candidate) for candidate in self.found)

    def judged(self, ranking: Floats, *, words_only: bool) -> tuple[Floats, bool]:
        """Return what speaks for the quote, by `SUFFICIENCY`; True if a table's row leads it."""
        rows = self.rows_words_only if words_only else self.rows
        scores = rows @ ranking
        chosen = self.chosen(ranking, words_only=words_only)
        lead = self.found[lead_of(self.found, scores, chosen)]
        text = self.asking.question.text
        return sufficiency_row(text, self.found, rows, scores, chosen), lead.row

    def chosen(self, ranking: Floats, *, words_only: bool) -> tuple[Candidate, ...]:
        """Return the sentences that would be quoted if any are."""
        if not self.usable:
            return ()
        scores = (self.rows_words_only if words_only else self.rows) @ ranking
        return choose(self.found, scores, room_for(self.asking.question.text))

    def right(self, quoted: Sequence[Candidate]) -> bool:
        passage = self.sources[quoted[0].item.n - 1] if quoted else None
        return self.asking.right(" ".join(one.text for one in quoted), passage)


class RememberingEmbedder:
    """An embedder that computes each text once: questions share sentences."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._passages: dict[str, FloatArray] = {}

    @property
    def identity(self) -> EmbedderIdentity:
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


def evidence_for(
    bench: Bench, library: Library, text: str, filters: Filters = Filters()
) -> tuple[Evidence, ...]:
    """Return numbered passages as the server would read them for a question."""
    request = SearchRequest(text, library, top_k=TOP_K, filters=filters)
    hits = bench.retriever(RetrievalOptions()).retrieve(request, Trace()).hits
    return tuple(Evidence(n, hit) for n, hit in enumerate(hits, start=1))


def ask(bench: Bench, library: Library, questions: Sequence[Asking]) -> list[ReadQuestion]:
    """Return every question with its evidence, candidates and features."""
    embedder = RememberingEmbedder(bench.embedder)
    documents = {passage: doc_id for doc_id, passage in bench.passage_of.items()}
    found = []
    for asking in questions:
        filters = Filters(doc_ids=(documents[asking.document],)) if asking.document else Filters()
        evidence = evidence_for(bench, library, asking.question.text, filters)
        sources = tuple(
            bench.passage_of.get(item.hit.passage.document.doc_id, "") for item in evidence
        )
        found.append(_read(asking, evidence, sources, embedder))
    return found


def _read(
    asking: Asking, evidence: tuple[Evidence, ...], sources: tuple[str, ...], embedder: Embedder
) -> ReadQuestion:
    text = asking.question.text
    found = tuple(candidates([item for item in evidence if not item.hit.fallback]))
    weights = candidate_weights(found)
    vectors = sentence_vectors(text, found, weights, embedder)
    gold = np.array([asking.right(candidate.text, None) for candidate in found], dtype=bool)
    rows, words_only = (feature_rows(text, found, weights, known) for known in (vectors, None))
    return ReadQuestion(asking, evidence, found, vectors, rows, words_only, gold, sources)


Groups = dict[str, list[ReadQuestion]]
"""Questions by set."""


def gather(data: Path, cache: Path, most: int, only: Sequence[str] = ()) -> Groups:
    """Ask each set of its own library, at most `most` questions of a set."""
    encoder = MiniLmEmbedder(cache / "graph").late_encoder()
    answerable, unanswerable = squad(data, most)
    homes = [
        (answerable, unanswerable),
        (judged(data, "pubmedqa", most // 3),),
        (judged(data, "cranfield", most // 3),),
        (clapnq(data),),
        (chunking(data),),
        (covidqa(data, 2 * most),),
        (tables(data),),
        (conversations(data)[0],),
    ]
    groups: Groups = {}
    for sets in homes:
        if only and sets[0].collection.name not in only:
            continue
        own = sets[0].collection
        with indexed({Library.PUBLIC: [own]}, cache, encoder=encoder) as bench:
            for one in sets:
                groups[one.collection.name] = ask(bench, Library.PUBLIC, one.questions)
            if own.name == TABLES:
                embedder = RememberingEmbedder(bench.embedder)
                left = (_without_own(one, embedder) for one in groups[TABLES])
                groups[ABSENT_TABLES] = [one for one in left if one.evidence]
        say(own.name)
    return groups


def _without_own(one: ReadQuestion, embedder: Embedder) -> ReadQuestion:
    """Return a question about a table without what that table gave: now it has no answer."""
    question = replace(one.asking.question, answerable=False)
    others = tuple(item for item in one.evidence if one.sources[item.n - 1] != question.id)
    return _read(replace(one.asking, question=question), others, one.sources, embedder)


BINS = 10
PAIRS = {
    "clapnq": "clapnq",
    "squad": "squad unanswerable",
    "mtragun": "mtragun",
    "fetaqa": "fetaqa absent",
}
"""Where the answerable questions of a comparison are, and the others."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question."""

    answerable: bool
    confidence: float
    right: bool
    """The quote is right, were it made."""


Outcomes = Mapping[str, Sequence[Outcome]]
"""By set."""


def calibration_error(outcomes: Sequence[Outcome]) -> float:
    """Return the mean gap between confidence and outcome over ten equal bins.

    References:
        Naeini, Cooper, Hauskrecht: Obtaining well calibrated probabilities using Bayesian binning,
            AAAI 2015.
    """
    return sum(abs(sure - right) * len(held) for held, sure, right in _bins(outcomes)) / len(
        outcomes
    )


def _bins(outcomes: Sequence[Outcome]) -> list[tuple[list[Outcome], float, float]]:
    """Return the outcomes of each bin that has some, mean confidence and share right."""
    found = []
    for at in range(BINS):
        held = [one for one in outcomes if min(int(one.confidence * BINS), BINS - 1) == at]
        if held:
            sure = float(np.mean([one.confidence for one in held]))
            found.append((held, sure, float(np.mean([one.right for one in held]))))
    return found


def reliability_table(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    """Return a row per bin of confidence: how many, how sure, how often right."""
    lines = [
        f"| confidence on {name} | questions | mean | right, with 95 % interval |",
        "|---|---|---|---|",
    ]
    for held, sure, _ in _bins(outcomes):
        at = min(int(held[0].confidence * BINS), BINS - 1)
        cells = [str(len(held)), f"{sure:.2f}", share([one.right for one in held])]
        lines.append(f"| {at / BINS:.1f} to {(at + 1) / BINS:.1f} | {' | '.join(cells)} |")
    return ["", *lines]


def refusals_table(found: Outcomes, answer_from: float) -> list[str]:
    """Return how the answerable questions of a set are told from the others."""
    lines = [
        "| set | answerable | not | AUC | refused of the answerable | right quotes refused"
        " | refused of the others | precision |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, other in ((name, other) for name, other in PAIRS.items() if name in found):
        own = [one for one in found[name] if one.answerable]
        foreign = [one for one in found[other] if not one.answerable]
        wrongly = [one.confidence < answer_from for one in own]
        rightly = [one.confidence < answer_from for one in foreign]
        area = area_under_curve(
            [one.confidence for one in own], [one.confidence for one in foreign]
        )
        lost = [one.right and one.confidence < answer_from for one in own]
        precision = sum(rightly) / max(1, sum(rightly) + sum(wrongly))
        cells = [f"{area:.3f}", share(wrongly), share(lost), share(rightly), f"{precision:.2f}"]
        lines.append(f"| {name} | {len(own)} | {len(foreign)} | {' | '.join(cells)} |")
    return lines


def share(flags: Sequence[bool | float]) -> str:
    """Return a mean with its 95 % bootstrap interval."""
    if not flags:
        return "-"
    found = bootstrap_interval(np.asarray(flags, dtype=np.float64), seed=SEED, resamples=2000)
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"


WEIGHTS = ROOT / "app" / "generation" / "extractive.json"
_RIDGE = 0.5
SHARES: Mapping[str, float] = {
    "squad": 2.0,
    "squad unanswerable": 0.44,
    "clapnq": 1.0,
    "chunking": 0.5,
    "covidqa": 0.25,
}
"""Weight of a set for confidence, independent of its size. People ask about things in their
documents more often than squad's authors, who wrote every other question to have no answer."""
ROW_SHARES: Mapping[str, float] = {TABLES: 1.0, ABSENT_TABLES: 0.2}
"""The same for quotes that a table's row leads."""
_SCALE = 400.0


def _minimum(loss: Callable[[Floats], tuple[float, Floats]], size: int) -> Floats:
    """Return a convex loss's minimum by L-BFGS from zero: deterministic."""
    from scipy.optimize import minimize  # noqa: PLC0415 - the eval extra

    found: Floats = minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B").x
    return found


def fit_ranking(questions: Sequence[ReadQuestion], *, words_only: bool) -> Floats:
    """Return weights that make a sentence with the answer its question's likeliest.

    The loss is the negative logarithm of the softmax mass on sentences that hold an answer, with a
    ridge.
    """
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
        return float(
            -(np.log(part) - np.log(whole)).sum() + _RIDGE * (weights @ weights) / 2
        ), slope

    return _minimum(loss, rows.shape[1])


def fit_sufficiency(
    groups: Groups, ranking: Floats, *, words_only: bool, led_by_row: bool
) -> Floats:
    """Return logistic weights, bias last, for the probability that a quote is right.

    Columns are scaled to deviation 1 while fitting, so that the ridge treats them alike.

    Args:
        groups: Questions by set.
        ranking: Weights of FEATURES.
        words_only: Fit the way without vectors.
        led_by_row: Fit the quotes that a table's row leads, by ROW_SHARES; else those that a
            sentence leads, by SHARES.
    """
    shares = ROW_SHARES if led_by_row else SHARES
    rows, right, share = [], [], []
    for name in (name for name in groups if name in shares):
        usable = [one for one in groups[name] if one.usable]
        judged = [one.judged(ranking, words_only=words_only) for one in usable]
        fits = [by_row == led_by_row for _, by_row in judged]
        rows += list(compress((row for row, _ in judged), fits))
        right += [
            one.right(one.chosen(ranking, words_only=words_only)) for one in compress(usable, fits)
        ]
        share += [_SCALE * shares[name] / max(1, len(groups[name]))] * sum(fits)
    matrix, target, weight = np.vstack(rows), np.asarray(right, dtype=np.float64), np.asarray(share)
    middle, deviation = matrix.mean(axis=0), matrix.std(axis=0) + 1e-9
    scaled = np.c_[(matrix - middle) / deviation, np.ones(len(matrix))]
    penalty = np.r_[np.full(matrix.shape[1], _RIDGE), 0.0]

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = scaled @ weights
        likelihood = weight * (np.logaddexp(0, scores) - target * scores)
        slope = scaled.T @ (weight * (1 / (1 + np.exp(-scores)) - target)) + penalty * weights
        return float(likelihood.sum() + (penalty * weights) @ weights / 2), slope

    fitted = _minimum(loss, scaled.shape[1])
    plain = fitted[:-1] / deviation
    unscaled: Floats = np.r_[plain, fitted[-1] - plain @ middle]
    return unscaled


@dataclass(frozen=True, slots=True, eq=False)
class Weights(Weighing):
    """The fit of one way of reading."""

    words_only: bool

    def confidence(self, one: ReadQuestion) -> float:
        """Return the probability that a question's quote is right; 0 without a quote."""
        if not one.usable:
            return 0.0
        rows = one.rows_words_only if self.words_only else one.rows
        chosen = one.chosen(self.ranking, words_only=self.words_only)
        text = one.asking.question.text
        return self.probability(text, one.found, rows, rows @ self.ranking, chosen)

    def right(self, one: ReadQuestion) -> bool:
        """Return whether the quote, were it made, answers the question."""
        return one.right(one.chosen(self.ranking, words_only=self.words_only))


def shipped(*, words_only: bool) -> Weights:
    model = ExtractiveModel.load()
    used = model.words_only if words_only else model.with_vectors
    return Weights(used.ranking, used.sufficiency, used.sufficiency_row, words_only)


def _plain(values: Floats) -> list[float]:
    return [round(float(value), 4) for value in values]


def packaged_ranking(with_vectors: Floats, words_only: Floats, command: str) -> dict[str, object]:
    """Return what `app/generation/extractive.json` holds of the ranking."""
    return {
        "ranking_command": command,
        "features": list(FEATURES),
        "ranking": _plain(with_vectors),
        "ranking_words_only": _plain(words_only),
    }


def packaged_confidence(
    with_vectors: Weights, words_only: Weights, answer_from: float, command: str
) -> dict[str, object]:
    """Return what `app/generation/extractive.json` holds of the confidence."""
    return {
        "command": command,
        "sufficiency_features": list(SUFFICIENCY),
        "sufficiency": _plain(with_vectors.sufficiency),
        "sufficiency_words_only": _plain(words_only.sufficiency),
        "sufficiency_row": _plain(with_vectors.sufficiency_row),
        "sufficiency_row_words_only": _plain(words_only.sufficiency_row),
        "answer_from": answer_from,
    }


def keep(part: dict[str, object]) -> None:
    """Replace a part of `app/generation/extractive.json`."""
    kept = json.loads(WEIGHTS.read_text(encoding="utf-8")) | part
    WEIGHTS.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
