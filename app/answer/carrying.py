"""Add the last subject to a follow-up that names nothing new, without a model.

The two rarest words of the last two questions say what a conversation is about better than the
whole of them: a question that changes the topic is changed least by them.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.answer.search import SearcherFor, libraries
from app.core.text import tokenise, words
from app.core.types import Scope
from app.generation.reading import content_tokens
from app.generation.subject import named_things

_QUESTIONS = 2
"""Earlier ones that are looked at; evaluation/reports/followups.md."""
_WORDS = 2
"""Of them; evaluation/reports/followups.md."""


def carried(
    question: str, earlier: Sequence[str], scope: Scope, searcher_for: SearcherFor
) -> str | None:
    """Return the question with rare words of earlier ones in front; None if complete.

    It is where it names something that no earlier question named: that begins another topic. So it
    is where the library knows no word of the others.

    Args:
        question: The newest message.
        earlier: Questions before it, oldest first.
        scope: Libraries whose passages say how rare a word is.
        searcher_for: How they are searched.
    """
    if not earlier or _names_something_new(question, earlier):
        return None
    said = set(content_tokens(question))
    fresh = {
        token: word
        for text in earlier[-_QUESTIONS:]
        for word in words(text)
        for token in content_tokens(word)
        if token not in said
    }
    counts = _frequencies(list(fresh), scope, searcher_for)
    telling = sorted(
        (token for token in fresh if counts.get(token)), key=lambda token: counts[token]
    )
    added = [fresh[token] for token in telling[:_WORDS]]
    return f"{' '.join(added)}: {question}" if added else None


def _names_something_new(question: str, earlier: Sequence[str]) -> bool:
    said = {token for text in earlier for token in tokenise(text)}
    return any(not said.issuperset(tokenise(name)) for name in named_things(question))


def _frequencies(tokens: list[str], scope: Scope, searcher_for: SearcherFor) -> dict[str, int]:
    counts = dict.fromkeys(tokens, 0)
    for library in libraries(scope):
        frequencies = searcher_for(library).frequencies
        if frequencies is not None and tokens:
            for token, count in frequencies(tokens).items():
                counts[token] += count
    return counts
