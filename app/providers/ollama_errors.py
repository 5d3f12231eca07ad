"""What Ollama says when it fails, in our words and with the cure."""

from __future__ import annotations

import re

from app.core.errors import Busy, DocuMindError, InvalidInput, ModelNotInstalled, PassageTooLong, ProviderBadResponse
from app.providers.error_bodies import error_text
from app.providers.retries import RunnerStopped

_NOT_FOUND = re.compile(r"model .*not found|file does not exist", re.IGNORECASE)
_TOO_LONG = re.compile(r"exceeds? (the |maximum )?context length|exceed_context_size|longer than the context length", re.IGNORECASE)
_WRONG_KIND = re.compile(r"does not support|not support embeddings", re.IGNORECASE)
_RUNNER = re.compile(
    r"runner has unexpectedly stopped|encountered while running|llama-server|out.of.memory|unable to load|error loading model",
    re.IGNORECASE,
)
_BUSY_RETRY_S = 2.0


def translate(status: int, body: str, *, host: str, model: str, embedding: bool = False) -> DocuMindError:
    """Return the error to raise for a reply.

    Args:
        status: HTTP status; 200 for an error line inside a stream.
        body: The reply's body or the error's text.
        host: The host with its address, for messages.
        model: The model that was asked for.
        embedding: The call was for vectors, where Ollama disguises crashes as status 400.
    """
    text = error_text(body)
    said = text[:200]
    if _TOO_LONG.search(text):
        if embedding:
            return PassageTooLong(f"a text is longer than {model!r} reads ({said}); split it")
        return InvalidInput(
            f"the prompt is longer than the window of {model!r} ({said}); ask with fewer passages or raise LLM_NUM_CTX"
        )
    if status == 404 and _NOT_FOUND.search(text):
        return ModelNotInstalled(f"model {model!r} is not installed; run: ollama pull {model}")
    return _host_trouble(status, text, said, host, model, embedding)


def _host_trouble(status: int, text: str, said: str, host: str, model: str, embedding: bool) -> DocuMindError:
    if _WRONG_KIND.search(text):
        wanted = "embed; choose an embedding model such as 'nomic-embed-text'" if embedding else "chat; choose another LLM_MODEL"
        return ProviderBadResponse(f"model {model!r} cannot {wanted} ({host}: {said})")
    if status == 503:
        return Busy(f"{host} is busy ({said}); try again in a moment", retry_after_s=_BUSY_RETRY_S)
    if _RUNNER.search(text):
        return RunnerStopped(
            f"{host} could not run {model!r} ({said}); it may need more memory: look into its log or use a smaller model"
        )
    if status == 403:
        return ProviderBadResponse(
            f"{host} refuses this caller or model {model!r} ({said or 'no reason given'}); see its OLLAMA_* settings"
        )
    return ProviderBadResponse(f"{host} answered {status} for {model!r}: {said!r}; see its log")
