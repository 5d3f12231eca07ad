"""Words of a question that no document holds, matched to near ones that some do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set

from app.core.edits import edit_distance
from app.core.function_words import function_words
from app.core.languages.detection import language_of
from app.core.ports import Catalog, LexicalIndex
from app.core.text import tokenise, words
from app.core.types import Library, Passage

_SHORTEST = 4
"""Letters of a word that is matched: shorter ones are near to too many."""
_LONG = 8
"""Letters from which two edits are allowed."""
_MOST_READ = 30
"""Passages read for near words."""
_MOST_WORDS = 8
"""Unknown words looked up; a question with more is in a language that the library does not hold."""


def matched_text(
    text: str,
    library: Library,
    lexical: LexicalIndex,
    catalog: Catalog,
    spelt_right: Set[str] = frozenset(),
) -> str:
    """Return a text with each unknown word replaced by a near known one.

    Unknown means that no passage holds it. The text itself if no word changes, or if it is in
    another language than most documents: its words are not misspelt. Near is one edit
    (insert, delete, change, swap neighbours), or two from eight letters on. Numbers, identifiers
    and words of other scripts stay. Of several near words the nearest is taken, then one with the
    same first letter, then the most frequent.

    Args:
        text: The question.
        library: Where it is asked.
        lexical: Knows which words the library holds.
        catalog: Passages with near words.
        spelt_right: Stems that stay, whether a passage holds them or not.
    """
    language = lexical.languages(library)[0]
    if language_of(text) not in {"", language}:
        return text
    spoken = words(text)
    stems = {
        word: (tokenise(word, language) or [""])[0]
        for word in dict.fromkeys(spoken)
        if _may_be_misspelt(word, language)
    }
    _, held = lexical.document_frequencies(library, list(stems.values()))
    unknown = [
        word
        for word, stem in stems.items()
        if stem
        and stem not in spelt_right
        and not held.get(stem, 0)
        and not lexical.near(library, stem, 0, 1)
    ]
    if not unknown or len(unknown) > _MOST_WORDS:
        return text
    near: dict[str, str | None] = {}
    for word in unknown:
        edits = 2 if len(word) >= _LONG else 1
        # A misspelt ending is stemmed otherwise: "vally" and "valley" are one edit apart, their
        # stems two.
        stem_edits = range(edits, 3)
        found = (
            _nearest(
                word,
                edits,
                catalog.passages(library, lexical.near(library, stems[word], n, _MOST_READ)),
                language,
            )
            for n in stem_edits
        )
        near[word] = next((other for other in found if other), None)
    return " ".join(near.get(word) or word for word in spoken) if any(near.values()) else text


def _may_be_misspelt(word: str, language: str) -> bool:
    return (
        len(word) >= _SHORTEST
        and word.isascii()
        and word.isalpha()
        and not function_words(language).intersection(tokenise(word, language))
    )


def _nearest(word: str, edits: int, passages: Mapping[int, Passage], language: str) -> str | None:
    """Return the word of these passages that is nearest, of those near enough."""
    counts = Counter(
        other
        for passage in passages.values()
        for other in words(f"{passage.document.title} {passage.chunk.text}")
    )
    far = {
        other: edit_distance(word, other)
        for other in counts
        if abs(len(other) - len(word)) <= edits and _may_be_misspelt(other, language)
    }
    near = [other for other, distance in far.items() if distance <= edits]
    return min(
        near,
        key=lambda other: (far[other], other[0] != word[0], -counts[other], other),
        default=None,
    )
