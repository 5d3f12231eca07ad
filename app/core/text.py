"""Fold and tokenise text: the tokenizer for all lexical work in Python.

tantivy's analyzer (app/storage/words/tantivy.py) is configured to agree with `tokenise`: split at
non-alphanumerics, drop tokens over 40 bytes, lower-case, Snowball English stemmer. `lexical_form`
runs before both; it stems words of other languages first (docs/decisions/0208).
"""

from __future__ import annotations

import re
import string
import threading
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

import Stemmer

from app.core.languages import DEFAULT, LANGUAGES
from app.core.normalisation import without_piles

TOKENIZER_VERSION = "4"
"""Part of every fingerprint: changing what `tokenise` or `lexical_form` returns means
re-indexing."""

MAX_TOKEN_BYTES = 40
"""Longer tokens are dropped by both analyzers (base64, hashes, URLs)."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003134f"
_CJK_RUN = re.compile(f"[{_CJK}]+|[\u0e00-\u0e7f]+")
"""Han, kana, Hangul; Thai, which has no spaces between words either."""
_THAI_TONES = re.compile("[\u0e47-\u0e4e]+")
"""tantivy splits words at them."""
UNSPACED = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
"""Han and kana for an expression's class: their words stand without spaces; Hangul has them."""
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_UNSPACED_GAP = re.compile(f"(?<=[{UNSPACED}])(?:[ \t]+|[ \t]*\n[ \t]*)(?=[{UNSPACED}])")
"""A line's end, or the distance of glyphs that a PDF sets apart; a blank line divides."""
_MARKS = re.compile("[\u0300-\u036f]+")
_ALPHABETIC_MARKS = (
    "\u0345\u0363-\u036f\u05b0-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u0657\u0659-\u065f\u0670\u06d6-\u06dc\u06e1-\u06e4\u06e7-\u06e8\u06ed\u0711"
    "\u0730-\u073f\u07a6-\u07b0\u0816-\u0817\u081b-\u0823\u0825-\u0827\u0829-\u082c\u088f\u0897"
    "\u08d4-\u08df\u08e3-\u08e9\u08f0-\u0903\u093a-\u093b\u093e-\u094c\u094e-\u094f\u0955-\u0957"
    "\u0962-\u0963\u0981-\u0983\u09be-\u09c4\u09c7-\u09c8\u09cb-\u09cc\u09d7\u09e2-\u09e3"
    "\u0a01-\u0a03\u0a3e-\u0a42\u0a47-\u0a48\u0a4b-\u0a4c\u0a51\u0a70-\u0a71\u0a75\u0a81-\u0a83"
    "\u0abe-\u0ac5\u0ac7-\u0ac9\u0acb-\u0acc\u0ae2-\u0ae3\u0afa-\u0afc\u0b01-\u0b03\u0b3e-\u0b44"
    "\u0b47-\u0b48\u0b4b-\u0b4c\u0b56-\u0b57\u0b62-\u0b63\u0b82\u0bbe-\u0bc2\u0bc6-\u0bc8"
    "\u0bca-\u0bcc\u0bd7\u0c00-\u0c04\u0c3e-\u0c44\u0c46-\u0c48\u0c4a-\u0c4c\u0c55-\u0c56\u0c5c"
    "\u0c62-\u0c63\u0c81-\u0c83\u0cbe-\u0cc4\u0cc6-\u0cc8\u0cca-\u0ccc\u0cd5-\u0cd6\u0cdc"
    "\u0ce2-\u0ce3\u0cf3\u0d00-\u0d03\u0d3e-\u0d44\u0d46-\u0d48\u0d4a-\u0d4c\u0d57\u0d62-\u0d63"
    "\u0d81-\u0d83\u0dcf-\u0dd4\u0dd6\u0dd8-\u0ddf\u0df2-\u0df3\u0e31\u0e34-\u0e3a\u0e4d\u0eb1"
    "\u0eb4-\u0eb9\u0ebb-\u0ebc\u0ecd\u0f71-\u0f83\u0f8d-\u0f97\u0f99-\u0fbc\u102b-\u1036\u1038"
    "\u103b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d"
    "\u108f\u109a-\u109d\u1712-\u1713\u1732-\u1733\u1752-\u1753\u1772-\u1773\u17b6-\u17c8"
    "\u1885-\u1886\u18a9\u1920-\u192b\u1930-\u1938\u1a17-\u1a1b\u1a55-\u1a5e\u1a61-\u1a74"
    "\u1abf-\u1ac0\u1acc-\u1ace\u1b00-\u1b04\u1b35-\u1b43\u1b80-\u1b82\u1ba1-\u1ba9\u1bac-\u1bad"
    "\u1be7-\u1bf1\u1c24-\u1c36\u1c89-\u1c8a\u1dd3-\u1df4\u24b6-\u24e9\u2de0-\u2dff\ua674-\ua67b"
    "\ua69e-\ua69f\ua7cb-\ua7cf\ua7d2\ua7d4\ua7da-\ua7dc\ua7f1\ua802\ua80b\ua823-\ua827"
    "\ua880-\ua881\ua8b4-\ua8c3\ua8c5\ua8ff\ua926-\ua92a\ua947-\ua952\ua980-\ua983\ua9b4-\ua9bf"
    "\ua9e5\uaa29-\uaa36\uaa43\uaa4c-\uaa4d\uaa7b-\uaa7d\uaab0\uaab2-\uaab4\uaab7-\uaab8\uaabe"
    "\uaaeb-\uaaef\uaaf5\uabe3-\uabea\ufb1e"
)
"""Basic-plane code points that Unicode calls alphabetic and `\\w` does not: vowel signs of
Indic, Semitic and other scripts (DerivedCoreProperties, Other_Alphabetic, Unicode 16). tantivy
keeps them inside words, so does `_WORD`."""
_WORD = re.compile(f"(?:[^\\W_]|[{_ALPHABETIC_MARKS}])+")


