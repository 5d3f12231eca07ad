"""Answer the modes that quotes can answer: comparisons as tables, lists of what a method takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast, get_args

from app.answer.search import Search
from app.answer.strategies.base import numbered
from app.answer.targets import MOST_DOCUMENTS, Targets
from app.answer.turn import CERTAIN, Turn
from app.core.types import Document, Mode, Notice
from app.generation.candidates import Candidate
from app.generation.checklists import ListedMode, write_checklist
from app.generation.compared import NamedComparison, comparison_in
from app.generation.comparison_text import sentence_of, sentence_of_all, write_comparison
from app.generation.extractive import ExtractiveGenerator, Selection
from app.generation.quoted import QuotedText, Quoting
from app.generation.subject import named_things

SHAPED_MODES: frozenset[Mode] = frozenset({"compare", *get_args(ListedMode)})
"""Modes whose answer is a table or a list of quotes."""
_POINTS_AT = re.compile(
    r"\bthis\b|\bthe (?:paper|study|document|article|report|work|experiments?|results?)\b", re.I
)
"""Words that point at the one document there is."""
_MOST_LISTS = 3
"""Documents of which a list is made for one question."""
_ROWS_NEEDED = 2
"""Documents that a comparison of documents must quote."""
NEEDS_MODEL = Notice(
    "mode_needs_model",
    "No table or list could be made of the documents' own words. With a language model that is not"
    " small the answer would be written from them.",
)


@dataclass(frozen=True, slots=True)
class EngineModes:
    """Makes tables and lists of quotes; stateless."""

    targets: Targets
    extractive: ExtractiveGenerator

    def quoted(
        self, turn: Turn, query: str, search: Search, selection: Selection
    ) -> QuotedText | None:
        """Return the table or list that the question's mode asks for; None if there is none.

        A comparison is also made in the mode `general`, where each thing has its sentence.

        Args:
            turn: Its evidence was found; numbers are kept.
            query: The question as it was searched.
            search: Searches for single things.
            selection: What the quoting answerer chose.
        """
        mode = turn.question.mode
        if mode in get_args(ListedMode):
            return self._list(turn, query, selection)
        if mode in {"compare", "general"}:
            return self._table(turn, query, search, selection)
        return None

    def _table(
        self, turn: Turn, query: str, search: Search, selection: Selection
    ) -> QuotedText | None:
        named, compares = comparison_in(query), turn.question.mode == "compare"
        both = None
        if named is not None:
            rows, both = self._by_thing(named, search, selection)
        elif compares:
            rows = _by_document(selection.ranked)
        else:
            return None
        found = sum(row is not None for row in rows.values())
        needed = len(rows) if not compares else _ROWS_NEEDED if named is None else 1
        if found < needed:
            return None
        quoting = Quoting(turn.evidence)
        write_comparison(quoting, rows, both)
        return quoting.done()

    def _by_thing(
        self, named: NamedComparison, search: Search, selection: Selection
    ) -> tuple[dict[str, Candidate | None], Candidate | None]:
        """Return the best sentence of each thing, and the best that names all of them."""
        own: dict[str, Sequence[Candidate]] = {}
        for thing in named.things:
            query = named.query(thing)
            own[thing] = self.extractive.select(query, numbered(search(query).hits)).ranked
        everything = [*selection.ranked, *(one for ranked in own.values() for one in ranked)]
        both = sentence_of_all(named, everything)
        used = [both.text] if both and not named.respect else []
        rows: dict[str, Candidate | None] = {}
        for thing, ranked in own.items():
            fresh = [one for one in (*ranked, *selection.ranked) if one.text not in used]
            rows[thing] = best = sentence_of(thing, named, fresh)
            used += [best.text] if best else []
        return rows, both

    def _list(self, turn: Turn, query: str, selection: Selection) -> QuotedText | None:
        documents = self._documents(turn, query, selection)
        quoting = Quoting(turn.evidence)
        chosen = [one for one in selection.chosen if not one.listed]
        for at, one in enumerate(chosen):
            quoting.say(" " if at else "")
            quoting.quote(one)
        filled = 0
        for document in documents:
            quoting.start_block(f"### {document.title}\n")
            whole = self.targets.evidence([document])
            mode = cast("ListedMode", turn.question.mode)
            filled += write_checklist(quoting, mode, query, whole)
        if not chosen:
            turn.confidence = CERTAIN
        return quoting.done() if filled or chosen else None

    def _documents(self, turn: Turn, query: str, selection: Selection) -> tuple[Document, ...]:
        """Return the documents to go through.

        Those given; else the one whose title the question names; else the one that answers best;
        else the only one there is.
        """
        question = turn.question
        if question.filters.doc_ids:
            return self.targets.given(question)[:_MOST_LISTS]
        for name in named_things(query):
            if titled := self.targets.titled(question, name):
                return titled
        found = [one.item for one in selection.chosen]
        found += [item for item in turn.evidence if not item.hit.fallback]
        if found:
            return (found[0].hit.passage.document,)
        return self.targets.only_one(question) if _POINTS_AT.search(query) else ()


def _by_document(ranked: Sequence[Candidate]) -> dict[str, Candidate | None]:
    """Return the best sentence of each document, by its title."""
    rows: dict[str, Candidate | None] = {}
    for one in ranked:
        rows.setdefault(one.item.hit.passage.document.title, None if one.dangles else one)
    return dict(list(rows.items())[:MOST_DOCUMENTS])
