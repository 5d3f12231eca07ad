"""Choose the answering model and the helper; count their calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from collections.abc import Generator as Steps
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from app.answer.options import MannerOptions
from app.core.cancel import CancelToken
from app.core.errors import Cancelled, ProviderTimeout
from app.core.ports import Generator
from app.core.trace import Trace
from app.core.types import (
    Evidence,
    EvidenceKind,
    Mode,
    ModelProfile,
    ModelSpeed,
    Prompt,
    Token,
    Usage,
    WaitsFor,
)
from app.generation.prompt.prompts import PromptLibrary, Task
from app.storage.catalog.models import ModelStore

SIDE_CALL_S = 30.0
"""Longest call besides the answer's own (a draft, a rewrite, sub-queries), seconds: what it would
add is not worth a longer wait."""
_CHARS_PER_TOKEN = 4
"""Of English prose in present tokenizers; only the speed of hosts that count no tokens rests on
it."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The models for one question, at this moment."""

    model: Generator | None
    """Answers; None means that no model is at hand and passages are quoted instead."""
    helper: Generator | None = None
    """Rewrites, summarises, and writes hypothetical passages and sub-queries; None does without."""
    hosted: bool = False
    """True when passages leave the machine."""
    reason: str = ""
    """Why a model that was asked for is not at hand, and what to do; empty when none was
    expected."""
    profile: ModelProfile = field(default_factory=ModelProfile)
    """What is known of the answering model."""
    once: bool = False
    """The reason is worth saying once, not over every answer."""
    why: str = ""
    """Why this model answers; without one, why none does, and the cure."""
    judge: Generator | None = None
    """A decision model that judges claims; None: the answering model does."""
    watch: Callable[[], Callable[[], WaitsFor]] = lambda: lambda: "reading"
    """Called before a call of the model; what it returns says what the call waits for."""


class ModelSelector(Protocol):
    """Knows which model host answers now; hosts come and go."""

    def select(self, model: str | None = None) -> ModelChoice:
        """Return who writes for the next question.

        Args:
            model: Overrides the configured answering model for one question.

        Raises:
            ModelNotInstalled: The host answers but does not have the model that was asked for by
                name.
        """
        ...


@dataclass(slots=True)
class ModelCalls:
    """Model calls of one question, counted in its trace; not shared. Their tokens are added up."""

    trace: Trace
    cancel: CancelToken
    prompts: PromptLibrary
    helper: Generator | None = None
    observe: Callable[[str, Usage], None] = lambda _name, _usage: None
    """Told what each finished call took, by the generator's name."""
    watch: Callable[[], Callable[[], WaitsFor]] = lambda: lambda: "reading"
    """As of the choice."""
    patience_s: float = 3.0
    """Seconds without a first word after which `paced` says so, again and again."""
    side_call_s: float = SIDE_CALL_S
    handed: dict[int, Evidence] = field(default_factory=dict)
    """Passages that a model was given to answer from, by number."""
    _usages: list[Usage] = field(default_factory=list)

    @property
    def usage(self) -> Usage:
        """Tokens of all calls so far; None where no host reported any."""
        return Usage(
            _sum([usage.prompt_tokens for usage in self._usages]),
            _sum([usage.completion_tokens for usage in self._usages]),
        )

    def paced(self, model: Generator, prompt: Prompt) -> Steps[Token | None, None, None]:
        """Yield the tokens of one counted call, and None while the first keeps one waiting.

        Closing the iterator ends the call.

        Raises:
            ProviderError: The host failed.
            Cancelled: The question was cancelled.
        """
        yield from self._call(model, prompt, None)

    def stream(self, model: Generator, prompt: Prompt) -> Steps[Token, None, None]:
        """Yield the tokens of one counted call besides the answer's own.

        Closing the iterator ends the call.

        Raises:
            ProviderTimeout: The call was not done in `side_call_s`.
            ProviderError: The host failed.
            Cancelled: The question was cancelled.
        """
        with closing(self._call(model, prompt, self.side_call_s)) as tokens:
            yield from (token for token in tokens if token is not None)

    def _call(
        self, model: Generator, prompt: Prompt, limit_s: float | None
    ) -> Steps[Token | None, None, None]:
        self.cancel.raise_if_cancelled()
        self.trace.llm_calls += 1
        own = CancelToken()
        # Names of OpenTelemetry's conventions for generative AI.
        with (
            self.trace.within(
                "chat", {"gen_ai.operation.name": "chat", "gen_ai.request.model": model.name}
            ) as span,
            self.cancel.calling(own.cancel),
            _ended_after(own, limit_s),
        ):
            try:
                with closing(
                    _waited_for(model.stream(prompt, own), own, self.patience_s)
                ) as tokens:
                    for token in tokens:
                        self.cancel.raise_if_cancelled()
                        if token is not None and token.usage is not None:
                            self._usages.append(token.usage)
                            self.observe(model.name, _counted(token.usage, prompt))
                            span.put(_told(token.usage))
                        yield token
            except GeneratorExit:
                own.cancel()
                raise
            except Cancelled as error:
                self.cancel.raise_if_cancelled()
                if limit_s is None:
                    raise
                raise ProviderTimeout(
                    f"{model.name} was not done in {limit_s:g} s; the answer goes on without"
                ) from error

    def ask(self, task: Task, **values: str) -> str:
        """Return what the helper makes of a task, trimmed; empty when there is no helper.

        Args:
            task: Name of the prompt.
            values: Its placeholders.

        Raises:
            ProviderError: The host failed.
            Cancelled: The question was cancelled.
        """
        if self.helper is None:
            return ""
        prompt = self.prompts.task(task, **values)
        return "".join(token.text for token in self.stream(self.helper, prompt)).strip()


