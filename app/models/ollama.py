"""Manage an Ollama host: version, installed and loaded models, pulls."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from pydantic import AfterValidator, AliasPath, Field

from app.core.cancel import CancelToken
from app.core.errors import (
    DocuMindError,
    ProviderBadResponse,
    ProviderError,
    ProviderTimeout,
    ProviderUnreachable,
)
from app.models.errors import translate_ollama
from app.models.http import (
    Count,
    FromHost,
    HttpClient,
    HttpReply,
    Items,
    Text,
    Texts,
    Tokens,
    on_this_machine,
)

Read = TypeVar("Read", bound=FromHost)

# Define what an Ollama host tells of its models: installed, loaded, details.


Digest = Annotated[Text, AfterValidator(lambda text: text.removeprefix("sha256:"))]


class InstalledModel(FromHost):
    """One row of the host's list. `digest` is hex, `size_bytes` on disk."""

    name: Text = ""
    digest: Digest = ""
    size_bytes: Count = Field(0, validation_alias="size")
    family: Text = Field("", validation_alias=AliasPath("details", "family"))
    parameters: Text = Field("", validation_alias=AliasPath("details", "parameter_size"))
    capabilities: Texts = ()
    """As the list says them: not before 0.30, and `completion` of an embedding model that Ollama
    converted itself. `OllamaWatch` puts what the host says of the single model in their place."""

    @property
    def chats(self) -> bool:
        """True for a model that writes; by family and name where the host does not say."""
        if self.capabilities:
            return "completion" in self.capabilities
        return "bert" not in self.family.lower() and "embed" not in self.name.lower()

    @property
    def decides(self) -> bool:
        """True for a model that answers typed questions with probabilities."""
        return "decision" in self.capabilities


class LoadedModel(FromHost):
    """A model in memory; `context_tokens` is what was allocated."""

    name: Text = ""
    """The name that loaded it; a model can have several."""
    digest: Digest = ""
    size_bytes: Count = Field(0, validation_alias="size")
    context_tokens: Tokens | None = Field(None, validation_alias="context_length")
    expires_at: Text = ""


class _Listed(FromHost):
    version: Text = "0.0.0"
    models: Items[dict[str, object]] = ()


class _Shown(FromHost):
    capabilities: Texts = ()
    model_info: dict[str, object] = Field(default_factory=dict)
    parameters: Text = ""
    template: Text = ""
    renderer: Text = ""


class _Sizes(FromHost):
    context: Tokens | None = None
    dimension: Count | None = None


class _Pulled(FromHost):
    error: object = None
    status: Text = ""
    completed: Count | None = None
    total: Count | None = None


@dataclass(frozen=True, slots=True)
class ModelDetails:
    """A model's abilities; None or empty where an old host does not say."""

    name: str
    capabilities: tuple[str, ...]
    context_tokens: int | None
    dimension: int | None
    configured_ctx: int | None
    """`num_ctx` of the model file."""
    sets_repeat_penalty: bool = False
    """The model file sets `repeat_penalty`."""
    bare_prompt: bool = False
    """The model file hands over bare text, without turns of a chat."""

    @property
    def chats(self) -> bool:
        """False only when the host says that the model does not write."""
        return not self.capabilities or "completion" in self.capabilities

    @property
    def embeds(self) -> bool:
        """False only when the host says that the model is no embedding model."""
        return not self.capabilities or "embedding" in self.capabilities


@dataclass(frozen=True, slots=True)
class PullProgress:
    """One step of a pull; bytes of the blob in work, where there is one."""

    status: str
    completed: int | None = None
    total: int | None = None


def same_model(left: str, right: str) -> bool:
    """Return whether two names mean one model, ignoring case and tag `latest`."""
    return _canonical(left) == _canonical(right)


def _canonical(name: str) -> str:
    lowered = name.lower()
    return lowered if ":" in lowered.rpartition("/")[2] else f"{lowered}:latest"


LOGPROBS_SINCE = (0, 12, 11)
"""First tag that returns token log-probabilities (docs/facts/ollama.md)."""
OWN_TEMPLATES_SINCE = (0, 30, 0)
"""First tag whose llama-server reads the chat template inside the weights where the model file
has none."""
_SHORT_S = 10.0
"""Deadline of calls that load no model."""


