"""Measure what the quoting answerer quotes, on odd lines of eight sets.

    python -m evaluation.studies.extractive [--data DIR] [--questions N] [--write]

Every set is put to its own library. `--write` first fits the ranking of sentences on the even
lines of all sets with known answers and puts it into app/generation/quote/extractive.json; confidence is
then to be fitted again (evaluation/studies/confidence.py). Writes
evaluation/reports/extractive.{json,md}.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.answer.targets import with_headings
from app.core.ports import PassageEncoder
from app.core.text import words
from app.core.trace import Trace
from app.core.types import Evidence, Filters, Library
from app.evaluation.collections import (
    Collection,
    TestQuestion,
    from_documents,
    from_folder,
    json_lines,
)
from app.evaluation.workshop import Bench
from app.generation.quote.candidates import Candidate, candidates, quotable
from app.generation.quote.choosing import choose, quote_budget
from app.generation.quote.quote_features import (
    FEATURES,
    Floats,
    Vectors,
    candidate_weights,
    feature_rows,
    lead_of,
    sentence_vectors,
    sufficiency_row,
)
from app.generation.quote.quoting import ExtractiveModel, Weighing
from app.models.embedding import RememberedEncoder
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions, SearchRequest
from evaluation.lib.fits import least
from evaluation.lib.layouts import (
    from_conversations,
    from_papers,
    from_tables,
    from_texts,
    strings_of,
)
from evaluation.lib.reports import (
    COLLECTIONS,
    ROOT,
    SEED,
    hash_of,
    options,
    say,
    share,
    table,
    write,
)
from evaluation.lib.workbench import indexed, made_with

COMMAND = "python -m evaluation.studies.extractive --write"
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
    patterns: tuple[str, ...] = ()
    """Expressions of facts; a right answer matches `need` of them."""
    need: int = 1

    def covered(self, quoted: str) -> float:
        """Return the share of the facts or spans in a quote; of a span four fifths of its words."""
        if self.patterns:
            return self._facts(quoted) / len(self.patterns)
        held = Counter(words(quoted))
        return sum(_held(span, held) for span in self.spans) / max(1, len(self.spans))

    def right(self, quoted: str, passage: str | None) -> bool:
        """Return whether a quote, or the passage it comes from, answers the question."""
        if not quoted or not self.question.answerable:
            return False
        if self.patterns:
            return self._facts(quoted) >= self.need
        if self.spans:
            return self.covered(quoted) > 0
        if self.question.answers:
            return any(answer.lower() in quoted.lower() for answer in self.question.answers)
        return passage in self.relevant

    def brings(self, sentence: str) -> bool:
        """Return whether a sentence holds a part of what is asked for."""
        return self._facts(sentence) > 0 if self.patterns else self.right(sentence, None)

    def _facts(self, quoted: str) -> int:
        line = " ".join(quoted.split())
        return sum(re.search(one, line, re.IGNORECASE) is not None for one in self.patterns)


def _held(span: str, held: Counter[str]) -> bool:
    wanted = Counter(words(span))
    return sum((wanted & held).values()) >= _QUOTED * sum(wanted.values())


@dataclass(frozen=True, slots=True)
class Asked:
    """A collection and the questions that are put to it."""

    collection: Collection
    questions: tuple[Asking, ...] = field(default=())
    weak: bool = False
    """Passages below the cutoff are read too: another library's calibration may let them pass."""


def squad(data: Path, most: int) -> tuple[Asked, Asked]:
    """Return the answerable and the unanswerable questions, `most` of each."""
    whole = from_folder(data / "squad")
    draw = random.Random(_DRAW)
    halves = []
    for answerable in (True, False):
        chosen = [
            Asking(q)
            for q in whole.questions
            if q.answerable is answerable and (q.answers or not answerable)
        ]
        drawn = draw.sample(chosen, min(most, len(chosen)))
        name = "squad" if answerable else "squad unanswerable"
        halves.append(Asked(replace(whole, name=name), tuple(drawn)))
    return halves[0], halves[1]


def foreign(data: Path, most: int) -> Asked:
    """Return questions of medicine, put to squad's library of other subjects."""
    asked = judged(data, "pubmedqa", most).questions
    foreigners = (Asking(replace(one.question, answerable=False)) for one in asked)
    return Asked(replace(from_folder(data / "squad"), name=FOREIGN), tuple(foreigners), weak=True)


