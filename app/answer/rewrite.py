"""Rewrite a follow-up into a standalone query; the answer sees the original.

The helper model rewrites only what points back. Small models change the question, carry the old
subject into a new one, or answer: a rewrite is taken only where it keeps the question's words or
replaces them by words of the conversation, and adds nothing else.
"""

from __future__ import annotations

import re

from app.answer.memory import Memory
from app.answer.models import ModelCalls
from app.answer.outcome import reads_as_refusal
from app.core.errors import InvalidInput, ProviderError
from app.core.text import tokenise, words
from app.generation.reading import content_tokens

MAX_QUERY_CHARS = 500
"""A longer rewrite is an answer or an explanation."""

_LABEL = re.compile(
    r"^\s*(?:[-*]\s+|(?:re-?written|standalone|search|new)?\s*(?:question|query|message|rewrite"
    r"|rewritten)?\s*:\s*)",
    re.IGNORECASE,
)
_QUOTES = "\"'`\u201c\u201d\u2018\u2019* "
_REFERRING = frozenset(
    # words that point back, in English, Spanish, German and French
    "it its itself they them their theirs he him his she her hers this that these those there here"
    " one ones former latter same such"
    " above previous earlier first second third last other another else more also too again both"
    " either and or but so then why"
    " su sus este esta esto ese esa eso aquel ellos ellas el ella lo la los las le y tambien"
    " er sie es ihn ihm ihr ihre ihrer sein seine seiner seines dies diese dieser dieses das davon"
    " dazu damit dort und auch"
    " il elle ils elles lui leur leurs ce cet cette ces cela ca celui celle en son"
    " sa ses et aussi".split()
)
_OPENERS = re.compile(r"^\s*(?:and|or|but|what about|how about|y|und|et)\b", re.IGNORECASE)
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
    if not memory.questions or calls.helper is None or stands_alone(question):
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


def cleaned(reply: str) -> str:
    """Return the query in a reply: first line, no label or quotes; may be empty.

    Empty when too long.
    """
    for line in reply.splitlines():
        query = _LABEL.sub("", line).strip(_QUOTES)
        if any(char.isalnum() for char in query):
            return query if len(query) <= MAX_QUERY_CHARS else ""
    return ""


def stands_alone(question: str) -> bool:
    """Return whether a message is complete without the conversation.

    Nothing in it points back.
    """
    said = words(question)
    return (
        not _REFERRING.intersection(said)
        and not _OPENERS.search(question)
        and len(content_tokens(question)) >= _FEW_WORDS
    )


def holds(question: str, query: str, memory: Memory) -> bool:
    """Return whether a rewrite keeps the question's words and adds only known ones.

    Known words are those of the conversation. A content word may go where the words around it point
    back ("that experiment", "the second one"), because then something of the conversation stands in
    its place.
    """
    if reads_as_refusal(query):
        return False
    asked, now = words(question), set(tokenise(query))
    pointing = {at for at, word in enumerate(asked) if word in _REFERRING}
    for at, word in enumerate(asked):
        tokens = set(content_tokens(word))
        if tokens and not tokens & now and at not in pointing and at - 1 not in pointing:
            return False
    added = set(content_tokens(query)) - set(tokenise(question))
    return added <= set(tokenise(memory.transcript()))