class OllamaHost:
    """One Ollama server: the first address that answers; thread-safe. No method loads a model."""

    def __init__(
        self, base_url: str, *, connect_timeout_s: float = 3.0, read_timeout_s: float = 300.0
    ) -> None:
        """Prepare; nothing is sent.

        Of several addresses, separated by commas, the first that answers is used. Nothing is sent
        before the first token, so `read_timeout_s` covers loading a model.

        Raises:
            InvalidInput: The address cannot be read.
        """
        self._clients = [
            HttpClient(
                url, "Ollama", connect_timeout_s=connect_timeout_s, read_timeout_s=read_timeout_s
            )
            for url in base_url.split(",")
        ]
        self.http = self._clients[0]
        self._version: str | None = None

    @property
    def shown_url(self) -> str:
        return self.http.shown_url

    @property
    def name(self) -> str:
        """The host with its address, for messages; without credentials."""
        return self.http.host

    @property
    def local(self) -> bool:
        return on_this_machine(self.http.base_url)

    def version(self) -> str:
        if self._version is None:
            self._version = self._reach("/api/version").version
        return self._version

    def gives_logprobs(self) -> bool:
        """Return whether answers carry log-probabilities."""
        return self._since(LOGPROBS_SINCE)

    def uses_own_templates(self) -> bool:
        """Return whether a model without a template uses the one in its weights."""
        return self._since(OWN_TEMPLATES_SINCE)

    def _since(self, release: tuple[int, int, int]) -> bool:
        numbers = tuple(int(part) for part in re.findall(r"\d+", self.version())[:3])
        # source builds say 0.0.0 and are taken as new
        return numbers == (0, 0, 0) or numbers >= release

    def models(self, timeout_s: float = _SHORT_S) -> list[InstalledModel]:
        """Return installed models, newest first."""
        listed = self._reach("/api/tags", timeout_s).models
        return [InstalledModel.model_validate(row) for row in listed]

    def loaded(self, timeout_s: float = _SHORT_S) -> list[LoadedModel]:
        reply = self.http.call("GET", "/api/ps", timeout_s=timeout_s)
        return [LoadedModel.model_validate(row) for row in self.check(reply, "", _Listed).models]

    def details(
        self, model: str, cancel: CancelToken | None = None, *, timeout_s: float = _SHORT_S
    ) -> ModelDetails:
        """Return what a model can do.

        Raises:
            ModelNotInstalled: The host does not have it.
            ProviderError: The host failed.
        """
        reply = self.http.call(
            "POST", "/api/show", {"model": model}, timeout_s=timeout_s, cancel=cancel
        )
        shown = self.check(reply, model, _Shown)
        info = shown.model_info
        family = info.get("general.architecture")
        sizes = _Sizes.model_validate(
            {
                "context": info.get(f"{family}.context_length"),
                "dimension": info.get(f"{family}.embedding_length"),
            }
        )
        configured = re.search(r"^num_ctx\s+(\d{1,8})\b", shown.parameters, re.MULTILINE)
        penalty = re.search(r"^repeat_penalty\s", shown.parameters, re.MULTILINE)
        return ModelDetails(
            name=model,
            capabilities=shown.capabilities,
            context_tokens=sizes.context,
            dimension=sizes.dimension,
            configured_ctx=int(configured[1]) if configured else None,
            sets_repeat_penalty=penalty is not None,
            bare_prompt=shown.template.strip() == "{{ .Prompt }}" and not shown.renderer,
        )

    def pull(self, model: str, cancel: CancelToken) -> Iterator[PullProgress]:
        """Fetch a model and yield progress, last `success`; the next pull resumes a cancelled one.

        Raises:
            ModelNotInstalled: The registry has no such model.
            ProviderBadResponse: The stream ended without success, or said why.
            ProviderError: The host failed.
            Cancelled: The token was cancelled.
        """
        with self.http.stream(
            "POST", "/api/pull", {"model": model, "stream": True}, cancel=cancel
        ) as reply:

            def failed(status: int, text: str) -> DocuMindError:
                return translate_ollama(status, text, host=self.name, model=model, pull=True)

            if reply.status != 200:
                raise failed(reply.status, reply.read().decode("utf-8", "replace"))
            done = False
            for line in filter(None, reply.lines()):
                step = _Pulled.parse(line, self.name)
                if step.error is not None:
                    # the first line is out before the registry is asked, so every failure comes as
                    # status 200
                    raise failed(200, step.error if isinstance(step.error, str) else "")
                done = step.status == "success"
                yield PullProgress(step.status, step.completed, step.total)
            if not done:
                raise ProviderBadResponse(
                    f"{self.name} ended the pull of {model!r} early; run it again, it resumes"
                )

    def check(
        self, reply: HttpReply, model: str, kind: type[Read], *, embedding: bool = False
    ) -> Read:
        """Return the object in a reply, or raise what its status says.

        Raises:
            DocuMindError: As `translate_ollama`.
        """
        if reply.status != 200:
            raise translate_ollama(
                reply.status, reply.text, host=self.name, model=model, embedding=embedding
            )
        return kind.parse(reply.text, self.name)

    def _reach(self, path: str, timeout_s: float = _SHORT_S) -> _Listed:
        """Ask the addresses in order; keep the first that answers, else the last."""
        *others, last = self._clients
        for client in others:
            try:
                reply = client.call("GET", path, timeout_s=timeout_s)
            except (ProviderUnreachable, ProviderTimeout):
                continue
            self._use(client)
            return self.check(reply, "", _Listed)
        self._use(last)
        return self.check(last.call("GET", path, timeout_s=timeout_s), "", _Listed)

    def _use(self, client: HttpClient) -> None:
        if client is not self.http:
            self.http, self._version = client, None