@contextmanager
def _ended_after(call: CancelToken, limit_s: float | None) -> Iterator[None]:
    """End a call after so many seconds; None lets it go on."""
    if limit_s is None:
        yield
        return
    timer = threading.Timer(limit_s, call.cancel)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _waited_for(
    tokens: Iterator[Token], call: CancelToken, every_s: float
) -> Steps[Token | None, None, None]:
    """Yield tokens, and None after each so many seconds without a first one."""
    first: Future[Token | None] = Future()

    def take() -> None:
        try:
            first.set_result(next(tokens, None))
        except BaseException as error:  # noqa: BLE001  # handed to the thread that waits
            first.set_exception(error)

    thread = threading.Thread(target=take, name="first-token", daemon=True)
    thread.start()
    try:
        while not wait([first], every_s).done:
            yield None
        if (token := first.result()) is not None:
            yield token
            yield from tokens
    finally:
        if not first.done():
            call.cancel()
            thread.join()
        if isinstance(tokens, Steps):
            tokens.close()


def _counted(usage: Usage, prompt: Prompt) -> Usage:
    """Return a usage with the prompt's tokens, estimated if not counted."""
    if usage.prompt_tokens is not None:
        return usage
    return replace(
        usage,
        prompt_tokens=sum(len(message.content) for message in prompt.messages) // _CHARS_PER_TOKEN,
    )


def _told(usage: Usage) -> dict[str, int]:
    counts = {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
    }
    return {name: count for name, count in counts.items() if count is not None}


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


# Decide how a model is asked: prompt, amount of evidence, alone or not.

SMALL_PARAMETERS = 4e9
"""Below it a model gets the compact prompt until its test says better:
evaluation/reports/models.md."""
LEADING_PARAMETERS = 1.5e9
"""Below it a model speaks below the quotes until its test says better."""
NEAREST_PARAMETERS = 3e9
"""From it on, and hosted, a model reads the nearest passages where none passes the cutoff: one of
half a billion makes answers up from them."""
ASSUMED_TOKENS_S = 100.0
"""Reading speed of a host that was never measured: a model of 1.5 billion parameters on two
cores."""
QUICK_TOKENS_S = 1000.0
"""From this speed on reading is no reason to hand over less."""
QUICK_PASSAGES = 8
"""Passages for a host that reads as quickly."""
MIN_TOKENS = 600
"""Least evidence: two or three passages, whole."""


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """The way one model is asked one question."""

    prompts: Literal["compact", "full"]
    evidence: Literal["short", "full"]
    leads: bool
    """The quote leads and the model's words stand below it."""
    budget_tokens: int
    """Evidence to hand over at most."""
    reads_tokens_s: float | None
    """Measured reading speed, tokens a second; None before the first call."""
    why: str
    """The reason, for people."""
    passages: int = 0
    """Passages to find at least."""


