"""Instructions aimed at a model, found in text that should only inform.

Patterns of English and of chat markup, not a classifier: each family below is a way of talking to
an assistant instead of to a reader. A finding is shown to people and keeps the sentence out of
extractive answers; nothing is blocked or deleted, so a false alarm costs one sentence.

References:
    OWASP Top 10 for LLM applications 2025, LLM01. Families after BIPIA (Yi 2023, arXiv 2312.14197)
    and garak's latent injection probes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from app.core.sentences import sentence_spans
from app.core.text import function_words, tokenise, words
from app.generation.flags.directives import directives

_MARKS = re.compile("[\u0300-\u036f]+")


def plain(sentence: str) -> str:
    """Return a sentence with forms and accents folded; lengths are not kept."""
    if sentence.isascii():
        return sentence
    return _MARKS.sub("", unicodedata.normalize("NFKD", sentence))


Finding = Literal["override", "role", "output", "disclosure", "request", "question"]
"""override: set earlier rules aside; role: become someone else, or chat markup; output: shape
the reply; disclosure: give away or send something; request: a task for an assistant; question:
one that has nothing to do with the text around it."""
ADDRESSED_TO_A_MODEL: frozenset[Finding] = frozenset({"override", "role", "output", "disclosure"})
"""Those worth a notice: requests and questions stand in every manual and exercise book too."""

_REPLY = r"(?:answer|response|reply|replies|output|message|completion|summary|translation)s?"
_DIRECT: dict[Finding, re.Pattern[str]] = {
    "override": re.compile(
        r"\b(?:new|updated|real|actual|important|hidden|secret)\s+(?:system\s+)?(?:instructions?"
        r"|task|directives?)"
        r"\s*(?::|for (?:you|the (?:ai|assistant|model)))",
        re.IGNORECASE,
    ),
    "role": re.compile(
        r"\byou are an? (?:ai|assistant|large language model|language model|chatbot|bot)\b"
        r"|\b(?:act|behave|respond|answer|reply) as"
        r" an? (?:ai|assistant|unrestricted|evil|pirate|expert|hacker)\b"
        r"|\b(?:developer|jailbreak|dan|god) mode\b"
        r"|\bsystem prompt\b"
        r"|\b(?:attention|dear|note to|message (?:to|for)|hey|hello),? (?:the )?(?:ai|assistant"
        r"|llm|chatbot|language model)s?\b"
        r"|<\|[a-z_]{2,20}\|>|\[/?INST\]|<</?SYS>>|^\s*#{2,}\s*(?:system|instruction|assistant"
        r"|user)\b"
        r"|^\s*(?:system|assistant)\s*:(?![^\n]* \| )",
        re.IGNORECASE | re.MULTILINE,
    ),
    "output": re.compile(
        r"\b(?:(?:in|into|to|of|with|begin|start|end|finish|conclude|prefix|append|make|keep|limit"
        r"|write|give|phrase|format|base)\s+)your\s+(?:\w+\s+)?"
        rf"{_REPLY}\b"
        rf"|\byour\s+(?:\w+\s+)?{_REPLY}\s+(?:must|should|shall|will|has|have|needs?|is|are|with)\b"
        r"|\b(?:in|to|into|with|of)\s+(?:the|this|each|every)\s+(?:final\s+|next\s+)?(?:response"
        r"|reply|output|completion)"
        r"\s+(?:you|must|should)\b"
        r"|\b(?:begin|start|end|finish|prefix|append|conclude)\b[^.!?\n]{0,30}\b(?:answer|response"
        r"|reply|output)s?\s+with\b"
        r"|\b(?:reply|respond|answer) (?:only|just|exclusively|always|in|with)\b[^.!?\n]{0,60}"
        r"(?:[\"\u201c'`]|\b(?:word|sentence|json|uppercase|emoji|french|german|spanish|only)\b)",
        re.IGNORECASE,
    ),
    "disclosure": re.compile(
        r"\b(?:reveal|print|show|repeat|output|leak|disclose|display|tell me)\b[^.!?\n]{0,30}"
        r"\b(?:your|the|all|any|its)\b[^.!?\n]{0,20}"
        r"\b(?:system prompt|hidden prompt|initial prompt|instructions above|api keys?|passwords?"
        r"|secrets?|credentials)\b"
        r"|\b(?:send|post|forward|upload|exfiltrate|transmit|leak)\b[^.!?\n]{0,60}"
        r"\b(?:conversation|chat history|user'?s? data|passwords?|secrets?|api keys?|credentials"
        r"|documents?)\b[^.!?\n]{0,40}"
        r"(?:https?://|\S+@\S+)"
        r"|!\[[^\]]*\]\(\s*https?://[^)\s]*[?=&][^)]*\)",
        re.IGNORECASE,
    ),
}
_NEEDED: dict[Finding, frozenset[str]] = {
    "override": frozenset("instruction instructions task directive directives".split()),
    "role": frozenset(
        "you act behave respond answer reply mode system attention dear note message hey"
        " hello inst sys instruction"
        " assistant user".split()
    ),
    "output": frozenset(
        "your response responses respond reply replies output outputs"
        " completion answer answers".split()
    ),
    "disclosure": frozenset(
        "prompt instructions api password passwords secret secrets credentials http https".split()
    ),
}
"""Of each family, words of which every match holds at least one: asked first, they cost a tenth
of the pattern."""
_SIGNS: dict[Finding, tuple[str, ...]] = {
    "role": ("<|", "<<", "[/", "[I", "[i", "##"),
    "disclosure": ("@",),
}
"""What a match without such a word holds: chat markup, an address."""
_TASK_VERBS = (
    "explain|describe|summari[sz]e|translate|paraphrase|rewrite|write|compose|draft|provide"
    "|generate|create|develop|produce|outline"
    "|give|tell|show|say|answer|respond|reply|repeat|print|output|break"
    " down|help|make|recommend|suggest|include|insert|append|add"
    "|introduce|integrate|modify|augment|enhance|replace|substitute|convert|use|render|misspell"
    "|scramble|jumble|rearrange|anagram|remove"
    "|schedule|remind|book|order|turn|play|find|search|classify|analy[sz]e|identify|calculate"
    "|compute|encode|decode|encrypt|reverse|shift|swap"
    "|apply|utili[sz]e|employ|mention|advertise|promote|encourage|urge|offer|discuss|share|combine"
    "|visit|click|download|install|call|email|subscribe|buy|send|forward"
)
# Where a clause may open: at the start, after a stop that the sentence splitter did not take for
# one (not where a colon says what an aim is), or at a capital that no stop explains, as in text
# appended to a passage cut in mid-sentence. Not behind a short word ("the Scramble for Africa"), a
# capitalised one ("Kiddie Schedule for", unless it is a title at the start) or the letter of a list
# ("(d) What").
_OPENING = (
    r"(?:(?:\A|[.!?:;](?<!\baim:)(?<!\baims:)(?<!\bpurpose:)(?<!objective:)(?<!objectives:)"
    r"(?<!\bgoal:)(?<!\bgoals:)(?<!\bto:)|\n)"
    r"[\s\"'\u201d\u201c)(>*#-]{0,40}+(?<!\w)"
    r"|(?-i:\A[A-Z][a-z]+ (?=[A-Z])|(?<=[a-z0-9)\]>] )(?=[A-Z])(?:(?<= is )"
    r"|(?<=[a-z]{5} )(?<![A-Z][a-z]{5} )(?<![A-Z][a-z]{6} )(?<![A-Z][a-z]{7} )(?<![A-Z][a-z]{8} )"
    r"|(?<=[0-9)\]>] )(?<!\(\w\) ))))"
)
# An imperative opens its clause; its verb is followed by what an object starts with, so that "Use
# of steel grew" and "List price" pass.
_REQUEST = re.compile(
    rf"{_OPENING}(?:please\s+|now,?\s+|then,?\s+|also,?\s+|kindly\s+|finally,?\s+)*"
    r"(?:(?:group|list)\s+(?=letters?\b|words?\b|the\b|all\b|every\b)"
    rf"|(?:{_TASK_VERBS})\s+)"
    r"(?:(?:up|out|down|me|us|them|him|her|for|how|what|why|who|when|where|whether|that|this|these"
    r"|those|the|an?|any|some|every|each|all"
    r"|random|my|our|their|its|your|one|two|three|in|as|to|from|by|it|letters?|words?|vowels?"
    r"|spaces?|numbers?|commonly|anagrams?"
    r"|alphanumeric|users|with)\b|[\"'\u201c])",
    re.IGNORECASE,
)
_REQUEST_WORDS = frozenset(
    spelling.split()[0]
    for verb in ("group", "list", *_TASK_VERBS.split("|"))
    for spelling in (
        (verb.replace("[sz]", "s"), verb.replace("[sz]", "z")) if "[sz]" in verb else (verb,)
    )
)
"""First words of a request."""
_QUESTION = re.compile(
    rf"{_OPENING}(?:(?:who|whom|whose|what|what's|which|when|where|why|how)\b|(?:can|could|would"
    r"|will|do|does|did|is|are|should|may)\s+"
    r"(?:you|i|we)\b)[^\n?]*\?",
    re.IGNORECASE,
)
_TO_ASSISTANT = re.compile(
    r"\b(?:can|could|would|will) you\b|\bhow (?:do|can|should|would) (?:i|you)\b", re.IGNORECASE
)
_NEIGHBOURS = 3
"""Sentences on each side that a question is compared with."""
_SHARED_MAX = 0.5
"""A question is foreign when at most this share of its content words stands near it."""


def inspect(text: str) -> tuple[Finding, ...]:
    """Return the families of instructions in a text, in fixed order; often empty.

    Pure and linear in the text; meant for a document at ingest or a passage at query time. A
    sentence that no language has is read in overlapping pieces: the patterns cost up to the square
    of what they are given.
    """
    sentences = [text[start:end] for span in sentence_spans(text) for start, end in _pieces(*span)]
    found: set[Finding] = set()
    for index in range(len(sentences)):
        found.update(findings_at(sentences, index))
    return tuple(finding for finding in get_args(Finding) if finding in found)


def _pieces(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a sentence whole, or an over-long one in overlapping pieces.

    The overlap is longer than any pattern.
    """
    while end - start > _LONGEST:
        yield start, start + _LONGEST
        start += _LONGEST - _OVERLAP
    yield start, end