def lexical_form(text: str, language: str = DEFAULT) -> str:
    """Return text as both analyzers see it, words of other languages than English stemmed.

    Compatibility forms and accents are folded; runs of CJK become spaced bigrams. Runs of Han and
    kana go on over spaces and single line ends, which their writing does not have between words.
    ASCII text comes back unchanged. Where all letters beyond ASCII fold into it, signs beyond it
    become `?`: no analyzer tells them apart. Offsets are not kept: use it for matching, never for
    quoting.
    """
    known = LANGUAGES.get(language)
    if language != DEFAULT and known is not None and known.stemmer:
        # before accents are folded: they tell endings
        stems = _stems_of(known.stemmer)
        text = _WORD.sub(lambda word: stems[word.group()], unicodedata.normalize("NFC", text))
    if text.isascii():
        return text
    spelt = _spelt_in_ascii(text)
    return _folded(text) if spelt is None else spelt


def _spelt_in_ascii(text: str) -> str | None:
    """Return a text whose letters all fold into ASCII; None for any other.

    Also None for a text with too many different runs beyond ASCII. Most texts hold a few accents,
    dashes and quotes: folding those alone halves the time of `tokenise`.
    """
    runs = set(_BEYOND_ASCII.findall(text))
    if len(runs) > _MOST_RUNS:
        return None
    for run in sorted(runs, key=len, reverse=True):  # a short one may stand within a long one
        spelt = _SPELLINGS[run]
        if spelt is None:
            return None
        text = text.replace(run, spelt)
    return text


def _folded(text: str) -> str:
    folded = unicodedata.normalize(
        "NFC", _MARKS.sub("", unicodedata.normalize("NFKD", without_piles(text)[0]))
    )
    folded = folded.replace(_CAPITAL_SIGMA, _SIGMA).replace(_FINAL_SIGMA, _SIGMA)
    folded = folded.replace(_DOTLESS_I, "i")
    folded = _THAI_TONES.sub("", folded)
    return _CJK_RUN.sub(lambda run: f" {_bigrams(run.group())} ", _UNSPACED_GAP.sub("", folded))


