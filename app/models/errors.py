"""Translate the failures of model hosts into our errors, each with a fix."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.errors import (
    Busy,
    DocuMindError,
    InvalidInput,
    ModelNotInstalled,
    PassageTooLong,
    ProviderBadResponse,
)
from app.models.retries import RunnerStopped

_SAID = 200


def error_text(body: str) -> str:
    """Return the message in an error body: JSON, nested JSON, proxy HTML, or empty."""
    text = body.strip()
    # llama-server's error object arrives as text inside Ollama's, and holds its own
    for _ in range(3):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            break
        if isinstance(value, dict) and "error" in value:
            value = value["error"]
        if isinstance(value, dict):
            return f"{value.get('type', '')} {value.get('message', '')}".strip()
        if not isinstance(value, str):
            break
        text = value.strip()
    return text


@dataclass(frozen=True, slots=True)
class Rule:
    """An error for replies that say something; the first rule that fits decides."""

    says: str
    """Regular expression, in any case."""
    error: type[DocuMindError]
    message: str
    """With `host`, `model` and `said`, the host's own words."""
    embedding: bool | None = None
    """True and False: only of calls for vectors, or for text."""
    statuses: frozenset[int] = frozenset()
    """Empty: any."""


_WINDOW = "the prompt is longer than the window of {model!r} ({said}); ask with fewer passages"
_SPLIT = "a text is longer than {model!r} reads ({said}); split it"
_NO_NAME = Rule(
    r"invalid model name|model is required|model '' not found|model \"\" not found",
    InvalidInput,
    "{model!r} is no name of a model; expected a name as `ollama list` shows it, like"
    " 'llama3.2:1b'",
)
_NOT_FOUND = r"model .*not found|file does not exist"
_TOO_LONG = (
    r"exceeds? (the |maximum )?context length|exceed_context_size|longer than the context length"
)
NO_TEMPLATE = (
    "model {model!r} has no chat template ({said}); choose an instruct model as LLM_MODEL, or give"
    " it a TEMPLATE"
)
CANNOT_CHAT = "model {model!r} cannot chat; choose another LLM_MODEL ({host}: {said})"
OLLAMA = (
    _NO_NAME,
    Rule(
        r"invalid JSON schema in format|^invalid format:|JSON schema conversion failed"
        r"|failed to parse grammar",
        InvalidInput,
        "{host} cannot use the JSON schema of this request ({said}); correct the schema",
    ),
    Rule(_TOO_LONG, PassageTooLong, _SPLIT, embedding=True),
    Rule(_TOO_LONG, InvalidInput, f"{_WINDOW} or raise LLM_NUM_CTX"),
    Rule(
        _NOT_FOUND,
        ModelNotInstalled,
        "model {model!r} is not installed; run: ollama pull {model}",
        statuses=frozenset({404}),
    ),
    Rule(r"does not support|not support embeddings", ProviderBadResponse, CANNOT_CHAT, False),
    Rule(
        r"does not support|not support embeddings",
        ProviderBadResponse,
        "model {model!r} cannot embed; choose an embedding model such as 'nomic-embed-text'"
        " ({host}: {said})",
    ),
    Rule(
        r"requires more system memory|out.of.memory|unable to load full model",
        RunnerStopped,
        "model {model!r} is too large for the memory of {host} ({said}); choose a smaller model or"
        " lower LLM_NUM_CTX",
    ),
    # Hosts before 0.30 speak of a "llama runner", later ones of "llama-server". Of vectors Ollama
    # disguises crashes as status 400.
    Rule(
        r"runner has unexpectedly stopped|encountered while running|llama.server|llama.runner"
        r"|failed to load|unable to load|error loading model|do embedding request",
        RunnerStopped,
        "{host} could not run {model!r} ({said}); it may need more memory: look into its log or use"
        " a smaller model",
    ),
    Rule(r"chat.template|template .*not supported|no template", ProviderBadResponse, NO_TEMPLATE),
)
_HOST = (
    Rule("", Busy, "{host} is busy ({said}); try again in a moment", statuses=frozenset({503})),
    Rule(
        "",
        ProviderBadResponse,
        "{host} refuses this caller or model {model!r} ({said}); see its OLLAMA_* settings",
        statuses=frozenset({403}),
    ),
    Rule("", ProviderBadResponse, "{host} answered {status} for {model!r}: {said!r}; see its log"),
)
PULLS = (
    _NO_NAME,
    Rule(
        _NOT_FOUND,
        ModelNotInstalled,
        "the registry of Ollama has no model {model!r} ({said}); look its name up on"
        " ollama.com/library",
    ),
    Rule(
        "no space left",
        ProviderBadResponse,
        "the disk of {host} is full ({said}); free space there and pull {model!r} again, it"
        " resumes",
    ),
    Rule(
        r"dial tcp|no such host|lookup .* on |connection re(fused|set)|no route to host"
        r"|network is unreachable|timeout|tls:|x509:|: EOF",
        ProviderBadResponse,
        "{host} cannot reach the registry to fetch {model!r} ({said}); check its network and pull"
        " again, it resumes",
    ),
    Rule(
        "",
        ProviderBadResponse,
        "{host} could not fetch {model!r} ({said}); pull it again, it resumes",
        statuses=frozenset({200}),
    ),
)
_BUSY = {
    429: "limits how often it is asked", 502: "is overloaded", 503: "is overloaded",
    529: "is overloaded",
}  # fmt: skip
_OPENAI_TOO_LONG = r"context.?length|maximum context|too many (input )?tokens|exceeds? .*tokens"
_OPENAI_KIND = (
    r"does not support (the )?(chat|completion|embedding)|not a chat model|is an? embedding model"
)
_LENGTH_STATUSES = frozenset({400, 413, 422})
HOSTED = (
    Rule(
        r"no models? loaded|models? (is )?(not loaded|unloaded)",
        ProviderBadResponse,
        "{host} has not loaded {model!r} ({said}); load it there and ask again",
    ),
    Rule(
        r"chat.template",
        ProviderBadResponse,
        "model {model!r} has no chat template ({said}); choose an instruct model",
    ),
    Rule(
        r"insufficient (system )?(memory|resources)|out.of.memory|not enough memory",
        ProviderBadResponse,
        "model {model!r} is too large for the memory of {host} ({said}); choose a smaller model",
    ),
    Rule(
        _OPENAI_KIND,
        ProviderBadResponse,
        "model {model!r} cannot embed; choose an embedding model ({host}: {said})",
        embedding=True,
    ),
    Rule(
        _OPENAI_KIND,
        ProviderBadResponse,
        "model {model!r} cannot chat; choose a chat model ({host}: {said})",
    ),
    Rule(
        "model",
        ModelNotInstalled,
        "{host} has no model {model!r} ({said}); check the model's name",
        statuses=frozenset({404}),
    ),
    Rule(
        "loading model|model is loading",
        Busy,
        "{host} is loading {model!r} ({said}); try again later",
        statuses=frozenset(_BUSY) - {429},
    ),
    *(
        Rule("", Busy, f"{{host}} {why} ({{said}}); try again later", statuses=frozenset({status}))
        for status, why in _BUSY.items()
    ),
    Rule(_OPENAI_TOO_LONG, PassageTooLong, _SPLIT, True, _LENGTH_STATUSES),
    Rule(_OPENAI_TOO_LONG, InvalidInput, _WINDOW, statuses=_LENGTH_STATUSES),
    Rule("", ProviderBadResponse, "{host} answered {status} for {model!r}: {said!r}"),
)
_BUSY_RETRY_S, _HOSTED_RETRY_S, _LONGEST_RETRY_S = 2.0, 5.0, 3600.0