def judged(data: Path, name: str, most: int) -> Asked:
    """Return questions of which only the passage is known that answers them."""
    whole = from_folder(data / name).judged().sample(most, SEED)
    relevant = {
        question: frozenset(passage for passage, grade in grades.items() if grade > 0)
        for question, grades in whole.relevance.items()
    }
    asked = (Asking(question, relevant=relevant[question.id]) for question in whole.questions)
    return Asked(whole, tuple(asked))


def clapnq(data: Path) -> Asked:
    """Return real questions, half of which the passage found for them does not answer."""
    folder = data / "foreign" / "clapnq"
    rows = json_lines(folder / "queries.jsonl")
    spans = {str(row["_id"]): strings_of(row.get("spans")) for row in rows}
    whole = from_folder(folder)
    return Asked(whole, tuple(Asking(q, spans[q.id] or q.answers) for q in whole.questions))


def chunking(data: Path) -> Asked:
    """Return questions about three long texts."""
    found = from_texts(data / "foreign" / "chunking")
    return Asked(found, tuple(Asking(one, one.answers) for one in found.questions))


def covidqa(data: Path, most: int) -> Asked:
    """Return every second question about whole papers, each with its paper."""
    found = from_papers(data / "foreign" / "covidqa")
    asked = []
    for n, one in enumerate(found.questions[: 2 * most : 2]):
        (paper,) = found.relevance[one.id]
        asked.append(Asking(replace(one, id=str(n), line=n), one.answers, document=paper))
    return Asked(found, tuple(asked))


def tables(data: Path) -> Asked:
    """Return questions about tables; a span is what one row says of them."""
    folder, asked = data / "foreign" / "fetaqa", []
    found = from_tables(folder)
    for question, row in zip(found.questions, json_lines(folder / "tables.jsonl"), strict=True):
        wanted: dict[int, list[str]] = {}
        for at, column in row["highlighted_cell_ids"]:
            wanted.setdefault(at, []).append(row["table_array"][at][column])
        spans = tuple(" ".join(held) for at, held in wanted.items() if at > 0)
        if spans:
            asked.append(Asking(question, spans))
    return Asked(found, tuple(asked))


def conversations(data: Path) -> Asked:
    """Return conversations' last questions; corpus: all passages."""
    found = from_conversations(data / "foreign" / "mtragun")
    asked = (Asking(q, relevant=frozenset(found.relevance[q.id])) for q in found.questions)
    return Asked(found, tuple(asked))


def whole(data: Path) -> Asked:
    """Return questions over whole documents, of whose `patterns` an answer matches `need`."""
    collection = from_documents(data / "whole")
    told = json.loads((data / "whole" / "questions.json").read_text("utf-8"))
    by_id = {str(row["id"]): row for row in told}
    asked = (
        Asking(one, patterns=tuple(by_id[one.id]["patterns"]), need=by_id[one.id]["need"])
        for one in collection.questions
    )
    return Asked(collection, tuple(asked))


TOP_K = 5
FOREIGN = "squad foreign"
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
        vectors = None if words_only else self.vectors
        return sufficiency_row(text, self.found, rows, scores, chosen, vectors), lead.row

    def chosen(self, ranking: Floats, *, words_only: bool) -> tuple[Candidate, ...]:
        """Return the sentences that would be quoted if any are."""
        if not self.usable:
            return ()
        scores = (self.rows_words_only if words_only else self.rows) @ ranking
        return choose(
            self.asking.question.text, self.found, scores, quote_budget(self.asking.question.text)
        )

    @property
    def held(self) -> bool:
        """Return whether the passages together have what is asked for."""
        read = (item.hit.passage.chunk.text for item in self.evidence if not item.hit.fallback)
        return self.asking.right(" ".join(read), None)

    def right(self, quoted: Sequence[Candidate]) -> bool:
        passage = self.sources[quoted[0].item.n - 1] if quoted else None
        return self.asking.right(" ".join(one.text for one in quoted), passage)


def remembering(bench: Bench) -> RememberedEncoder:
    """Return the bench's encoder, which computes each sentence once: questions share them."""
    assert bench.encoder is not None
    return RememberedEncoder(bench.encoder, 10**6)