class _Spellings(dict[str, str | None]):
    """Folds runs beyond ASCII into it; None if a letter has no ASCII form.

    Every other sign becomes `?`. Such a run means the same wherever it stands: the only marks that
    join an ASCII letter before them are dropped by folding.
    """

    def __missing__(self, run: str) -> str | None:
        if len(run) > _LONGEST_RUN:
            return None
        if len(self) >= _MOST_SPELLINGS:
            self.clear()
        folded = _folded(run)
        letters = _WORD.search("".join(_BEYOND_ASCII.findall(folded)))
        spelt = self[run] = None if letters else folded.encode("ascii", "replace").decode()
        return spelt


_SPELLINGS = _Spellings()
_MOST_SPELLINGS = 20_000
_LONGEST_RUN = 16
"""Characters; accented letters, dashes and quotes stand in short runs."""
_MOST_RUNS = 64
"""Each is replaced in a pass over the text: more would make the time grow with the square of a
text made for that."""
# only Python's lower() writes a final sigma at the end of a word
_CAPITAL_SIGMA, _FINAL_SIGMA, _SIGMA = "\u03a3\u03c2\u03c3"
_BEYOND_ASCII = re.compile("[^\x00-\x7f]+")


def _bigrams(run: str) -> str:
    return run if len(run) < 2 else " ".join(run[i : i + 2] for i in range(len(run) - 1))


class _Stemmer(threading.local):
    """One per thread: the C object is not thread-safe."""

    def __init__(self, algorithm: str) -> None:
        self.stem: Callable[[str], str] = Stemmer.Stemmer(algorithm, 0).stemWord


_STEMMER = _Stemmer("english")
_MOST_STEMS = 200_000
"""About 30 MB; the vocabulary of a large library's passages and questions, proper names left
out."""


class _WordStems(dict[str, str]):
    """Caches stems by the word as it is written, for all threads; clears itself when full.

    A look-up costs a tenth of a call into Snowball.
    """

    def __init__(self, algorithm: str) -> None:
        super().__init__()
        self._stemmer = _Stemmer(algorithm)

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_STEMS:
            self.clear()
        stem = self[word] = self._stemmer.stem(word.lower().replace(_DOTTED_I, "i"))
        return stem


_DOTTED_I = "i\u0307"
"""What Python makes of the Turkish capital I with a dot."""
_DOTLESS_I = "\u0131"
"""Typed as i on keyboards of other languages."""


@cache
def _stems_of(algorithm: str) -> _WordStems:
    return _WordStems(algorithm)


class _AsciiStems(dict[bytes, str]):
    """Caches stems of lower-case ASCII words as bytes; refuses over-long words."""

    def __missing__(self, word: bytes) -> str:
        if len(word) > MAX_TOKEN_BYTES:
            raise _TooLong
        if len(self) >= _MOST_STEMS:
            self.clear()
        stem = self[word] = _STEMMER.stem(word.decode())
        return stem


class _TooLong(Exception):
    """A word that neither analyzer indexes."""


_STEMS, _ASCII_STEMS = _WordStems("english"), _AsciiStems()


def word_count(text: str) -> int:
    """Return the number of words: runs between spaces; two Han or kana count as one."""
    return len(text.split()) + (
        0 if text.isascii() else sum(map(len, _UNSPACED_RUN.findall(text))) // 2
    )


_IDENTIFIER = re.compile(
    r"(?<!\w)(?:(?=[\w./-]*\d)(?=[\w./-]*[^\W\d])\w+(?:[./-]\w+)+|\d+(?:\.\d+){2,})", re.ASCII
)


def identifiers(text: str) -> list[str]:
    """Return codes in lower case: `wo-24-0346`, `10.0.28.5`; letters with digits, or three numbers.

    Signs stand between their parts; a word with a hyphen and a decimal are none.
    """
    return [one.casefold() for one in _IDENTIFIER.findall(text)]


def words(text: str) -> list[str]:
    """Return lower-cased words without stemming, in order."""
    form = lexical_form(text)
    if form.isascii():
        return form.encode().translate(_ASCII_FOLD).decode().split()
    return [word.lower() for word in _WORD.findall(form)]


def tokenise(text: str, language: str = DEFAULT) -> list[str]:
    """Return the stemmed tokens in order, as tantivy's analyzer indexes them.

    Args:
        text: Of any kind.
        language: By whose rules words are stemmed; one that is not listed: English.
    """
    form = lexical_form(text, language)
    if form.isascii():
        return _ascii_tokens(form.encode())
    kept = [word.lower() for word in _WORD.findall(form) if len(word) <= MAX_TOKEN_BYTES]
    if not all(map(str.isascii, kept)):
        kept = [word for word in kept if len(word.encode()) <= MAX_TOKEN_BYTES]
    return list(map(_STEMS.__getitem__, kept))


