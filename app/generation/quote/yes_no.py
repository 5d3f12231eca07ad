"""Say yes or no in front of a quote where a quoted sentence settles the question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from app.core.text import tokenise
from app.generation.language.claims import antonyms, content_tokens, negations
from app.generation.quote.candidates import Candidate

Word = Literal["Yes", "No"]

_OPENS = re.compile(
    r"\A\W*(?:is it (?:true|correct|right|a fact) that|(?:is|are|was|were|do|does|did|has|have|had"
    r"|can|could|will|would|must|may)(?:n['\u2019]t)?)\s+(?P<claim>[^?]+)\??\s*\Z",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:or|who|what|when|where|which|why|how|you|me|i|we|us|my|your|our)\b", re.IGNORECASE
)
"""Not to be answered by yes or no alone, or about the people who talk."""
_BOUNDS = re.compile(
    r"\b(?:may|might|could|would|should|can|perhaps|possibly|probably|likely|unlikely|if|unless"
    r"|until|except|although|though|but|however|claim(?:s|ed)?|believed?|thought|said|alleged\w*"
    r"|report(?:s|ed|edly)|suggest(?:s|ed)?|plan(?:s|ned)?|proposed?|intend(?:s|ed)?|expected"
    r"|hoped?|almost|nearly|only|some|few|most|many|rarely|seldom|partly|often|sometimes|usually"
    r"|all|every|always|ever|any|no longer|unknown|unclear|whether|former|formerly|once|instead"
    r"|rather|reject(?:s|ed)?|den(?:y|ies|ied)|fail(?:s|ed)?|refus(?:e|es|ed)|hardly|barely"
    r"|scarcely|used to)\b",
    re.IGNORECASE,
)
"""Words that bound or report what a sentence says: both sides have them, or nothing is settled."""
_DENIAL = re.compile(r"\b(?:not|never|cannot|without|none|no)\b|n['\u2019]t\b", re.IGNORECASE)
_FEWEST = 2
"""Content words that a question must have to be settled."""


def asks_yes_or_no(question: str) -> bool:
    """Return whether a question can be answered by yes or no."""
    return _OPENS.match(question) is not None


def settled_by(question: str, sentences: Sequence[Candidate]) -> Word | None:
    """Return what quoted sentences say to a question of yes or no.

    None: it is none, nothing settles it, or the sentences disagree.
    """
    opened = _OPENS.match(question)
    if opened is None or _CHOICE.search(opened["claim"]):
        return None
    found = {_said(opened["claim"], one) for one in sentences} - {None}
    return found.pop() if len(found) == 1 else None


def _said(claim: str, sentence: Candidate) -> Word | None:
    asked = content_tokens(claim)
    if len(asked) < _FEWEST or negations(claim) or _bounds(claim) != _bounds(sentence.text):
        return None
    title = tokenise(sentence.item.hit.passage.document.title) if sentence.dangles else []
    said = [*title, *tokenise(sentence.text)]
    missing = _missing([[one] for one in asked], said)
    denied = negations(sentence.text)
    if not missing and denied == 0:
        return "Yes"
    if not missing and denied == 1:
        return "No" if _denies(sentence.text, asked) else None
    if len(missing) == 1 and denied == 0:
        turned = [[one, *antonyms().get(one, ())] if one in missing else [one] for one in asked]
        return None if _missing(turned, said) else "No"
    return None


def _denies(sentence: str, asked: Sequence[str]) -> bool:
    """Return whether the first word with content behind the denial is an asked one."""
    denial = _DENIAL.search(sentence)
    behind = content_tokens(sentence[denial.end() :]) if denial else []
    return bool(behind) and behind[0] in asked


def _missing(asked: Sequence[Sequence[str]], said: Sequence[str]) -> list[str]:
    """Return the asked tokens that are not among those said, in the same order.

    Of each place any of its tokens will do; the first stands for it.
    """
    at, missing = 0, []
    for tokens in asked:
        found = [place for place in range(at, len(said)) if said[place] in tokens]
        if found:
            at = found[0] + 1
        else:
            missing.append(tokens[0])
    return missing


def _bounds(text: str) -> frozenset[str]:
    return frozenset(match.group().lower() for match in _BOUNDS.finditer(text))