def evidence_for(
    bench: Bench, text: str, filters: Filters = Filters(), *, weak: bool = False, most: int = TOP_K
) -> tuple[Evidence, ...]:
    """Return numbered passages as the server would read them for a question."""
    request = SearchRequest(text, Library.PUBLIC, top_k=most, filters=filters, keep_weak=weak)
    hits = bench.retriever(RetrievalOptions()).retrieve(request, Trace()).hits
    evidence = tuple(Evidence(n, hit) for n, hit in enumerate(hits, start=1))
    return with_headings(bench.store.catalog, evidence)


def ask(bench: Bench, asked: Asked) -> list[ReadQuestion]:
    """Return every question with its evidence, candidates and features."""
    encoder = remembering(bench)
    documents = {passage: doc_id for doc_id, passage in bench.passage_of.items()}
    found = []
    for asking in asked.questions:
        filters = Filters(doc_ids=(documents[asking.document],)) if asking.document else Filters()
        evidence = evidence_for(bench, asking.question.text, filters, weak=asked.weak)
        sources = tuple(
            bench.passage_of.get(item.hit.passage.document.doc_id, "") for item in evidence
        )
        found.append(_read(asking, evidence, sources, encoder))
    return found


def _read(
    asking: Asking,
    evidence: tuple[Evidence, ...],
    sources: tuple[str, ...],
    encoder: PassageEncoder,
) -> ReadQuestion:
    text = asking.question.text
    found = tuple(candidates([item for item in evidence if not item.hit.fallback], text))
    weights = candidate_weights(found)
    vectors = sentence_vectors(text, found, weights, encoder)
    gold = np.array([asking.brings(candidate.text) for candidate in found], dtype=bool)
    rows, words_only = (feature_rows(text, found, weights, known) for known in (vectors, None))
    return ReadQuestion(asking, evidence, found, vectors, rows, words_only, gold, sources)


Groups = dict[str, list[ReadQuestion]]
"""Questions by set."""


