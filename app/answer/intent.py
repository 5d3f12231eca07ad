"""Classify a message without a model: question, pleasantry, or look back.

A look back asks about the conversation. Only whole messages count as pleasantries ("Hello!",
"vielen Dank"), so that "Hello, what is entropy?" stays a question. What is polite and empty in
front of a question is taken off before it is embedded, because it pulls the vector away from the
subject.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from app.core.languages import LANGUAGES
from app.core.types import Message

# Define phrases per language that need no model to recognise.

Pleasantry = Literal["greeting", "thanks"]

PLEASANTRIES: dict[tuple[Pleasantry, str], tuple[str, ...]] = {
    **{("thanks", code): one.thanks for code, one in LANGUAGES.items()},
    **{("greeting", code): one.greetings for code, one in LANGUAGES.items()},
}
"""By kind and language; thanks come first, because "hi, thanks" deserves a you're welcome."""

FILLERS = (
    r"there|everyone|all|team|again|bot|assistant|documind|my friend|friend|ok|okay|great|perfect"
    r"|cool|nice",
    r"awesome|wonderful|super",
    r"(?:that (?:was|is) )?(?:very |really |so )?helpful|that helps|you too|and",
    r"vale|perfecto|genial|de nuevo|y|alles klar|prima|toll|perfekt|nochmals|und|parfait|d'accord"
    r"|tres bien|encore|et",
)
"""Words around a pleasantry that do not make it a question."""

LEAD_INS = (
    r"please|kindly|por favor|bitte|s'il (?:vous|te) plait",
    r"(?:could|can|would|will) you(?: please| kindly)* (?:tell me|let me know|inform me|help me"
    r" (?:understand|find out))",
    r"(?:could|can|would|will) you (?:please|kindly)",
    r"i(?: would|'d) (?:like|love) to (?:know|ask|understand)|i (?:want|need) to know",
    r"(?:i was|i am|i'm) wondering|i wonder|do you (?:happen to )?know|may i ask|tell me|let me"
    r" ask(?: you)?|quick question",
    r"(?:me )?(?:podrias?|puedes?) (?:decirme|contarme|explicarme)|me gustaria saber",
    r"(?:konnten|konnen) sie mir(?: bitte)? (?:sagen|erklaren|verraten)",
    r"(?:konntest|kannst) du mir(?: bitte)? (?:sagen|erklaren|verraten)|ich (?:mochte|wurde)(?:"
    r" gerne?)? wissen",
    r"(?:pourriez|pouvez)[- ]vous (?:me )?(?:dire|expliquer)|(?:peux|pourrais)[- ]tu (?:me"
    r" )?(?:dire|expliquer)|j'aimerais savoir",
)
"""What is polite and empty in front of a question."""

RECALLS = (
    r"what (?:have|did) (?:we|i)(?: already)? (?:(?:discuss|cover)(?:ed)?|(?:talk|chat)(?:t?ed)?"
    r" about|ask(?:ed)?(?: you)?)",
    r"what (?:are|were) we (?:discussing|talking about)",
    r"what (?:was|were) (?:my|our) (?:first|last|previous|earlier) (?:questions?|topics?)",
    r"(?:summari[sz]e|recap|sum up) (?:our|this|the) (?:conversation|discussion|chat)",
    r"de que (?:hemos hablado|hablamos)|que hemos (?:discutido|comentado|tratado)",
    r"(?:woruber|was|wovon) haben wir (?:bisher |bis jetzt )?(?:gesprochen|besprochen|diskutiert"
    r"|geredet)",
    r"(?:de quoi avons[- ]nous|qu'avons[- ]nous) (?:deja )?(?:parle|discute)|de quoi on a parle",
)
"""Questions about the conversation itself."""

RECALL_ENDINGS = (
    r"so far|until now|up to now|today|yet|before|earlier|together|here|hasta ahora|hoy|bisher"
    r"|jusqu'a (?:present|maintenant)",
)

_WHOLE = r"(?:this|the|that|my|these|those|each|every|it)"
_DOCUMENT = (
    r"(?:(?:research|scientific|whole|entire|attached|uploaded|selected) )?"
    r"(?:paper|document|article|text|file|report|book|pdf|page|study|manual)s?"
)
SUMMARIES = (
    r"summari[sz]e|sum up|tl;?dr|zusammenfass(?:en|ung)?|fasse?(?: mir)?|resumez|resumir?|resume",
    r"(?:give|write|make|show)(?: me| us)? (?:an? |the )?(?:\w+ )?"
    r"(?:summary|overview|abstract)(?: of)?",
    r"(?:an? |the )?(?:\w+ )?(?:summary|overview) of",
    r"what (?:is|are) the (?:key|main|most important) (?:points|takeaways|findings|messages|ideas)"
    rf" (?:of|in|from)(?= {_WHOLE} {_DOCUMENT})",
)
"""How a request for a summary begins; what follows names the document or the topic."""

ABOUTS = (
    rf"what(?:'?s| is| are) (?:{_WHOLE} {_DOCUMENT}|this|it|that)(?P<title> .{{1,200}}?)?"
    r"(?: all)? about",
    rf"what(?:'?s| is| are) (?:the|this|my)(?P<named> .{{1,200}}?) {_DOCUMENT}(?: all)? about",
    rf"what does (?:{_WHOLE} {_DOCUMENT}|this) (?:say|cover|describe|deal with)",
)
"""Questions what a document is about."""