def _first(
    rules: Sequence[Rule],
    status: int,
    said: str,
    host: str,
    model: str,
    *,
    embedding: bool,
    retry_s: float,
) -> DocuMindError:
    short = said[:_SAID]
    for rule in rules:
        if (
            rule.embedding in {None, embedding}
            and (not rule.statuses or status in rule.statuses)
            and re.search(rule.says, said, re.IGNORECASE)
        ):
            shown = short or "no reason given" if status == 403 else short
            text = rule.message.format(host=host, model=model, said=shown, status=status)
            return Busy(text, retry_after_s=retry_s) if rule.error is Busy else rule.error(text)
    raise AssertionError("the last rule fits every reply")


def translate_ollama(
    status: int, body: str, *, host: str, model: str, embedding: bool = False, pull: bool = False
) -> DocuMindError:
    """Return the error to raise for a reply of Ollama.

    The status is 200 for an error line inside a stream. Failures of a pull come as text, mostly
    under status 200. `embedding`: the call was for vectors.
    """
    rules = (*(PULLS if pull else OLLAMA), *_HOST)
    text = error_text(body)
    return _first(rules, status, text, host, model, embedding=embedding, retry_s=_BUSY_RETRY_S)


def translate_hosted(
    status: int,
    body: str,
    *,
    host: str,
    model: str,
    key: str,
    retry_after: str | None = None,
    embedding: bool = False,
) -> DocuMindError:
    """Return the error to raise for a reply of an OpenAI-compatible host, without the key.

    The status is 200 for an error inside a stream; `retry_after` is the header of that name.
    """
    said = error_text(body)
    if key:
        said = said.replace(key, "***")
    # providers repeat the start and end of a wrong key, which is still too much for a log
    said = re.sub(r"\b(sk|gsk|key|AIza)[-_\w*]{6,}", "***", said)[:_SAID]
    if status in {401, 403}:
        return ProviderBadResponse(
            f"{host} refuses the key ({said}); check HOSTED_KEY, which is sent to the host of"
            " LLM_PROVIDER or EMBEDDING_PROVIDER"
        )
    told = retry_after and retry_after.strip().isdecimal()
    wait = min(float(retry_after or 0), _LONGEST_RETRY_S) if told else _HOSTED_RETRY_S
    return _first(HOSTED, status, said, host, model, embedding=embedding, retry_s=wait)