def gather(data: Path, cache: Path, most: int, only: Sequence[str] = ()) -> Groups:
    """Ask each set of its own library, at most `most` questions of a set."""
    encoder = MiniLmEmbedder()
    answerable, unanswerable = squad(data, most)
    homes = [
        (answerable, unanswerable, foreign(data, most)),
        (judged(data, "pubmedqa", most // 3),),
        (judged(data, "cranfield", most // 3),),
        (clapnq(data),),
        (chunking(data),),
        (covidqa(data, 2 * most),),
        (tables(data),),
        (conversations(data),),
        (whole(data),),
    ]
    groups: Groups = {}
    for sets in homes:
        if only and sets[0].collection.name not in only:
            continue
        own = sets[0].collection
        with indexed(own, cache, encoder) as bench:
            for one in sets:
                groups[one.collection.name] = ask(bench, one)
            if own.name == TABLES:
                known = remembering(bench)
                left = (_without_own(one, known) for one in groups[TABLES])
                groups[ABSENT_TABLES] = [one for one in left if one.evidence]
        say(own.name)
    return groups


def _without_own(one: ReadQuestion, encoder: PassageEncoder) -> ReadQuestion:
    """Return a question about a table without what that table gave: now it has no answer."""
    question = replace(one.asking.question, answerable=False)
    others = tuple(item for item in one.evidence if one.sources[item.n - 1] != question.id)
    return _read(replace(one.asking, question=question), others, one.sources, encoder)


WEIGHTS = ROOT / "app" / "generation" / "extractive.json"
_RIDGE = 0.5


SHARES: Mapping[str, float] = {
    "squad": 1.0,
    "clapnq": 1.0,
    "chunking": 1.0,
    "covidqa": 1.0,
    "whole": 2.0,
    TABLES: 0.5,
}
"""What a question of a set counts in the fit of the ranking."""
SHARES_WORDS_ONLY: Mapping[str, float] = {"squad": 1.0}
"""The same by words alone: with the other sets .02 to .03 fewer quotes of squad and chunking are
right."""


def fit_ranking(groups: Groups, shares_of: Mapping[str, float], *, words_only: bool) -> Floats:
    """Return weights that make a sentence with the answer its question's likeliest.

    The loss is the negative logarithm of the softmax mass on sentences that hold an answer, with a
    ridge.
    """
    usable, of_each = [], []
    for name, counts in shares_of.items():
        held = [one for one in groups[name] if one.gold.any() and not one.gold.all()]
        usable += held
        of_each += [counts] * len(held)
    shares = np.asarray(of_each)
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
        wrong = (mass / whole[owner] - right / part[owner]) * shares[owner]
        likelihood = shares @ (np.log(part) - np.log(whole))
        penalty = _RIDGE * (weights @ weights) / 2
        return float(penalty - likelihood), rows.T @ wrong + _RIDGE * weights

    return least(loss, rows.shape[1])


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
        vectors = None if self.words_only else one.vectors
        return self.probability(text, one.found, rows, rows @ self.ranking, chosen, vectors)

    def right(self, one: ReadQuestion) -> bool:
        """Return whether the quote, were it made, answers the question."""
        return one.right(one.chosen(self.ranking, words_only=self.words_only))


def shipped(*, words_only: bool) -> Weights:
    model = ExtractiveModel.load()
    used = model.words_only if words_only else model.with_vectors
    return Weights(used.ranking, used.sufficiency, used.sufficiency_row, words_only)


def keep(**part: object) -> None:
    """Replace a part of `app/generation/quote/extractive.json`."""
    plain = {
        name: [round(float(one), 4) for one in value] if isinstance(value, np.ndarray) else value
        for name, value in part.items()
    }
    kept = json.loads(WEIGHTS.read_text(encoding="utf-8")) | plain
    WEIGHTS.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def quotes_table(groups: Groups, weights: Weights, answer_from: float) -> list[str]:
    rows = []
    for name, questions in groups.items():
        asked = [one for one in questions if one.asking.question.answerable and not one.even]
        if not asked or name == "mtragun":
            continue
        chosen = [one.chosen(weights.ranking, words_only=weights.words_only) for one in asked]
        texts = [" ".join(candidate.text for candidate in quote) for quote in chosen]
        right = [one.right(quote) for one, quote in zip(asked, chosen, strict=True)]
        sure = [weights.confidence(one) >= answer_from for one in asked]
        covered = [one.asking.covered(text) for one, text in zip(asked, texts, strict=True)]
        cells = (
            share(right),
            share([one and two for one, two in zip(right, sure, strict=True)]),
            share(covered) if any(one.asking.spans for one in asked) else "-",
            f"{np.mean([len(text.split()) for text in texts]):.0f}",
        )
        rows.append((name, str(len(asked)), *cells))
    head = "set|questions|right in the quote|answered and right|spans covered|words"
    return table(head.split("|"), rows)


def main() -> None:
    given = options(
        __doc__,
        **COLLECTIONS,
        write=(False, "fit the ranking again"),
        questions=(900, "most questions of a set"),
        sets=((), "only these; default: all", str),
    )
    groups = gather(given.data, given.cache, given.questions, given.sets)
    ways = [shipped(words_only=only) for only in (False, True)]
    answer_from = ExtractiveModel.load().answer_from
    if given.write:
        even = {name: [one for one in questions if one.even] for name, questions in groups.items()}
        of = {False: SHARES, True: SHARES_WORDS_ONLY}
        ways = [
            replace(way, ranking=fit_ranking(even, of[way.words_only], words_only=way.words_only))
            for way in ways
        ]
        keep(
            ranking_command=COMMAND,
            features=list(FEATURES),
            ranking=ways[0].ranking,
            ranking_words_only=ways[1].ranking,
        )
    lines = []
    for title, weights in zip(("With vectors", "By words alone"), ways, strict=True):
        lines += [f"## {title}", "", *quotes_table(groups, weights, answer_from), ""]
    remarks = [
        f"The ranking is fitted on even lines of {', '.join(SHARES)} by `{COMMAND}`; figures are of"
        " odd lines.",
        f"{TOP_K} passages a question, nothing quoted under a probability of {answer_from}."
        " Shares with 95 % intervals.",
        "Right: the gold string, or four fifths of the words of a reference span, are in the quote;"
        " for pubmedqa and",
        "cranfield, the quoted passage is a relevant one. Refusals: [confidence](confidence.md).",
    ]
    figures, made = (
        {"answer_from": answer_from},
        made_with(hash_of(RetrievalOptions(), answer_from)),
    )
    write("extractive", "Quoted answers", remarks, [], figures, COMMAND, tables=lines, made=made)


if __name__ == "__main__":
    main()
