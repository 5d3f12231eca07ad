"""Turn a message into what is searched: its rewrite, its parts, what it carries from before."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from app.answer.intent import only_polite
from app.answer.memory import Memory
from app.answer.models import ModelCalls
from app.answer.pointing import pointing_words, stands_alone
from app.answer.search import SearcherFor, libraries
from app.answer.writing import reads_as_refusal
from app.core.errors import InvalidInput, ProviderError
from app.core.sentences import sentence_spans
from app.core.text import tokenise, words
from app.core.types import Scope
from app.generation.language.claims import content_tokens

# Rewrite a follow-up into a standalone query; the answer sees the original.

MAX_QUERY_CHARS = 500
"""A longer rewrite is an answer or an explanation."""

_LABEL = re.compile(
    r"^\s*(?:[-*]\s+|(?:re-?written|standalone|search|new)?\s*(?:question|query|message|rewrite"
    r"|rewritten)?\s*:\s*)",
    re.IGNORECASE,
)
_QUOTES = "\"'`\u201c\u201d\u2018\u2019* "
_MARKS = ("?", "\u061f", "\uff1f")
_FEW_WORDS = 2
"""A message with fewer content words than this leans on what was said before."""


def rewrite(question: str, memory: Memory, calls: ModelCalls) -> str | None:
    """Return a standalone search query, or None when the literal question serves.

    It does on the first turn, after nothing but pleasantries, without a model and without a usable
    rewrite.

    Args:
        question: The newest message, politeness taken off.
        memory: What was said before.
        calls: The helper.
    """
    if not memory.questions or calls.helper is None or stands_alone(question, memory.questions):
        return None
    try:
        reply = calls.ask("rewrite", history=memory.transcript(), question=question)
    except (
        ProviderError,
        InvalidInput,
    ):  # the literal question still finds something; the answer says that the host is gone
        return None
    query = cleaned(reply)
    if not query or query.casefold() == question.casefold() or not holds(question, query, memory):
        return None
    return query


def translate(question: str, language: str, calls: ModelCalls) -> str | None:
    """Return a question in a language, by its English name; None without a usable translation."""
    try:
        query = cleaned(calls.ask("translate", question=question, language=language))
    except (ProviderError, InvalidInput):  # the question's own words still find something
        return None
    return query if query and not reads_as_refusal(query) else None


def cleaned(reply: str) -> str:
    """Return the query in a reply: first line, no label or quotes; may be empty.

    Empty when too long.
    """
    for line in reply.splitlines():
        query = _LABEL.sub("", line).strip(_QUOTES)
        if any(char.isalnum() for char in query):
            return query if len(query) <= MAX_QUERY_CHARS else ""
    return ""


def holds(question: str, query: str, memory: Memory) -> bool:
    """Return whether a rewrite keeps the question's words and adds only known ones.

    Known words are those of the conversation. A content word may go where the words around it point
    back ("that experiment", "the second one"), because then something of the conversation stands in
    its place.
    """
    if reads_as_refusal(query):
        return False
    asked, now = words(question), set(tokenise(query))
    pointing = {at for at, word in enumerate(asked) if word in pointing_words(question)}
    for at, word in enumerate(asked):
        tokens = set(content_tokens(word))
        if tokens and not tokens & now and at not in pointing and at - 1 not in pointing:
            return False
    added = set(content_tokens(query)) - set(tokenise(question))
    return added <= set(tokenise(memory.transcript()))


# Take the question out of a letter.

_ANNOUNCED = re.compile(r"(?::|\bnamely|\bn\u00e4mlich|\ba saber)\s+(?=\w)", re.IGNORECASE)
"""Behind it stands what a long sentence asks for."""
_ASKS = re.compile(
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|has|have|can|may"
    r"|must|should|will|the (?:\w+ ){1,3}(?:in which|when|where|of|at which|that)"
    r"|wer|wen|wem|was|wann|wo|welche[rsnm]?|warum|wie|qu\u00e9|qui\u00e9n|cu\u00e1ndo|d\u00f3nde"
    r"|c\u00f3mo|cu\u00e1l|cu\u00e1nt[oa]s?)\b",
    re.IGNORECASE,
)
_WRITER = re.compile(
    r"\b(?:i|me|my|we|us|our|please|ich|mir|mich|mein\w*|wir|uns\w*|bitte"
    r"|yo|mi|nos|nuestr\w*|quiero|quisiera|favor)\b",
    re.IGNORECASE,
)
"""Before a colon it tells a letter from a title ("Late bleeding: is it an event of the night?")."""
_LETTER = 2
"""Sentences from which on a message may tell something before it asks."""


def extract_question(message: str) -> tuple[str, tuple[str, ...]]:
    """Return what a message asks, and the sentences around it.

    It is the sentences that end in a question mark, with those before them while too few words are
    left to be a question; where they are only polite it is the one before them. Of a long sentence
    in which the writer speaks it is what stands behind a colon; a title is a part of its question.
    """
    said = [message[start:end] for start, end in sentence_spans(message)]
    chosen = {at for at, one in enumerate(said) if one.rstrip().endswith(_MARKS)}
    if len(said) >= _LETTER and chosen:
        while only_polite(_joined(said, chosen)) and min(chosen) > 0:
            chosen = {min(chosen) - 1}
        while len(content_tokens(_joined(said, chosen))) < _FEW_WORDS and min(chosen) > 0:
            chosen.add(min(chosen) - 1)
        around = tuple(one for at, one in enumerate(said) if at not in chosen)
        message = _joined(said, chosen)
    else:
        around = ()
    for told in (message[: match.end()] for match in _ANNOUNCED.finditer(message)):
        asked = message[len(told) :]
        tells = _WRITER.search(told) is not None and not _ASKS.match(told)
        if tells and _ASKS.match(asked) and len(words(told)) > _FEW_WORDS:
            return asked, (*around, told)
    return message, around


_AND = re.compile(
    r"(?<=\?)\s+|,?\s+(?:and|und|y)\s+"
    r"(?=(?:who|what|when|where|which|why|how|wer|was|wann|wo|welche"
    r"|warum|wie|qui\u00e9n|qu\u00e9|cu\u00e1nd?o|d\u00f3nde|cu\u00e1l|c\u00f3mo)\w*\b)",
    re.IGNORECASE,
)


def parts_of(question: str) -> tuple[str, ...]:
    """Return the questions of one that asks several; none where one of them asks too little."""
    parts = [one.strip(" ,") for one in _AND.split(question)]
    whole = len(parts) > 1 and all(len(content_tokens(one)) >= _FEW_WORDS for one in parts)
    return tuple(one if one.endswith(_MARKS) else f"{one}?" for one in parts) if whole else ()


def _joined(said: Sequence[str], chosen: Collection[int]) -> str:
    return " ".join(one for at, one in enumerate(said) if at in chosen)


# Add the last subject to a question that points back, without a model.

_WORDS = 2
"""Carried of earlier questions; docs/decisions/0062."""


def carried(
    question: str, earlier: Sequence[str], scope: Scope, searcher_for: SearcherFor
) -> str | None:
    """Return the question with rare words of earlier ones in front; None if it stands alone.

    They are those of the last question that stands alone, and where these are too few, of what
    followed it. None too where the library knows no word of them.

    Args:
        question: The newest message.
        earlier: Questions before it, oldest first.
        scope: Libraries whose passages say how rare a word is.
        searcher_for: How they are searched.
    """
    if not earlier or stands_alone(question, earlier):
        return None
    said = set(content_tokens(question))
    added: list[str] = []
    for text in _topic(earlier):
        fresh = {
            token: word
            for word in words(text)
            for token in content_tokens(word)
            if token not in said
        }
        counts = _frequencies(list(fresh), scope, searcher_for)
        telling = sorted((token for token in fresh if counts[token]), key=counts.__getitem__)
        added += [fresh[token] for token in telling[: _WORDS - len(added)]]
        said |= fresh.keys()
    return f"{' '.join(added)}: {question}" if added else None


def _topic(earlier: Sequence[str]) -> Sequence[str]:
    """Return the last question that stands alone, with those that followed it."""
    alone = (at for at in reversed(range(len(earlier))) if stands_alone(earlier[at], earlier[:at]))
    return earlier[next(alone, 0) :]


def _frequencies(tokens: list[str], scope: Scope, searcher_for: SearcherFor) -> dict[str, int]:
    counts = dict.fromkeys(tokens, 0)
    for library in libraries(scope):
        lexical = searcher_for(library).retriever.lexical
        for token, count in lexical.document_frequencies(library, tokens)[1].items():
            counts[token] += count
    return counts


# Clean the replies of helper models.

_BULLET = re.compile(
    r"^\s*(?:(?:[-*\u2022]+|\(?\d{1,2}[.):])\s*)?(?:(?:sub-?)?(?:query|question)(?:\s\d)?:\s*)?",
    re.IGNORECASE,
)
_REPLY_QUOTES = "\"'`\u201c\u201d\u2018\u2019 "


def listed(reply: str) -> list[str]:
    """Return a reply's distinct lines without bullets, numbers or quotes.

    Lines that introduce the list ("Here are three queries:") are left out.
    """
    lines = [
        _BULLET.sub("", line).strip(_REPLY_QUOTES)
        for line in reply.splitlines()
        if not line.rstrip().endswith(":")
    ]
    distinct: dict[str, str] = {}
    for line in lines:
        if any(char.isalnum() for char in line):
            distinct.setdefault(line.casefold(), line)
    return list(distinct.values())
