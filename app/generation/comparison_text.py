"""Write a comparison as a table of quotes: one row per thing, with its document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from app.core.text import tokenise
from app.generation.candidates import Candidate
from app.generation.compared import NamedComparison
from app.generation.quoted import Quoting
from app.generation.reading import MAX_QUOTE_CHARS, content_tokens

NOT_FOUND = "not found"
_DEFINES = re.compile(
    r"\A(?:[\w'\u2019-]+ ){1,6}?(?:\([^)]*\) )?(?:is|are|was|were|refers? to|means?|denotes?"
    r"|consists?"
    r" of)\b",
    re.IGNORECASE,
)
_CAPTION = re.compile(r"(?:figure|fig\.|table)\s", re.IGNORECASE)
_OPENING_TOKENS = 4
"""Tokens of a sentence in which its subject stands."""
_LONGER, _TITLES_WORDS, _TITLES_SHARE = 4, 20, 0.85
"""Letters of a longer word; how many make a run of titles, and the share that is capitalised.
German prose, which capitalises nouns, has half."""
_RANK_COST = 0.04
"""What a place further down among the ranked sentences costs."""


def sentence_of(
    thing: str, named: NamedComparison, ranked: Sequence[Candidate]
) -> Candidate | None:
    """Return the best sentence about a thing; None if none names it.

    The thing stands in the sentence or is its document's title. A sentence that speaks of the
    respect, begins with the thing, or defines it where no respect is given, goes first.

    Args:
        thing: One of the things compared.
        named: The comparison.
        ranked: Sentences, best first.
    """
    wanted, respect = frozenset(content_tokens(thing)), frozenset(content_tokens(named.respect))
    rows: list[tuple[float, Candidate]] = []
    for place, one in enumerate(_fitting(ranked)):
        title = frozenset(tokenise(one.item.hit.passage.document.title))
        if not (wanted <= one.tokens or wanted <= title) or one.dangles:
            continue
        opening = frozenset(tokenise(one.text)[:_OPENING_TOKENS])
        begins = frozenset(content_tokens(one.text)[: len(wanted)]) == wanted
        value = 2.0 * _share(respect, one.tokens) + (wanted <= opening) + (wanted == title)
        value += 0.5 * (wanted <= one.tokens) + 0.5 * begins
        value += 0.5 * (not respect and _DEFINES.match(one.text) is not None)
        rows.append((value - _RANK_COST * place, one))
    return max(rows, key=lambda row: row[0])[1] if rows else None


def sentence_of_all(named: NamedComparison, ranked: Sequence[Candidate]) -> Candidate | None:
    """Return the best sentence that names all things: it says how they differ."""
    wanted = frozenset(token for thing in named.things for token in content_tokens(thing))
    respect = frozenset(content_tokens(named.respect))
    fitting = [one for one in _fitting(ranked) if wanted <= one.tokens and not one.dangles]
    return max(fitting, key=lambda one: _share(respect, one.tokens), default=None)


def write_comparison(
    quoting: Quoting, rows: Mapping[str, Candidate | None], both: Candidate | None
) -> None:
    """Write the sentence about all things, then the table of single ones.

    Args:
        quoting: Where it is written.
        rows: The sentence of each thing; None where nothing was found.
        both: A sentence about all of them.
    """
    if both is not None and both not in rows.values():
        quoting.start_block()
        quoting.quote(both)
    quoting.start_block("| | What the documents say | Document |\n|---|---|---|")
    for thing, sentence in rows.items():
        quoting.say(f"\n| {_cell(thing)} | ")
        if sentence is None:
            quoting.say(f"{NOT_FOUND} | |")
            continue
        quoting.quote(sentence, in_table=True)
        quoting.say(f" | {_cell(sentence.item.hit.passage.document.title)} |")


def _fitting(ranked: Sequence[Candidate]) -> list[Candidate]:
    return [
        one
        for one in ranked
        if one.whole
        and not _CAPTION.match(one.text)
        and not (one.listed or one.entry or _is_titles(one.text))
        and one.end - one.start <= MAX_QUOTE_CHARS
    ]


def _is_titles(line: str) -> bool:
    """Return whether a line is a run of titles: long, and most longer words are capitalised."""
    words = [word for word in line.split() if len(word) >= _LONGER]
    capital = sum(word[0].isupper() and not word.isupper() for word in words)
    return len(words) >= _TITLES_WORDS and capital >= _TITLES_SHARE * len(words)


def _share(wanted: AbstractSet[str], found: AbstractSet[str]) -> float:
    """Return the share of wanted tokens that were found; 0 if none is wanted."""
    return len(wanted & found) / len(wanted) if wanted else 0.0


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
