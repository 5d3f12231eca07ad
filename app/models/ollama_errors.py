"""Translate Ollama's failures into our errors, with a fix."""

from __future__ import annotations

import re

from app.core.errors import (
    Busy,
    DocuMindError,
    InvalidInput,
    ModelNotInstalled,
    PassageTooLong,
    ProviderBadResponse,
)
from app.models.http import error_text
from app.models.retries import RunnerStopped

_NO_NAME = re.compile(
    r"invalid model name|model is required|model '' not found|model \"\" not found", re.IGNORECASE
)
_NO_SCHEMA = re.compile(r"invalid JSON schema in format|^invalid format:", re.IGNORECASE)
_NOT_FOUND = re.compile(r"model .*not found|file does not exist", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"exceeds? (the |maximum )?context length|exceed_context_size|longer than the context length",
    re.IGNORECASE,
)
_NO_TEMPLATE = re.compile(r"chat.template|template .*not supported|no template", re.IGNORECASE)
_WRONG_KIND = re.compile(r"does not support|not support embeddings", re.IGNORECASE)
_NO_MEMORY = re.compile(
    r"requires more system memory|out.of.memory|unable to load full model", re.IGNORECASE
)
# Hosts before 0.30 speak of a "llama runner", later ones of "llama-server".
_RUNNER = re.compile(
    r"runner has unexpectedly stopped|encountered while running|llama.server|llama.runner|failed"
    r" to load|unable to load"
    r"|error loading model|do embedding request",
    re.IGNORECASE,
)
_NO_NETWORK = re.compile(
    r"dial tcp|no such host|lookup .* on |connection re(fused|set)|no route to host"
    r"|network is unreachable|timeout|tls:|x509:|: EOF",
    re.IGNORECASE,
)
_BUSY_RETRY_S = 2.0
_SAID = 200


def translate(
    status: int, body: str, *, host: str, model: str, embedding: bool = False
) -> DocuMindError:
    """Return the error to raise for a reply.

    Args:
        status: HTTP status; 200 for an error line inside a stream.
        body: The reply's body or the error's text.
        host: The host with its address, for messages.
        model: The model that was asked for.
        embedding: The call was for vectors, where Ollama disguises crashes as status 400.
    """
    text = error_text(body)
    said = text[:_SAID]
    if (refused := _bad_request(text, said, host, model)) is not None:
        return refused
    if _TOO_LONG.search(text):
        if embedding:
            return PassageTooLong(f"a text is longer than {model!r} reads ({said}); split it")
        return InvalidInput(
            f"the prompt is longer than the window of {model!r} ({said}); ask with fewer passages"
            " or raise LLM_NUM_CTX"
        )
    if status == 404 and _NOT_FOUND.search(text):
        return ModelNotInstalled(f"model {model!r} is not installed; run: ollama pull {model}")
    return _model_trouble(text, said, host, model, embedding) or _host_trouble(
        status, said, host, model
    )


def translate_pull(status: int, body: str, *, host: str, model: str) -> DocuMindError:
    """Return a failed pull's error; its cause is text, mostly under status 200.

    Args:
        status: HTTP status; 200 for an error line inside the stream.
        body: The reply's body or the error's text.
        host: The host with its address, for messages.
        model: The model that was asked for.
    """
    text = error_text(body)
    said = text[:_SAID]
    if _NO_NAME.search(text):
        return _no_name(model)
    if _NOT_FOUND.search(text):
        return ModelNotInstalled(
            f"the registry of Ollama has no model {model!r} ({said}); look its name up on"
            " ollama.com/library"
        )
    if "no space left" in text.lower():
        return ProviderBadResponse(
            f"the disk of {host} is full ({said}); free space there and pull {model!r} again, it"
            " resumes"
        )
    if _NO_NETWORK.search(text):
        return ProviderBadResponse(
            f"{host} cannot reach the registry to fetch {model!r} ({said}); check its network and"
            " pull again, it resumes"
        )
    if status == 200:
        return ProviderBadResponse(
            f"{host} could not fetch {model!r} ({said}); pull it again, it resumes"
        )
    return _host_trouble(status, said, host, model)


def no_template(model: str, said: str) -> ProviderBadResponse:
    """Return the error for a model that has no form for the turns of a chat."""
    return ProviderBadResponse(
        f"model {model!r} has no chat template ({said}); choose an instruct model as LLM_MODEL, or"
        " give it a TEMPLATE"
    )


def cannot_chat(model: str, host: str, said: str) -> ProviderBadResponse:
    """Return the error for a model that embeds and does not write."""
    return ProviderBadResponse(
        f"model {model!r} cannot chat; choose another LLM_MODEL ({host}: {said})"
    )


def _bad_request(text: str, said: str, host: str, model: str) -> InvalidInput | None:
    if _NO_NAME.search(text):
        return _no_name(model)
    if _NO_SCHEMA.search(text):
        return InvalidInput(
            f"{host} cannot use the JSON schema of this request ({said}); correct the schema"
        )
    return None


def _no_name(model: str) -> InvalidInput:
    return InvalidInput(
        f"{model!r} is no name of a model; expected a name as `ollama list` shows it, like"
        " 'llama3.2:1b'"
    )


def _model_trouble(
    text: str, said: str, host: str, model: str, embedding: bool
) -> DocuMindError | None:
    if _WRONG_KIND.search(text):
        if not embedding:
            return cannot_chat(model, host, said)
        return ProviderBadResponse(
            f"model {model!r} cannot embed; choose an embedding model such as 'nomic-embed-text'"
            f" ({host}: {said})"
        )
    if _NO_MEMORY.search(text):
        return RunnerStopped(
            f"model {model!r} is too large for the memory of {host} ({said}); choose a smaller"
            " model or lower LLM_NUM_CTX"
        )
    if _RUNNER.search(text):
        return RunnerStopped(
            f"{host} could not run {model!r} ({said}); it may need more memory: look into its log"
            " or use a smaller model"
        )
    return no_template(model, said) if _NO_TEMPLATE.search(text) else None


def _host_trouble(status: int, said: str, host: str, model: str) -> DocuMindError:
    if status == 503:
        return Busy(f"{host} is busy ({said}); try again in a moment", retry_after_s=_BUSY_RETRY_S)
    if status == 403:
        return ProviderBadResponse(
            f"{host} refuses this caller or model {model!r} ({said or 'no reason given'}); see its"
            " OLLAMA_* settings"
        )
    return ProviderBadResponse(f"{host} answered {status} for {model!r}: {said!r}; see its log")
