"""What a disguised sentence says: letters that only look like Latin ones, digits for letters, letters set apart, Base64.

`plain` comes first and once; what it returns is what all patterns read. `unveiled` yields further readings, for the few sentences
that have one. All of it takes time in proportion to the text.

References:
    Unicode Technical Standard 39, confusables.txt (a choice of the letters that fonts draw like Latin ones); RFC 4648 (Base64).
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

_MARKS = re.compile("[\u0300-\u036f]+")
_LOOKALIKES = (
    # Greek, Cyrillic, Armenian, Cherokee; then Latin letters of phonetics, small capitals and strokes
    ("αаɑ", "a"), ("ьƅЬ", "b"), ("сϲⅽᴄ", "c"), ("ԁɗđᴅ", "d"), ("еεєҽᴇɛ", "e"), ("ɡցɢ", "g"), ("һհʜħ", "h"), ("іιɪıℹ", "i"), ("јʝᴊ", "j"),
    ("кκᴋ", "k"), ("ӏʟłⅼ", "l"), ("мᴍⅿ", "m"), ("ոηпɴ", "n"), ("оοσօᴏø", "o"), ("рρᴘ", "p"), ("ԛզ", "q"), ("гʀɾ", "r"), ("ѕꜱ", "s"), ("тτᴛŧ", "t"),
    ("υսцᴜʋ", "u"), ("νѵᴠ", "v"), ("ԝωѡᴡ", "w"), ("хχ", "x"), ("уүγʏ", "y"), ("ᴢȥ", "z"), ("ꜰғ", "f"), ("ʙв", "b"), ("ß", "ss"), ("œ", "oe"), ("æ", "ae"),
    ("ΑАᎪ", "A"), ("ΒВᏴ", "B"), ("СϹᏟ", "C"), ("ᎠĐ", "D"), ("ΕЕᎬ", "E"), ("Ԍ", "G"), ("ΗНᎻ", "H"), ("ΙІӀ", "I"), ("ЈᎫ", "J"), ("ΚКᏦ", "K"), ("ᏞŁ", "L"),
    ("ΜМᎷ", "M"), ("ΝꓠИ", "N"), ("ΟОՕØ", "O"), ("ΡРᏢ", "P"), ("ᏒЯ", "R"), ("ЅՏᏚ", "S"), ("ΤТᎢ", "T"), ("ՍЦ", "U"), ("ᏙѴ", "V"), ("ԜᏔ", "W"), ("ΧХ", "X"),
    ("ΥҮУ", "Y"), ("ΖᏃ", "Z"), ("Ғ", "F"),
)  # fmt: skip
_LETTER_OF = {ord(looks): letter for lookalikes, letter in _LOOKALIKES for looks in lookalikes}
_LOOKALIKE = re.compile("[" + "".join(map(chr, _LETTER_OF)) + "]")

_APART = re.compile(r"(?<![^\W_])[^\W_](?:[^\w\n]|[_\n]){1,4}(?:[^\W_](?:[^\w\n]|[_\n]){1,4}){4,}[^\W_](?![^\W_])")
_LEAST_APART = 6
_LONG_WORD = 12
"""Letters, set apart without a longer gap between the words, make one of so many at least."""
_RUN_PARTS = re.compile(
    "ignore|disregard|forget|override|bypass|discard|setaside|previous|prior|earlier|above|everything|system|instructions?|prompts?"
    "|rules?|guidelines?|guidance|directions|directives?|commands?|reveal|print|show|repeat|disclose|display|leak|tellme|hidden"
    "|secrets?|passwords?|credentials|apikeys?|your|youarenow|pretend|from|nowon|only|answer|reply|respond|write|say|with|all|any|the"
    "|must|should|assistant|chatbot|model"
)
_LEET = re.compile(r"[A-Za-z][0134578@$!|+]{1,2}[A-Za-z]")
_LEET_WORD = re.compile(r"[\w@$!|+]*[\w@$|+]")
_LEAST_LEET = 3
"""Digits between letters; fewer stand in names of genes and products."""
_LEET_LETTERS = str.maketrans({"0": "o", "3": "e", "4": "a", "5": "s", "7": "t", "8": "b", "9": "g", "@": "a", "$": "s", "+": "t"})
_ONES = re.compile("[1!|]")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}+(?:\s[A-Za-z0-9+/_-]{20,}+)*+")
_URL_SAFE = str.maketrans("-_", "+/")


def plain(sentence: str) -> str:
    """Return a sentence with compatibility forms and accents folded and lookalikes replaced by the Latin letters they look like.

    ASCII text comes back unchanged; lengths are not kept. Cyrillic and Greek words become nonsense, which no pattern knows.
    """
    if sentence.isascii():
        return sentence
    folded = _MARKS.sub("", unicodedata.normalize("NFKD", sentence))
    return folded.translate(_LETTER_OF) if _LOOKALIKE.search(folded) else folded


def unveiled(sentence: str, found: Sequence[str], known: Callable[[str], bool]) -> Iterator[str]:
    """Yield what a plain sentence may say in disguise; nothing for most.

    Args:
        sentence: As `plain` returns it.
        found: Its words, lower case.
        known: Whether a word in lower case is one that instructions are made of; settles which letter a `1` is.
    """
    lengths = list(map(len, found))
    if lengths.count(1) >= _LEAST_APART:
        together = _APART.sub(lambda run: _joined(run.group()), sentence)
        if together != sentence:
            yield together
            yield from _divided(together)
            sentence = together
    if _may_be_leet(sentence, found) and len(_LEET.findall(sentence)) >= _LEAST_LEET:
        yield _LEET_WORD.sub(lambda word: _spelt(word.group(), known), sentence)
    if max(lengths, default=0) >= _LONG_WORD:
        for run in _BASE64.finditer(sentence):
            decoded = _decoded(run.group())
            if decoded:
                yield plain(decoded)


def _may_be_leet(sentence: str, found: Sequence[str]) -> bool:
    """Return whether two words hold digits among letters, or one of the signs that stand for letters occurs."""
    if list(map(str.isalpha, found)).count(False) > 1 and sum(not (word.isalpha() or word.isdigit()) for word in found) > 1:
        return True
    return "@" in sentence or "$" in sentence


def _divided(sentence: str) -> Iterator[str]:
    """Yield what is said in each long word by words that instructions are made of, with spaces between them."""
    for word in sentence.split():
        if len(word) >= _LONG_WORD:
            yield " ".join(_RUN_PARTS.findall(word.lower()))


def _joined(run: str) -> str:
    """Return letters set apart as words: the gap that is most frequent stands within words, a longer one between them."""
    pieces = re.findall(r"([^\W_])([\W_]*)", run)
    shortest = min(len(gap) for _, gap in pieces[:-1])
    return "".join(letter + (" " if len(gap) > shortest else "") for letter, gap in pieces)


def _spelt(word: str, known: Callable[[str], bool]) -> str:
    """Return a word with letters for its digits."""
    letters = word.lower().translate(_LEET_LETTERS)
    first, second = _ONES.sub("i", letters), _ONES.sub("l", letters)
    return second if not known(first) and known(second) else first


def _decoded(run: str) -> str:
    """Return the text that a run of Base64 holds, empty when it is something else."""
    packed = "".join(run.split()).translate(_URL_SAFE)
    packed = packed[: len(packed) - (len(packed) % 4 == 1)]
    try:
        text = base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return text if text.replace("\n", " ").isprintable() else ""
