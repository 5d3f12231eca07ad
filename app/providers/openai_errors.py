"""What an OpenAI-compatible host says when it fails, in our words and with the cure."""

from __future__ import annotations

import re

from app.core.errors import Busy, DocuMindError, InvalidInput, ModelNotInstalled, PassageTooLong, ProviderBadResponse
from app.providers.error_bodies import error_text
from app.providers.presets import Preset

_TOO_LONG = re.compile(r"context.?length|maximum context|too many (input )?tokens|exceeds? .*tokens", re.IGNORECASE)
_NO_MODEL = re.compile(r"model", re.IGNORECASE)
_RETRY_S = 5.0


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
    """Return the error to raise for a reply; the key is taken out of whatever the host repeats.

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
        return ProviderBadResponse(f"{host} refuses the key ({said}); check {preset.env_prefix}_API_KEY")
    if status == 404 and _NO_MODEL.search(said):
        return ModelNotInstalled(f"{host} has no model {model!r} ({said}); check the model's name")
    if status in {429, 502, 503, 529}:
        wait = float(retry_after) if retry_after and retry_after.strip().isdigit() else _RETRY_S
        trouble = "limits how often it is asked" if status == 429 else "is overloaded"
        return Busy(f"{host} {trouble} ({said}); try again later", retry_after_s=wait)
    if status in {400, 413, 422} and _TOO_LONG.search(said):
        if embedding:
            return PassageTooLong(f"a text is longer than {model!r} reads ({said}); split it")
        return InvalidInput(f"the prompt is longer than the window of {model!r} ({said}); ask with fewer passages")
    return ProviderBadResponse(f"{host} answered {status} for {model!r}: {said!r}")
