"""Remember a conversation: a summary and the last exchanges, within a budget.

The budget is in tokens; the exchanges are kept word for word. Older exchanges are folded into the
summary when a conversation goes on, so no answer waits for it. Folding needs a model; without one
the exchanges stay in the store until a model is available.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from app.answer.intent import only_polite, past_questions
from app.answer.models import ModelCalls
from app.answer.options import AnswerOptions
from app.answer.pointing import pointing_words, stands_alone
from app.answer.search import SearcherFor, libraries
from app.answer.writing import reads_as_refusal
from app.core.errors import InvalidInput, ProviderError
from app.core.sentences import sentence_spans
from app.core.text import tokenise, words
from app.core.types import Document, Message, Question, Role, Scope
from app.generation.check.citations import without_marks
from app.generation.language.reading import content_tokens
from app.generation.language.tokens import TokenEstimate
from app.storage.catalog.answers import ConversationStore

_TITLE_CHARS = 120
"""A page shows two lines of it."""
_ESTIMATE = TokenEstimate()
_LIST_LIMIT = 20
_HISTORY_MESSAGES = 6
"""Only so many of the newest messages of a request's history are used."""

Summarise = Callable[[str, str], str]
"""(summary so far, new turns as text) to the new summary; empty when there is no model or it
wrote nothing."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The state of a conversation before the next message."""

    summary: str = ""
    recent: tuple[Message, ...] = ()
    """Word for word, oldest first."""
    questions: tuple[str, ...] = ()
    """Everything the user asked so far, pleasantries left out."""

    def __bool__(self) -> bool:
        return bool(self.summary or self.recent)

    def messages(self) -> tuple[Message, ...]:
        """Return the history for a prompt, without citation marks of old answers."""
        earlier = (Message("assistant", self.summary),) if self.summary else ()
        return (
            *earlier,
            *(Message(turn.role, without_marks(turn.content)) for turn in self.recent),
        )

    def transcript(self) -> str:
        """Return summary and turns as lines of text, for the helper's prompts."""
        lines = [f"Summary of earlier turns: {self.summary}"] if self.summary else []
        return "\n".join([*lines, transcript(self.recent)]).strip()


def transcript(turns: Sequence[Message]) -> str:
    """Return turns as `User: ...` and `Assistant: ...` lines, citation marks left out."""
    return "\n".join(f"{turn.role.capitalize()}: {without_marks(turn.content)}" for turn in turns)


class ConversationMemory:
    """Reads and writes conversations; stateless, so threads can share it."""

    def __init__(self, store: ConversationStore, options: AnswerOptions) -> None:
        self._store = store
        self._options = options

    def open(self, conversation_id: str | None, library: str, message: str) -> str:
        """Return the conversation's id: the given one, or a new one's.

        The message is a new conversation's title.

        Raises:
            NotFound: There is no conversation of this id.
        """
        if conversation_id is None:
            title = re.sub(r"\s+", " ", message).strip()
            short = (
                title
                if len(title) <= _TITLE_CHARS
                else f"{title[: _TITLE_CHARS - 1].rstrip()}\u2026"
            )
            return self._store.create(short, library)
        self._store.get(conversation_id)
        return conversation_id

    def recall(self, question: Question, summarise: Summarise) -> Memory:
        """Return what is remembered for a question, folding what is overdue.

        A conversation on the server is remembered by the configured strategy. History that came
        with the question counts as it is, within the token budget.

        Raises:
            NotFound: The question names a conversation that does not exist.
        """
        if question.conversation_id is None:
            history = question.history[-_HISTORY_MESSAGES:]
            return Memory(
                "",
                _within(history, self._options.memory_token_budget),
                tuple(past_questions(history)),
            )
        conversation = self._store.get(question.conversation_id)
        turns = _turns(conversation)
        if self._options.memory_strategy == "none":
            return Memory()
        asked = tuple(past_questions(turns))
        buffered = 2 * self._options.memory_buffer_size
        if self._options.memory_strategy == "buffer":
            return Memory(
                "", _within(_last(turns, buffered), self._options.memory_token_budget), asked
            )
        summary, folded = (
            str(conversation["summary"] or ""),
            int(cast("int", conversation["folded"]) or 0),
        )
        budget = self._options.memory_token_budget
        keep = _kept(turns[folded:], buffered, budget - _ESTIMATE.tokens(summary))
        last_due = len(turns) - len(keep)
        while folded < last_due:
            batch = _first_within(turns[folded:last_due], budget)
            updated = summarise(summary, transcript(batch))
            if not updated:  # no model: as much as fits stays word for word
                return Memory(summary, _within(turns[folded:], budget), asked)
            summary, folded = _shortened(updated, budget), folded + len(batch)
            self._store.set_summary(question.conversation_id, summary, folded)
        return Memory(summary, keep, asked)

    def cited(self, conversation_id: str) -> Sequence[str]:
        """Return the documents of the last answer that cites any; none where none is kept."""
        return self._store.cited(conversation_id)

    def begin(
        self, conversation_id: str, question: str, answer_id: str, replaces: str | None = None
    ) -> None:
        """Keep a question before it is answered, unless nothing may be stored.

        Raises:
            NotFound: The conversation has no answer `replaces`.
        """
        if replaces is not None:
            self._store.leave(conversation_id, replaces)
        if self._options.store_answers != "off":
            self._store.begin(conversation_id, question, answer_id)

    def record(
        self,
        conversation_id: str,
        question: str,
        answer: str,
        answer_id: str,
        drawn_on: Collection[Document] = (),
    ) -> None:
        """Add a finished exchange; only those are remembered."""
        said = [Message("user", question), Message("assistant", answer)]
        self._store.append(conversation_id, said, answer_id, drawn_on)