def manner(
    profile: ModelProfile,
    speed: ModelSpeed | None,
    options: MannerOptions,
    *,
    mode: Mode = "general",
    asked: EvidenceKind | None = None,
    own_prompt: bool = False,
) -> PromptPlan:
    """Return how to ask a model.

    Args:
        profile: What is known of it.
        speed: Its measured speed on this host, if any.
        options: The configuration.
        mode: What the answer is for; all but `general` get more evidence.
        asked: How much evidence the question asks for; overrides the configuration.
        own_prompt: The user wrote the full prompt, which is taken unless the configuration names
            the other.
    """
    findings = profile.findings
    parameters = 0.0 if profile.parameters is None else profile.parameters
    small = not profile.hosted and parameters < SMALL_PARAMETERS
    prompts = options.prompts
    if prompts == "auto":
        prompts = findings.prompts if findings else "compact" if small else "full"
        prompts = "full" if own_prompt else prompts
    quick = profile.hosted or (speed is not None and speed.reading > QUICK_TOKENS_S)
    evidence = options.evidence if asked in (None, "auto") else asked
    if evidence == "auto":
        evidence = findings.evidence if findings else "full"
    if mode != "general":
        evidence = "full"
    is_led = not profile.hosted and parameters < LEADING_PARAMETERS
    leads = not findings.as_good_as_quotes if findings else is_led
    budget, why = _budget(speed, options.reading_s, quick=quick)
    because = "its test" if findings else "its size"
    return PromptPlan(
        prompts,
        evidence,
        leads,
        budget,
        speed.reading if speed else None,
        f"{why}; prompt and evidence by {because}",
        QUICK_PASSAGES if quick else 0,
    )


def _budget(speed: ModelSpeed | None, reading_s: float, *, quick: bool) -> tuple[int, str]:
    """Return the most evidence in tokens, and why."""
    if quick:
        return 1_000_000, "this host reads quickly, the window is the bound"
    reads = speed.reading if speed else ASSUMED_TOKENS_S
    known = "measured" if speed else "assumed"
    why = (
        f"this host reads {reads:.0f} tokens a second ({known}), the evidence is read in"
        f" {reading_s:g} s"
    )
    return max(MIN_TOKENS, int(reads * reading_s)), why


# Learn and keep how fast each model reads and writes on its host.

_MIN_TOKENS = 48
"""A shorter prompt says little about reading: what a host does once per call weighs too much."""
_NEWEST = 0.3
"""Weight of the newest call in the running mean of seconds per token."""
_SWING = 4.0
"""One call changes the mean by this factor at most: a cached prompt seems to be read at once."""
_SLOWEST, _QUICKEST = 0.1, 1e5
"""Tokens a second that a host may claim."""
_WORTH_KEEPING = 0.1
"""Share by which a speed must change to be written down again."""


class ModelSpeeds:
    """Speeds by host and model; thread-safe."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], ModelSpeed | None] = {}

    def of(self, host: str, model: str) -> ModelSpeed | None:
        """Return the speed of a model on a host, None before it was measured."""
        with self._lock:
            key = (host, model)
            if key not in self._known:
                self._known[key] = self._store.speed(host, model)
            return self._known[key]

    def observe(self, host: str, model: str, usage: Usage) -> None:
        """Learn from one finished call; one that says no durations is left out.

        Raises:
            StorageError: The speed could not be kept.
        """
        if not usage.prompt_seconds or (usage.prompt_tokens or 0) < _MIN_TOKENS:
            return
        old = self.of(host, model)
        reading = _mean(
            old.reading if old else None, (usage.prompt_tokens or 0) / usage.prompt_seconds
        )
        writing = old.writing if old else None
        if usage.completion_seconds and usage.completion_tokens:
            writing = _mean(writing, usage.completion_tokens / usage.completion_seconds)
        new = ModelSpeed(round(reading, 1), round(writing, 1) if writing else None)
        with self._lock:
            self._known[host, model] = new
        if old is None or abs(new.reading - old.reading) > _WORTH_KEEPING * old.reading:
            self._store.keep_speed(host, model, new)


def _mean(old: float | None, seen: float) -> float:
    """Return the running mean of a speed, as a mean of seconds per token."""
    seen = min(max(seen, _SLOWEST), _QUICKEST)
    if old is None:
        return seen
    bounded = min(max(seen, old / _SWING), old * _SWING)
    return 1.0 / ((1.0 - _NEWEST) / old + _NEWEST / bounded)
