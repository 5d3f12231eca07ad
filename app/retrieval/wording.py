"""Words of a question as the library writes them: quoted phrases, files by name, codes, beginnings.

A question may write a code otherwise than the documents do (`10uF` for `10 µF`), name a file, or
hold only the beginning of a word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from app.core.languages import language_of
from app.core.text import function_words, tokenise, words
from app.core.types import Library, Passage
from app.storage.catalog.documents import Catalog
from app.storage.words.port import LibraryWords

_QUOTED = re.compile(
    r"[\"\u201c\u201e\u201d]([^\"\u201c\u201d\u201e]{2,200})[\"\u201c\u201d]"
    r"|\u00ab([^\u00ab\u00bb]{2,200})\u00bb"
)
_NAME = re.compile(r"[^\s\"'<>|?*\u00ab\u00bb\u201c-\u201f]+")
"""What can be the name of a file, with the stops around it."""
_OF_A_FILE = re.compile(r"\.[^\W\d_]\w{0,4}(?!\w)|\d[-_]\w|\w[-_]\d")
"""An extension, or parts that are joined and have digits."""
_STOPS = ".,:;!"
_LONGEST_FILE = 255
_MOST_FILES = 5
_MOST_NAMESAKES = 50
"""Documents that are compared with one name."""
_RUN = re.compile(r"[^\W_]+")
_CODE = re.compile(
    r"[^\W_]+(?:[-\u2013./][^\W_]+)+|\d+(?: \d+)+(?![^\W_])|\d+ [^\W\d_]{1,3}(?![^\W_])|[^\W_]+"
)
"""Parts that signs join, groups of digits, a figure with its unit, or one word."""
_MICRO = "[u\u00b5\u03bc]"
"""The sign of millionths, its Greek letter, and what is typed for them."""
_LONGEST_NAME = 6
"""Letters of an abbreviation."""
_BETWEEN = r"[\W_]{0,2}"
_LONGEST_CODE = 24
_MOST_PARTS = 6
"""Of a code that signs or blanks divide, such as an ISBN with its hyphens."""
_MOST_WAYS = 20
"""In which a code is cut into words of the library."""
_MOST_CODES = 8
_MOST_READ = 30
"""Passages read for one code, or for the words with one beginning."""
_SHORTEST_BEGINNING = 3
_LONGEST_ENDING = 4
"""Letters that stemming takes off a word at most, where it is searched by its beginning."""


def quotes(text: str) -> list[str]:
    """Return what stands in quotes, as `words` with a space before and behind each."""
    quoted = (words(one[1] or one[2]) for one in _QUOTED.finditer(text))
    return [f" {' '.join(found)} " for found in quoted if found]


def named_files(text: str, library: Library, catalog: Catalog) -> tuple[str, ...]:
    """Return the ids of the documents whose file a text names, with or without its extension."""
    folded = text.casefold()
    found: dict[str, None] = {}
    held = (name.rstrip(_STOPS) for name in _NAME.findall(folded))
    names = (name for name in held if len(name) <= _LONGEST_FILE and _OF_A_FILE.search(name))
    for name in list(dict.fromkeys(names))[:_MOST_FILES]:
        alike = catalog.documents(library, name, limit=_MOST_NAMESAKES)[0] if name else []
        for document in alike:
            filename = document.filename.casefold()
            is_whole = filename.endswith(name) and filename in folded
            if is_whole or filename.rpartition(".")[0] == name:
                found[document.doc_id] = None
    return tuple(found)


def as_written(text: str, library: Library, lexical: LibraryWords, catalog: Catalog) -> str:
    """Return a text with codes and beginnings of words as the library writes them.

    A code has a digit, or is an abbreviation: `10uF` becomes `10 µF`, and `CVE-2021-44228`
    `CVE202144228`, where these stand in a passage and those in none. The beginning of a word
    becomes the most frequent word that begins so, in a text without function words of which no
    passage holds any word.
    """
    search = _Search(library, lexical, catalog)
    spelt = search.with_codes(text)
    return spelt if spelt != text else search.with_whole_words(text)


class _Search:
    """Looks up words in one library."""

    def __init__(self, library: Library, lexical: LibraryWords, catalog: Catalog) -> None:
        self._library = library
        self._lexical = lexical
        self._catalog = catalog

    def _held(self, tokens: list[str]) -> set[str]:
        """Return those of these stemmed tokens that a body holds."""
        _, counts = self._lexical.document_frequencies(self._library, tokens)
        return {token for token in tokens if counts.get(token, 0)}

    def _is_known(self, word: str) -> bool:
        tokens = tokenise(word)
        return bool(tokens) and all(
            self._held([token]) or self._lexical.near(self._library, token, 0, 1)
            for token in tokens
        )

    def _passages(self, chunk_ids: list[int]) -> list[Passage]:
        return list(self._catalog.passages(self._library, chunk_ids).values())

    def with_codes(self, text: str) -> str:
        codes = [one for one in _CODE.findall(text) if _is_code(one)]
        written = {code: self._written(code) for code in codes[:_MOST_CODES]}
        return _CODE.sub(lambda found: written.get(found[0]) or found[0], text)

    def _written(self, code: str) -> str:
        """Return how a passage writes a code that none writes as the question does, or nothing."""
        signs = "".join(_RUN.findall(code)).lower()
        if len(signs) > _LONGEST_CODE or all(map(self._is_known, _RUN.findall(code))):
            return ""
        spelt = _BETWEEN.join(_MICRO if sign in _MICRO[1:-1] else re.escape(sign) for sign in signs)
        pattern = re.compile(rf"(?<!\w){spelt}(?!\w)", re.IGNORECASE)
        for query in self._ways(signs):
            hits = self._lexical.search(self._library, query, _MOST_READ)
            for passage in self._passages([hit.chunk_id for hit in hits]):
                if found := pattern.search(passage.chunk.text):
                    return " ".join(found[0].split())
        return ""

    def _ways(self, code: str) -> Iterator[str]:
        """Yield a code cut into words that bodies hold, fewest first; whole too."""
        ends = {
            code,
            code.replace("u", "\u03bc"),
            code.replace("\u03bc", "u").replace("\u00b5", "u"),
        }
        pieces = {
            one[start:end]: None
            for one in ends
            for start in range(len(one))
            for end in range(start + 1, len(one) + 1)
        }
        stems = {piece: (tokenise(piece) or [""])[0] for piece in pieces}
        held = self._held(list(dict.fromkeys(filter(None, stems.values()))))
        ways: list[list[str]] = []
        for one in sorted(ends):
            opened: list[tuple[int, list[str]]] = [(0, [])]
            for start, taken in opened:  # grows: fewest pieces come first
                if len(ways) >= _MOST_WAYS or len(opened) > 50 * _MOST_WAYS:
                    break
                if start == len(one):
                    ways.append(taken)
                elif len(taken) < _MOST_PARTS:
                    opened += [
                        (end, [*taken, one[start:end]])
                        for end in range(len(one), start, -1)
                        if stems[one[start:end]] in held
                    ]
        yield from (" ".join(way) for way in sorted(ways, key=len)[:_MOST_WAYS])

    def with_whole_words(self, text: str) -> str:
        spoken = words(text)
        empty = function_words(language_of(text) or self._lexical.languages(self._library)[0])
        if not spoken or any(empty.intersection(tokenise(word)) for word in spoken):
            return text
        if any(map(self._is_known, spoken)):
            return text
        whole = [self._begun(word) for word in spoken]
        return " ".join(filter(None, whole)) if all(whole) else text

    def _begun(self, start: str) -> str:
        """Return the most frequent word that begins so; nothing where there is none."""
        for cut in range(_LONGEST_ENDING + 1):
            if len(start) - cut < _SHORTEST_BEGINNING:
                break
            ids = self._lexical.beginning(self._library, start[: len(start) - cut], _MOST_READ)
            counts = Counter(
                word
                for passage in self._passages(ids)
                for word in words(f"{passage.document.names} {passage.chunk.text}")
                if word.startswith(start)
            )
            if counts:
                return max(counts, key=lambda word: (counts[word], word))
        return ""


def _is_code(text: str) -> bool:
    is_name = text.isupper() and text.isascii() and 2 <= len(text) <= _LONGEST_NAME
    return is_name or any(map(str.isdigit, text))