def recollection(memory: Memory) -> str:
    """Return a Markdown recollection: the summary and the questions so far."""
    if not memory.summary and not memory.questions:
        return "We have not discussed anything yet."
    parts = [memory.summary] if memory.summary else []
    if memory.questions:
        listed = "\n".join(f"- {question}" for question in memory.questions[-_LIST_LIMIT:])
        parts.append(f"So far you asked:\n\n{listed}")
    return "\n\n".join(parts)


def _turns(conversation: Mapping[str, object]) -> tuple[Message, ...]:
    """Return the turns of finished exchanges; a question without an answer is not remembered."""
    turns = cast("Sequence[Mapping[str, str]]", conversation["turns"])
    answered = {turn["answer_id"] for turn in turns if turn["role"] == "assistant"}
    return tuple(
        Message(cast("Role", turn["role"]), turn["content"])
        for turn in turns
        if turn["answer_id"] in answered
    )


def _last(turns: tuple[Message, ...], count: int) -> tuple[Message, ...]:
    return turns[-count:] if count else ()


def _kept(unfolded: tuple[Message, ...], buffered: int, room_tokens: int) -> tuple[Message, ...]:
    """Return the turns kept word for word; older ones go into the summary.

    Nothing is due until twice the buffer has gathered or the room is full, and then so much at once
    that the next fold is about a buffer's length away: a summary costs a call of the model.
    """
    if len(_within(unfolded, room_tokens)) < len(unfolded):
        newest = _last(unfolded, buffered)
        return _within(newest, room_tokens // 2) or _within(newest[-2:], room_tokens)
    return unfolded if len(unfolded) < 2 * buffered else _last(unfolded, buffered)


def _within(turns: tuple[Message, ...], budget_tokens: int) -> tuple[Message, ...]:
    """Return the newest turns that fit together, beginning with one of the user's."""
    kept = 0
    for turn in reversed(turns):
        budget_tokens -= _ESTIMATE.tokens(turn.content)
        if budget_tokens < 0:
            break
        kept += 1
    recent = _last(turns, kept)
    while recent and recent[0].role != "user":
        recent = recent[1:]
    return recent


def _first_within(turns: tuple[Message, ...], budget_tokens: int) -> tuple[Message, ...]:
    """Return the oldest turns that fit one call of the helper, at least two."""
    left = budget_tokens
    for count, turn in enumerate(turns):
        left -= _ESTIMATE.tokens(turn.content)
        if left < 0:
            return turns[: max(2, count)]
    return turns


def _shortened(summary: str, budget_tokens: int) -> str:
    """Return the end of a summary over half the budget; new topics come last."""
    limit = int(budget_tokens / 2 * _ESTIMATE.chars_per_token)
    if len(summary) <= limit:
        return summary
    return summary[-limit:].split(maxsplit=1)[-1]


# Rewrite a follow-up into a standalone query; the answer sees the original.

MAX_QUERY_CHARS = 500
"""A longer rewrite is an answer or an explanation."""

_LABEL = re.compile(
    r"^\s*(?:[-*]\s+|(?:re-?written|standalone|search|new)?\s*(?:question|query|message|rewrite"
    r"|rewritten)?\s*:\s*)",
    re.IGNORECASE,
)
_QUOTES = "\"'`\u201c\u201d\u2018\u2019* "
_MARKS = ("?", "\u061f", "\uff1f")
_FEW_WORDS = 2
"""A message with fewer content words than this leans on what was said before."""


def rewrite(question: str, memory: Memory, calls: ModelCalls) -> str | None:
    """Return a standalone search query, or None when the literal question serves.

    It does on the first turn, after nothing but pleasantries, without a model and without a usable
    rewrite.

    Args:
        question: The newest message, politeness taken off.
        memory: What was said before.
        calls: The helper.
    """
    if not memory.questions or calls.helper is None or stands_alone(question, memory.questions):
        return None
    try:
        reply = calls.ask("rewrite", history=memory.transcript(), question=question)
    except (
        ProviderError,
        InvalidInput,
    ):  # the literal question still finds something; the answer says that the host is gone
        return None
    query = cleaned(reply)
    if not query or query.casefold() == question.casefold() or not holds(question, query, memory):
        return None
    return query


def translate(question: str, language: str, calls: ModelCalls) -> str | None:
    """Return a question in a language, by its English name; None without a usable translation."""
    try:
        query = cleaned(calls.ask("translate", question=question, language=language))
    except (ProviderError, InvalidInput):  # the question's own words still find something
        return None
    return query if query and not reads_as_refusal(query) else None


def cleaned(reply: str) -> str:
    """Return the query in a reply: first line, no label or quotes; may be empty.

    Empty when too long.
    """
    for line in reply.splitlines():
        query = _LABEL.sub("", line).strip(_QUOTES)
        if any(char.isalnum() for char in query):
            return query if len(query) <= MAX_QUERY_CHARS else ""
    return ""


def holds(question: str, query: str, memory: Memory) -> bool:
    """Return whether a rewrite keeps the question's words and adds only known ones.

    Known words are those of the conversation. A content word may go where the words around it point
    back ("that experiment", "the second one"), because then something of the conversation stands in
    its place.
    """
    if reads_as_refusal(query):
        return False
    asked, now = words(question), set(tokenise(query))
    pointing = {at for at, word in enumerate(asked) if word in pointing_words(question)}
    for at, word in enumerate(asked):
        tokens = set(content_tokens(word))
        if tokens and not tokens & now and at not in pointing and at - 1 not in pointing:
            return False
    added = set(content_tokens(query)) - set(tokenise(question))
    return added <= set(tokenise(memory.transcript()))


# Take the question out of a letter.

_ANNOUNCED = re.compile(r"(?::|\bnamely|\bn\u00e4mlich|\ba saber)\s+(?=\w)", re.IGNORECASE)
"""Behind it stands what a long sentence asks for."""
_ASKS = re.compile(
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|has|have|can|may"
    r"|must|should|will|the (?:\w+ ){1,3}(?:in which|when|where|of|at which|that)"
    r"|wer|wen|wem|was|wann|wo|welche[rsnm]?|warum|wie|qu\u00e9|qui\u00e9n|cu\u00e1ndo|d\u00f3nde"
    r"|c\u00f3mo|cu\u00e1l|cu\u00e1nt[oa]s?)\b",
    re.IGNORECASE,
)
_WRITER = re.compile(
    r"\b(?:i|me|my|we|us|our|please|ich|mir|mich|mein\w*|wir|uns\w*|bitte"
    r"|yo|mi|nos|nuestr\w*|quiero|quisiera|favor)\b",
    re.IGNORECASE,
)
"""Before a colon it tells a letter from a title ("Late bleeding: is it an event of the night?")."""
_LETTER = 2
"""Sentences from which on a message may tell something before it asks."""


def out_of_letter(message: str) -> tuple[str, tuple[str, ...]]:
    """Return what a message asks, and the sentences around it.

    It is the sentences that end in a question mark, with those before them while too few words are
    left to be a question; where they are only polite it is the one before them. Of a long sentence
    in which the writer speaks it is what stands behind a colon; a title is a part of its question.
    """
    said = [message[start:end] for start, end in sentence_spans(message)]
    chosen = {at for at, one in enumerate(said) if one.rstrip().endswith(_MARKS)}
    if len(said) >= _LETTER and chosen:
        while only_polite(_joined(said, chosen)) and min(chosen) > 0:
            chosen = {min(chosen) - 1}
        while len(content_tokens(_joined(said, chosen))) < _FEW_WORDS and min(chosen) > 0:
            chosen.add(min(chosen) - 1)
        around = tuple(one for at, one in enumerate(said) if at not in chosen)
        message = _joined(said, chosen)
    else:
        around = ()
    for told in (message[: match.end()] for match in _ANNOUNCED.finditer(message)):
        asked = message[len(told) :]
        tells = _WRITER.search(told) is not None and not _ASKS.match(told)
        if tells and _ASKS.match(asked) and len(words(told)) > _FEW_WORDS:
            return asked, (*around, told)
    return message, around


_AND = re.compile(
    r"(?<=\?)\s+|,?\s+(?:and|und|y)\s+"
    r"(?=(?:who|what|when|where|which|why|how|wer|was|wann|wo|welche"
    r"|warum|wie|qui\u00e9n|qu\u00e9|cu\u00e1nd?o|d\u00f3nde|cu\u00e1l|c\u00f3mo)\w*\b)",
    re.IGNORECASE,
)


def parts_of(question: str) -> tuple[str, ...]:
    """Return the questions of one that asks several; none where one of them asks too little."""
    parts = [one.strip(" ,") for one in _AND.split(question)]
    whole = len(parts) > 1 and all(len(content_tokens(one)) >= _FEW_WORDS for one in parts)
    return tuple(one if one.endswith(_MARKS) else f"{one}?" for one in parts) if whole else ()


def _joined(said: Sequence[str], chosen: Collection[int]) -> str:
    return " ".join(one for at, one in enumerate(said) if at in chosen)


# Add the last subject to a question that points back, without a model.

_WORDS = 2
"""Carried of earlier questions; docs/decisions/0231."""


def carried(
    question: str, earlier: Sequence[str], scope: Scope, searcher_for: SearcherFor
) -> str | None:
    """Return the question with rare words of earlier ones in front; None if it stands alone.

    They are those of the last question that stands alone, and where these are too few, of what
    followed it. None too where the library knows no word of them.

    Args:
        question: The newest message.
        earlier: Questions before it, oldest first.
        scope: Libraries whose passages say how rare a word is.
        searcher_for: How they are searched.
    """
    if not earlier or stands_alone(question, earlier):
        return None
    said = set(content_tokens(question))
    added: list[str] = []
    for text in _topic(earlier):
        fresh = {
            token: word
            for word in words(text)
            for token in content_tokens(word)
            if token not in said
        }
        counts = _frequencies(list(fresh), scope, searcher_for)
        telling = sorted((token for token in fresh if counts[token]), key=counts.__getitem__)
        added += [fresh[token] for token in telling[: _WORDS - len(added)]]
        said |= fresh.keys()
    return f"{' '.join(added)}: {question}" if added else None


def _topic(earlier: Sequence[str]) -> Sequence[str]:
    """Return the last question that stands alone, with those that followed it."""
    alone = (at for at in reversed(range(len(earlier))) if stands_alone(earlier[at], earlier[:at]))
    return earlier[next(alone, 0) :]


def _frequencies(tokens: list[str], scope: Scope, searcher_for: SearcherFor) -> dict[str, int]:
    counts = dict.fromkeys(tokens, 0)
    for library in libraries(scope):
        lexical = searcher_for(library).retriever.lexical
        for token, count in lexical.document_frequencies(library, tokens)[1].items():
            counts[token] += count
    return counts


# Clean the replies of helper models.

_BULLET = re.compile(
    r"^\s*(?:(?:[-*\u2022]+|\(?\d{1,2}[.):])\s*)?(?:(?:sub-?)?(?:query|question)(?:\s\d)?:\s*)?",
    re.IGNORECASE,
)
_REPLY_QUOTES = "\"'`\u201c\u201d\u2018\u2019 "


def listed(reply: str) -> list[str]:
    """Return a reply's distinct lines without bullets, numbers or quotes.

    Lines that introduce the list ("Here are three queries:") are left out.
    """
    lines = [
        _BULLET.sub("", line).strip(_REPLY_QUOTES)
        for line in reply.splitlines()
        if not line.rstrip().endswith(":")
    ]
    distinct: dict[str, str] = {}
    for line in lines:
        if any(char.isalnum() for char in line):
            distinct.setdefault(line.casefold(), line)
    return list(distinct.values())