SUMMARY_LEADS = (
    rf"{_WHOLE}|{_DOCUMENT}|an?|me|us|for|please|briefly|der|die|das|den|dieses?|le|la|les|cet?",
    r"cette|el|este|called|titled|entitled|named|with|title|what (?:is|are) known",
    r"what the documents say|about|on|of",
    r"all|key|main|points?|findings?|contents?|papier|dokument|artikel|documento?|articulo",
)
"""Words between the request and what it names."""

ALL_OF_IT = (
    r"all of (?:it|this|that)|it all|whole|entire|everything|in full",
    r"ganze[nmrs]?|gesamte[nmrs]?|komplett\w*|alles|tout|toute|entiere?|integralement|todo|toda"
    r"|entero|entera",
)
"""Words of a request that wants all of a document read, not its outline."""

SUMMARY_ENDINGS = (
    r"(?:in|with|using) (?:\w+ ){0,3}"
    r"(?:words?|sentences?|points?|bullets?|lines?|paragraphs?|terms|english)",
    r"please|briefly|for me|zusammen|bitte|paper|document|article",
)
"""Words behind what a request names."""


_SPECIAL = str.maketrans("ßøæœ\u0131\u2019\u2018", "soaoi''")


def folded(text: str) -> str:
    """Return text in lower case without accents, with offsets unchanged."""
    if text.isascii():
        return text.lower()
    return "".join(map(_without_mark, text)).translate(_SPECIAL)


def _without_mark(char: str) -> str:
    """Return a letter in lower case without its accent; a syllable of Hangul as it is."""
    parts = unicodedata.normalize("NFD", char)
    is_syllable = len(parts) > 1 and not unicodedata.combining(parts[1])
    return char if is_syllable else (parts[0].lower() or char)[0]


def any_of(groups: Iterable[str]) -> str:
    """Return a pattern for one of several groups, not followed by a letter or digit."""
    return "(?:" + "|".join(groups) + r")(?!\w)"


_EMOJI = r"\U0001f300-\U0001faff\u2600-\u27bf\ufe0f"
_SIGNS = r"\u3001\u3002\uff01\uff0c\uff1f\u061f\u2026~\-\u2013\u2014\u00a1\u00bf"
_GAP = rf"[\s,;:.!?{_SIGNS}()'\"{_EMOJI}]*"
_SAYS: dict[tuple[Pleasantry, str], re.Pattern[str]] = {
    key: re.compile(r"\b" + any_of(map(folded, patterns))) for key, patterns in PLEASANTRIES.items()
}
_PLEASANTRIES = [folded(one) for patterns in PLEASANTRIES.values() for one in patterns]
_ONLY_PLEASANTRY = re.compile(rf"{_GAP}(?:\b{any_of([*_PLEASANTRIES, *FILLERS])}{_GAP})+")
_RECALL = re.compile(rf"{_GAP}{any_of(RECALLS)}(?:\s+{any_of(RECALL_ENDINGS)})*{_GAP}")
_STOP = r"\s*[,.!;:\u2026]+\s*|\s*[\u2013\u2014]\s*|\s+-+\s+|\s+"
_LEAD_IN = re.compile(
    rf"[\s\u00bf\u00a1]*(?:{any_of(_PLEASANTRIES)}(?:\s+(?:there|everyone|all|again|documind"
    rf"|bot)\b)?(?:{_STOP})"
    rf"|{any_of(LEAD_INS)}(?:{_STOP}))"
)
_ONLY_POLITE = re.compile(rf"{_GAP}(?:{any_of(LEAD_INS)}{_GAP})+")


@dataclass(frozen=True, slots=True)
class Intent:
    """The kind of a message.

    `text` is the question without polite words in front; the whole message for other kinds.
    """

    kind: Literal["question", "greeting", "thanks", "recall"]
    text: str
    reply: str = ""
    """The canned answer to a pleasantry."""


def detect(message: str) -> Intent:
    """Return what a message wants; no model, no state.

    A greeting or thanks must be the whole message; the reply is in the same language.
    """
    plain = folded(message)
    if _ONLY_PLEASANTRY.fullmatch(plain):
        for (kind, language), pattern in _SAYS.items():
            if pattern.search(plain):
                one = LANGUAGES[language]
                return Intent(kind, message, one.welcome if kind == "thanks" else one.greeting)
    question = without_politeness(message)
    if _RECALL.fullmatch(folded(question)):
        return Intent("recall", message)
    return Intent("question", question)


def without_politeness(message: str) -> str:
    """Return the message without leading greetings and polite phrases.

    Never empty for a non-blank message. Idempotent; what is returned is the end of the message,
    words and case unchanged.
    """
    text = message.strip()
    while match := _LEAD_IN.match(folded(text)):
        rest = text[match.end() :]
        if not any(char.isalnum() for char in rest):
            break
        text = rest
    return text


def only_polite(message: str) -> bool:
    """Return whether a message asks nothing: "Could you please tell me?"."""
    return _ONLY_POLITE.fullmatch(folded(message)) is not None


def past_questions(history: Iterable[Message]) -> list[str]:
    """Return the user's past questions, oldest first, without pleasantries.

    Without look-backs too.
    """
    asked = [detect(message.content) for message in history if message.role == "user"]
    return [intent.text for intent in asked if intent.kind == "question"]
