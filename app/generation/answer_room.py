"""Decide how much an answer may quote, by the kind of question."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SEVERAL = (
    "actions|acts|advantages|disadvantages|aspects|benefits|causes|challenges|changes|characteristics|components|concerns"
    "|conditions|consequences|contributions|criteria|criticisms|details|differences|drawbacks|duties|effects|elements|events"
    "|examples|factors|features|findings|functions|goals|guidelines|impacts|implications|influences|issues|limitations|measures"
    "|methods|objectives|outcomes|phases|plans|points|policies|practices|principles|problems|proposals|provisions|purposes"
    "|qualities|reasons|recommendations|requirements|responsibilities|results|risks|roles|rules|similarities|stages|steps"
    "|strategies|symptoms|tasks|techniques|themes|types|uses|ways"
)
_COUNTED = r"(?!.{0,30}\b(?:two|three|four|five|six|[2-9])\b)"
"""A question that says how many is answered where the text says so: in one sentence."""
_ASKS_FOR_SEVERAL = re.compile(
    rf"\b(?:what|which)\s+{_COUNTED}(?:[\w'\u2019-]+\s+){{0,3}}?(?:{_SEVERAL})\b"
    r"|\b(?:what|which) (?:are|were) (?:some|all|the (?:various|different|main|key|major))\b"
    rf"|\b(?:what|which) (?:are|were) {_COUNTED}(?:the )?(?:\w+ ){{0,2}}?[a-z]{{3,}}[^\W\dsui]s"
    r" (?:of|in|for|about|between|noted|raised|made|proposed|that|to|from|behind|under|with)\b"
    r"|\b(?:list|name|describe|outline|enumerate)\b\s+(?:the|all|some)\b"
    r"|,? and (?:what|how|why|when|who|which|where)\b(?= \w+ \w+)",
    re.IGNORECASE,
)
_ASKS_FOR_STEPS = re.compile(
    r"\bhow (?:to|(?:do|can|could|should|would|must) (?:i|you|we|one|people|users?))\b|\b(?:what"
    r"|which) steps\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AnswerRoom:
    """The most that is quoted, and whether all of it stands in reading order."""

    sentences: int = 3
    words: int = 120
    in_order: bool = False


PLAIN = AnswerRoom()
SEVERAL = AnswerRoom(5, 200)
STEPS = AnswerRoom(8, 240, in_order=True)
SUMMARY = AnswerRoom(10, 400, in_order=True)
"""Of a topic; a summary of a document goes by its parts."""


def room_for(question: str) -> AnswerRoom:
    """Return an answer's room: more for lists and several things, steps in order."""
    if _ASKS_FOR_STEPS.search(question):
        return STEPS
    return SEVERAL if _ASKS_FOR_SEVERAL.search(question) else PLAIN