def _ascii_tokens(text: bytes) -> list[str]:
    """Return the tokens of ASCII text, folded and split as bytes.

    This takes half the time of the expression.
    """
    found = text.translate(_ASCII_FOLD).split()
    try:
        return list(map(_ASCII_STEMS.__getitem__, found))
    except _TooLong:
        return [_ASCII_STEMS[word] for word in found if len(word) <= MAX_TOKEN_BYTES]


_ASCII_FOLD = bytes(
    ord(chr(code).lower()) if chr(code).isalnum() and code < 128 else ord(" ")
    for code in range(256)
)
"""Lower-case letters and digits stand for themselves, upper-case ones for their lower case,
everything else for a space."""


def either(names: Iterable[str]) -> str:
    """Return names as a choice: `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


_FAULTS: Mapping[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "string_type": "must be a text",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "dataclass_type": "must be an object",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
}
"""By the type of pydantic's errors (docs.pydantic.dev/2.11/errors/validation_errors)."""


def fault_in_words(kind: str, limits: Mapping[str, object], message: str) -> str:
    """Return what is wrong with a value, after its name; pydantic's message where we have none."""
    known = "must not be empty" if limits.get("min_length") == 1 else _FAULTS.get(kind)
    if known is None:
        return f": {message.removeprefix('Value error, ')}"
    return f" {known.format_map(limits)}"


def edit_distance(left: str, right: str) -> int:
    """Return the fewest inserts, deletes, changes and swaps between two words.

    Each letter is edited at most once.

    References:
        Damerau: A technique for computer detection and correction of spelling errors, CACM 1964
            (optimal string alignment).
    """
    before: list[int] = []
    last = list(range(len(right) + 1))
    for i, one in enumerate(left, 1):
        row = [i]
        for j, other in enumerate(right, 1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (one != other))
            if i > 1 and j > 1 and one == right[j - 2] and left[i - 2] == other:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        before, last = last, row
    return last[-1]


def one_edit_away(token: str) -> set[str]:
    """Return what one insert, delete, change or swap of letters or digits makes of a token."""
    letters = string.ascii_lowercase + string.digits
    cuts = [(token[:at], token[at:]) for at in range(len(token) + 1)]
    deletes = {left + right[1:] for left, right in cuts if right}
    swaps = {left + right[1] + right[0] + right[2:] for left, right in cuts if len(right) > 1}
    changes = {left + letter + right[1:] for left, right in cuts if right for letter in letters}
    inserts = {left + letter + right for left, right in cuts for letter in letters}
    return (deletes | swaps | changes | inserts) - {""}


@cache
def function_words(language: str, stemmed_in: str = "") -> frozenset[str]:
    """Return the function words of a language as tokens; empty without a list.

    They are rare in some libraries, so their idf does not tell.

    Args:
        language: Whose words.
        stemmed_in: By the rules of which language they are stemmed; empty: of their own.
    """
    listed = LANGUAGES[language].function_words if language in LANGUAGES else ""
    return _tokens(listed, stemmed_in or language)


def _tokens(listed: str, language: str) -> frozenset[str]:
    return frozenset(token for word in listed.split() for token in tokenise(word, language))


CLAIMLESS_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        code: function_words(code) | _tokens(language.connectives, code)
        for code, language in LANGUAGES.items()
    }
)
"""Stemmed words that carry no claim of their own, by language."""


def content_or_all(tokens: Sequence[str], language: str = DEFAULT, asked_in: str = "") -> list[str]:
    """Return a question's tokens without function words; all if none are left.

    Args:
        tokens: Stemmed, as `tokenise` returns them for `language`.
        language: Of the documents that are searched.
        asked_in: Of the question; empty: unknown, or the same.
    """
    empty = function_words(language)
    if asked_in and asked_in != language:
        empty |= function_words(asked_in, language)
    return [token for token in tokens if token not in empty] or list(tokens)
