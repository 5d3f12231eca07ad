"""The message inside what a host sends when it fails."""

from __future__ import annotations

import json


def error_text(body: str) -> str:
    """Return the message in an error body: JSON, nested JSON, proxy HTML, or empty."""
    text = body.strip()
    for _ in range(
        3
    ):  # llama-server's error object arrives as text inside Ollama's, and holds its own
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