_LONGEST = 1_500
_OVERLAP = 400
"""Characters; the longest pattern (`disclosure`) spans about 300."""


def findings_at(sentences: Sequence[str], index: int) -> tuple[Finding, ...]:
    """Return the findings in one sentence, read with its neighbours."""
    sentence = plain(sentences[index])
    spoken = words(sentence)
    found = set(_told(sentence, spoken))
    if (
        "?" in sentence
        and (asked := _QUESTION.search(sentence))
        and (_TO_ASSISTANT.search(asked.group()) or is_foreign(asked.group(), sentences, index))
    ):
        found.add("question")
    return tuple(finding for finding in get_args(Finding) if finding in found) if found else ()


def is_plain_request(sentence: str) -> bool:
    """Return whether a sentence is one request from its first word on, and nothing else."""
    places = [match.start() for match in _REQUEST.finditer(plain(sentence))]
    return findings_at([sentence], 0) == ("request",) and places == [0]


def _told(sentence: str, spoken: Sequence[str]) -> Iterator[Finding]:
    """Yield the families of instructions in a plain sentence, with repeats."""
    for name in _possible(sentence, spoken):
        if _DIRECT[name].search(sentence):
            yield name
    if len(spoken) > 2 and not _REQUEST_WORDS.isdisjoint(spoken) and _REQUEST.search(sentence):
        yield "request"
    yield from directives(spoken)


def _possible(sentence: str, spoken: Sequence[str]) -> Iterator[Finding]:
    """Yield the families whose patterns may match a plain sentence with these words."""
    for name, needed in _NEEDED.items():
        if not needed.isdisjoint(spoken) or any(sign in sentence for sign in _SIGNS.get(name, ())):
            yield name


def is_foreign(asked: str, sentences: Sequence[str], index: int) -> bool:
    """Return whether a question or request shares little with the sentences around it."""
    own = set(tokenise(asked)) - function_words("en")
    around = set(tokenise(sentences[index].replace(asked, " ")))
    for position in range(
        max(0, index - _NEIGHBOURS), min(len(sentences), index + _NEIGHBOURS + 1)
    ):
        if position != index:
            around.update(tokenise(sentences[position]))
    return bool(around) and len(own & around) <= _SHARED_MAX * len(own)


def without_instructions(text: str) -> str:
    """Return a passage without the sentences that read like instructions to a model."""
    spans = sentence_spans(text)
    sentences = [text[start:end] for start, end in spans]
    return " ".join(
        sentence for at, sentence in enumerate(sentences) if not findings_at(sentences, at)
    )
