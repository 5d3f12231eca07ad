"""A follow-up becomes a search query that stands alone; the answer still sees the user's own words.

The helper model rewrites. What it returns is only taken when it is usable and adds nothing from earlier topics to a question that
already stood alone: small models carry the old subject into a new one.
"""

from __future__ import annotations

import re

from app.answer.memory import Memory
from app.answer.models import ModelCalls
from app.core.errors import InvalidInput, ProviderError
from app.core.text import tokenise, words

MAX_QUERY_CHARS = 500
"""A longer rewrite is an answer or an explanation."""

_LABEL = re.compile(
    r"^\s*(?:[-*]\s+|(?:re-?written|standalone|search|new)?\s*(?:question|query|message|rewrite|rewritten)?\s*:\s*)", re.IGNORECASE
)
_QUOTES = "\"'`\u201c\u201d\u2018\u2019* "
_REFERRING = frozenset(
    # words that point back, in English, Spanish, German and French
    "it its itself they them their theirs he him his she her hers this that these those there here one ones former latter same such"
    " above previous earlier first second third last other another else more also too again both either and or but so then why"
    " su sus este esta esto ese esa eso aquel ellos ellas el ella lo la los las le y tambien"
    " er sie es ihn ihm ihr ihre ihrer sein seine seiner seines dies diese dieser dieses das davon dazu damit dort und auch"
    " il elle ils elles lui leur leurs ce cet cette ces cela ca celui celle en son sa ses et aussi".split()
)
_ENGLISH = frozenset("the a an is are was were do does did what which who whom whose when where how in of for to".split())
_STANDALONE_WORDS = 3


def rewrite(question: str, memory: Memory, calls: ModelCalls) -> str | None:
    """Return a standalone search query, or None when the literal question serves.

    It does on the first turn, after nothing but pleasantries, without a model and without a usable rewrite.

    Args:
        question: The newest message, politeness taken off.
        memory: What was said before.
        calls: The helper.
    """
    if not memory.questions or calls.helper is None:
        return None
    try:
        reply = calls.ask("rewrite", history=memory.transcript(), question=question)
    except (
        ProviderError,
        InvalidInput,
    ):  # the literal question still finds something; the answer will say when the model host is gone
        return None
    query = cleaned(reply)
    if not query or query.casefold() == question.casefold() or is_contaminated(question, query, memory):
        return None
    return query


def cleaned(reply: str) -> str:
    """Return the query in a model's reply: first line with words, without label and quotation marks; empty when too long."""
    for line in reply.splitlines():
        query = _LABEL.sub("", line).strip(_QUOTES)
        if any(char.isalnum() for char in query):
            return query if len(query) <= MAX_QUERY_CHARS else ""
    return ""


def is_contaminated(question: str, query: str, memory: Memory) -> bool:
    """Return whether a rewrite drags an earlier topic into a question that stands alone.

    A question stands alone when it is English, has at least three words of its own and none that points back. Other questions are
    never judged: their rewrite must add something.
    """
    said = words(question)
    if _REFERRING.intersection(said) or not _ENGLISH.intersection(said):
        return False
    own = set(tokenise(question)) - set(tokenise(" ".join(_ENGLISH)))
    if len(own) < _STANDALONE_WORDS:
        return False
    added = set(tokenise(query)) - set(tokenise(question)) - set(tokenise(" ".join(_ENGLISH | _REFERRING)))
    return bool(added & set(tokenise(memory.transcript())))
