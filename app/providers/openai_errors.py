"""Translate an OpenAI-compatible host's failures into our errors, with a fix."""

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
from app.providers.error_bodies import error_text
from app.providers.presets import Preset

_TOO_LONG = re.compile(
    r"context.?length|maximum context|too many (input )?tokens|exceeds? .*tokens", re.IGNORECASE
)
_NO_MODEL = re.compile(r"model", re.IGNORECASE)
_LOADING = re.compile(r"loading model|model is loading", re.IGNORECASE)
_NOT_LOADED = re.compile(r"no models? loaded|models? (is )?(not loaded|unloaded)", re.IGNORECASE)
_NO_TEMPLATE = re.compile(r"chat.template", re.IGNORECASE)
_NO_MEMORY = re.compile(
    r"insufficient (system )?(memory|resources)|out.of.memory|not enough memory", re.IGNORECASE
)
_WRONG_KIND = re.compile(
    r"does not support (the )?(chat|completion|embedding)|not a chat model|is an? embedding model",
    re.IGNORECASE,
)
_RETRY_S = 5.0
_LONGEST_RETRY_S = 3600.0


def translate(
    status: int,
    body: str,
    *,
    host: str,
    model: str,
    preset: Preset,
    key: str,
    retry_after: str | None = None,
    embedding: bool = False,
) -> DocuMindError:
    """Return a reply's error, with the key removed from the host's words.

    Args:
        status: HTTP status; 200 for an error inside a stream.
        body: The reply's body.
        host: The host with its address, for messages.
        model: The model that was asked for.
        preset: Names the settings to look at.
        key: The secret that must not appear.
        retry_after: The header of that name.
        embedding: The call was for vectors.
    """
    said = error_text(body)
    if key:
        said = said.replace(key, "***")
    # providers repeat the start and end of a wrong key, which is still too much for a log
    said = re.sub(r"\b(sk|gsk|key|AIza)[-_\w*]{6,}", "***", said)[:200]
    if status in {401, 403}:
        return ProviderBadResponse(
            f"{host} refuses the key ({said}); check {preset.env_prefix}_API_KEY"
        )
    if (trouble := _model_trouble(status, said, host, model, embedding)) is not None:
        return trouble
    if status in {429, 502, 503, 529}:
        told = retry_after and retry_after.strip().isdecimal()
        wait = min(float(retry_after or 0), _LONGEST_RETRY_S) if told else _RETRY_S
        loading = f"is loading {model!r}" if _LOADING.search(said) else "is overloaded"
        why = "limits how often it is asked" if status == 429 else loading
        return Busy(f"{host} {why} ({said}); try again later", retry_after_s=wait)
    if status in {400, 413, 422} and _TOO_LONG.search(said):
        if embedding:
            return PassageTooLong(f"a text is longer than {model!r} reads ({said}); split it")
        return InvalidInput(
            f"the prompt is longer than the window of {model!r} ({said}); ask with fewer passages"
        )
    return ProviderBadResponse(f"{host} answered {status} for {model!r}: {said!r}")


def _model_trouble(
    status: int, said: str, host: str, model: str, embedding: bool
) -> DocuMindError | None:
    """Return the error of a model that cannot serve; hosts use many statuses."""
    if _NOT_LOADED.search(said):
        return ProviderBadResponse(
            f"{host} has not loaded {model!r} ({said}); load it there and ask again"
        )
    if _NO_TEMPLATE.search(said):
        return ProviderBadResponse(
            f"model {model!r} has no chat template ({said}); choose an instruct model"
        )
    if _NO_MEMORY.search(said):
        return ProviderBadResponse(
            f"model {model!r} is too large for the memory of {host} ({said}); choose a smaller"
            " model"
        )
    if _WRONG_KIND.search(said):
        wanted = "embed; choose an embedding model" if embedding else "chat; choose a chat model"
        return ProviderBadResponse(f"model {model!r} cannot {wanted} ({host}: {said})")
    if status == 404 and _NO_MODEL.search(said):
        return ModelNotInstalled(f"{host} has no model {model!r} ({said}); check the model's name")
    return None