# Knows whether Ollama runs and what it has, as things stand now.

_FRESH_S = 5.0
"""How long an answer about the host is believed, seconds."""
_BUSY_S = 30.0
"""How long a host that neither answers nor refuses counts as busy, seconds; then it is away."""
_FRESH_AFTER_TIMEOUT_S = 30.0
"""How long one that is away so is believed to be, because asking it again costs a second."""
_ASK_S = 1.0


@dataclass(frozen=True, slots=True)
class OllamaStatus:
    """The host's last reply; `trouble` says, for people, why it is unreachable, or busy."""

    reachable: bool
    """True of a busy host too, with what it had before: a question waits for it as for a model."""
    models: tuple[InstalledModel, ...] = ()
    trouble: str = ""
    busy: bool = False
    """It runs and did not answer in time."""

    def has(self, model: str) -> bool:
        return any(same_model(one.name, model) for one in self.models)


class OllamaWatch:
    """Knows whether Ollama runs; asks at most every five seconds; thread-safe.

    While one thread asks, others go on with the last answer, so a host that hangs delays one
    question by a second.
    """

    def __init__(
        self,
        host: OllamaHost,
        *,
        twin: Callable[[str], bool] = lambda _: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; `twin` tells whether a model of the host is the embedded one."""
        self.host = host
        self.twin = twin
        self._clock = clock
        self._asking = threading.Lock()
        self._status: OllamaStatus | None = None
        self._stale_at = 0.0
        self._seen: frozenset[str] = frozenset()
        self.had_a_chat_model = False
        self._silent_since_s: float | None = None
        self._capabilities: dict[tuple[str, str], tuple[str, ...]] = {}
        """By name and digest, as the host shows the single model."""

    def status(self) -> OllamaStatus:
        """Return what the host has, at most five seconds old (thirty where it is silent)."""
        if self._status is not None and self._clock() < self._stale_at:
            return self._status
        if self._status is not None and self._asking.locked():
            return self._status
        with self._asking:
            if self._status is None or self._clock() >= self._stale_at:
                self._status = self._ask()
            return self._status

    def seen(self, model: str) -> bool:
        return any(same_model(name, model) for name in self._seen)

    def forget(self) -> None:
        """Ask again next time, for example after a pull."""
        self._stale_at = 0.0

    def _ask(self) -> OllamaStatus:
        fresh_s = _FRESH_S
        try:
            listed = self.host.models(timeout_s=_ASK_S)
            status = OllamaStatus(True, tuple(self._with_capabilities(listed)))
            self._seen |= frozenset(model.name for model in status.models)
            self.had_a_chat_model |= any(model.chats for model in status.models)
            self._silent_since_s = None
        except ProviderTimeout:
            status, fresh_s = self._silent()
        except ProviderError as error:
            status, self._silent_since_s = OllamaStatus(False, trouble=error.message), None
        self._stale_at = self._clock() + fresh_s
        return status

    def _silent(self) -> tuple[OllamaStatus, float]:
        """Return the status of a host that did not answer in time, and how long it is believed.

        One that answered before is busy: what it had still counts, until it was silent too long.
        """
        now_s = self._clock()
        if self._silent_since_s is None:
            self._silent_since_s = now_s - _ASK_S
        silent_s = now_s - self._silent_since_s
        trouble = f"{self.host.name} is busy: no answer for {silent_s:.0f} s"
        if silent_s >= _BUSY_S:
            return OllamaStatus(False, trouble=trouble, busy=True), _FRESH_AFTER_TIMEOUT_S
        known = self._status or OllamaStatus(False)
        return replace(known, trouble=trouble, busy=True), _FRESH_S

    def _with_capabilities(self, models: Sequence[InstalledModel]) -> Iterator[InstalledModel]:
        """Yield models with what each can do, asked once of each: the list may be wrong."""
        asks = True
        for model in models:
            key = (model.name, model.digest)
            if asks and key not in self._capabilities:
                try:
                    told = self.host.details(model.name, timeout_s=_ASK_S).capabilities
                    self._capabilities[key] = told
                except (ProviderTimeout, ProviderUnreachable):
                    asks = False  # the next look asks again
                except ProviderError:
                    self._capabilities[key] = ()  # a host that shows no single model
            known = self._capabilities.get(key, ())
            if not known and not model.chats:
                known = model.capabilities
            yield model.model_copy(update={"capabilities": known})


# Watch whether models stay in a host's memory together.


class MemoryWatch:
    """Remembers which models a host had in memory, and until when; thread-safe."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._until: dict[str, datetime] = {}
        """By digest: names differ where one model has several."""

    def together(self, wanted: Collection[str], loaded: Sequence[LoadedModel]) -> bool | None:
        """Record what is in memory; return whether the wanted models stay together.

        Args:
            wanted: Digests of the models in use.
            loaded: What the host has in memory now; where that is nothing, it may have been started
                again.

        Returns:
            True when all are there; False when one that was seen is gone before its time while
            another is there; None when nothing is known: fewer than two are wanted, or one was not
            loaded yet or has expired.
        """
        now = self._clock()
        with self._lock:
            if not loaded:
                self._until.clear()
            self._until |= {model.digest: _time(model.expires_at) or now for model in loaded}
            if len(wanted) < 2:
                return None
            here = {model.digest for model in loaded}
            gone = [digest for digest in wanted if digest not in here]
            if not gone:
                return True
            pushed_out = any(digest in self._until and self._until[digest] > now for digest in gone)
            return False if pushed_out and len(gone) < len(wanted) else None


def _time(text: str) -> datetime | None:
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    return read if read.tzinfo is not None else None


# Read a model's size from hosts and names.

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMBT])", re.IGNORECASE)
_IN_NAME = re.compile(r"(?<![\w.])(?:(\d+)x)?(\d+(?:\.\d+)?)([mb])(?![a-z0-9])", re.IGNORECASE)
_UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def parameters_of(size: str) -> float | None:
    """Return the parameters in a host's "494.03M" or "7.6B"; None without a number."""
    found = _SIZE.fullmatch(size.strip())
    return float(found[1]) * _UNITS[found[2].upper()] if found else None


def parameters_in_name(name: str) -> float | None:
    """Return the parameters in a name such as `qwen2.5:0.5b` or `mixtral-8x7b`, else None."""
    found = _IN_NAME.search(re.sub(r"[:/_-]", " ", name))
    if not found:
        return None
    return int(found[1] or 1) * float(found[2]) * _UNITS[found[3].upper()]
