"""Make claims from questions and answers, and plant faults in them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.core.sentences import sentence_spans
from app.core.types import Chunk, Document, Library, Passage
from app.evaluation.collections import Collection, TestPassage, TestQuestion

_ASKING = re.compile(
    r"\b(?:how (?:many|much|long|often|far|old)|who|whom|whose|what|which|when|where|why|how)\b"
    r"(?:\s+(?:[\w'-]+\s+){0,4}?(?=(?:is|are|was|were|did|do|does|has|have|had|can|could|would"
    r"|will|should)\b))?",
    re.IGNORECASE,
)


_NUMBER = re.compile(r"\d[\d,]*")


_NAME = re.compile(r"[^\W\d_][\w'-]+")


_VERB = re.compile(
    r"\b(?:is|are|was|were|did|does|do|has|have|had|can|could|would|will|should)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Case:
    """A claim and the passage that it is cited to."""

    kind: str
    claim: str
    passage: Passage

    @property
    def group(self) -> str:
        """quote, right, random, article or changed."""
        return self.kind if self.kind in {"quote", "right", "random", "article"} else "changed"


class Planter:
    """Makes cases from a collection."""

    def __init__(self, collection: Collection, seed: int) -> None:
        self._random = random.Random(seed)
        self._relevance = collection.relevance
        self._by_id = {passage.id: passage for passage in collection.passages}
        self._by_title: dict[str, list[TestPassage]] = {}
        for passage in collection.passages:
            self._by_title.setdefault(passage.title, []).append(passage)

    def cases(self, question: TestQuestion) -> Iterator[Case]:
        """Yield the right citation and one fault of each group that can be made."""
        own = self._by_id[min(self._relevance[question.id])]
        answer = question.answers[0]
        claim = claim_of(question.text, answer)
        if not re.search(r"\w", answer):
            return
        yield Case("right", claim, as_passage(own))
        other = self._random.choice([title for title in self._by_title if title != own.title])
        yield Case("random", claim, as_passage(self._random.choice(self._by_title[other])))
        beside = [p for p in self._by_title[own.title] if answer.lower() not in p.text.lower()]
        if beside:
            yield Case("article", claim, as_passage(self._random.choice(beside)))
        for kind in self._random.sample(["number", "name", "negation"], 3):
            changed = self._changed(claim, own, kind)
            if changed and changed != claim:
                yield Case(kind, changed, as_passage(own))
                return

    def _changed(self, claim: str, own: TestPassage, kind: str) -> str | None:
        if kind == "negation":
            if " not " in claim:
                return claim.replace(" not ", " ", 1)
            verb = _VERB.search(claim)
            return f"{claim[: verb.end()]} not{claim[verb.end() :]}" if verb else None
        if kind == "number":
            numbers = list(_NUMBER.finditer(claim))
            if not numbers:
                return None
            number = self._random.choice(numbers)
            other = int(number.group().replace(",", "")) + self._random.choice([1, 2, 3, 7, 10])
            return f"{claim[: number.start()]}{other}{claim[number.end() :]}"
        names = [match for match in _names(claim) if match.group() in own.text]
        strangers = [
            match.group()
            for passage in self._by_title[own.title]
            for match in _names(passage.text)
            if match.group() not in own.text and match.group() not in claim
        ]
        if not names or not strangers:
            return None
        name = self._random.choice(names)
        return f"{claim[: name.start()]}{self._random.choice(strangers)}{claim[name.end() :]}"


def _names(text: str) -> list[re.Match[str]]:
    return [
        match
        for start, end in sentence_spans(text)
        for position, match in enumerate(_NAME.finditer(text, start, end))
        if position and match.group()[0].isupper()
    ]


def claim_of(question: str, answer: str) -> str:
    """Return a statement from a question and its answer, as a small model writes."""
    asked = question.strip().rstrip("?. ")
    claim, replaced = _ASKING.subn(lambda _: f"{answer} ", asked, count=1)
    claim = " ".join((claim if replaced else f"{asked}: {answer}").split())
    return f"{claim[0].upper()}{claim[1:]}."


def as_passage(source: TestPassage) -> Passage:
    """Return a passage of a collection as one chunk."""
    length = len(source.text)
    document = Document(
        source.id, Library.PUBLIC, source.id, 1, "0" * 64, source.title.replace("_", " "), (), None, "text", "live", length, 0, 1,
        1, None, None, None, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z",
    )  # fmt: skip
    return Passage(
        Chunk(1, source.id, Library.PUBLIC, 1, 0, 0, length, "body", None, source.text), document
    )
