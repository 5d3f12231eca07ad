"""What the server refuses before it does anything: names, types, options, durations, foreign callers."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlsplit

from tests.fakes.ollama_double.schemas import usable

Fields = dict[str, object]


class Refused(Exception):
    """A reply of another status than 200; errors of the runner come without a charset."""

    def __init__(self, status: int, message: str, *, of_runner: bool = False) -> None:
        super().__init__(message)
        self.status, self.message, self.of_runner = status, message, of_runner


_GO = {str: "string", bool: "bool", float: "number", list: "array", dict: "object"}
_FIELDS: dict[str, dict[str, tuple[type, str]]] = {
    "ChatRequest": {
        "model": (str, "string"),
        "messages": (list, "[]api.Message"),
        "stream": (bool, "bool"),
        "options": (dict, "map[string]interface {}"),
        "truncate": (bool, "bool"),
        "shift": (bool, "bool"),
        "logprobs": (bool, "bool"),
        "top_logprobs": (float, "int"),
        "tools": (list, "api.Tools"),
    },
    "GenerateRequest": {
        "model": (str, "string"),
        "prompt": (str, "string"),
        "system": (str, "string"),
        "raw": (bool, "bool"),
        "stream": (bool, "bool"),
        "options": (dict, "map[string]interface {}"),
        "truncate": (bool, "bool"),
        "logprobs": (bool, "bool"),
        "top_logprobs": (float, "int"),
    },
    "EmbedRequest": {
        "model": (str, "string"),
        "truncate": (bool, "bool"),
        "dimensions": (float, "int"),
        "options": (dict, "map[string]interface {}"),
    },
    "EmbeddingRequest": {
        "model": (str, "string"),
        "prompt": (str, "string"),
        "options": (dict, "map[string]interface {}"),
    },
    "ShowRequest": {"model": (str, "string"), "name": (str, "string")},
    "PullRequest": {"model": (str, "string"), "name": (str, "string"), "stream": (bool, "bool")},
    "CopyRequest": {"source": (str, "string"), "destination": (str, "string")},
    "DeleteRequest": {"model": (str, "string"), "name": (str, "string")},
}
_MESSAGE = {"role": (str, "string"), "content": (str, "string")}
_INTEGERS = {
    "num_ctx",
    "num_predict",
    "num_keep",
    "seed",
    "top_k",
    "repeat_last_n",
    "num_batch",
    "num_gpu",
    "main_gpu",
    "num_thread",
}
_FLOATS = {
    "temperature",
    "top_p",
    "min_p",
    "typical_p",
    "repeat_penalty",
    "presence_penalty",
    "frequency_penalty",
}
_NAME = re.compile(
    r"(?:[\w.-]+(?::\d+)?/)?(?:[\w-][\w.-]*/)?\w[\w.-]*(?::\w[\w.-]{0,79})?", re.ASCII
)
_DURATION = re.compile(r"-?(?:\d+(?:\.\d+)?(?:ns|us|ms|s|m|h))+")
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def check_types(body: Fields, request: str) -> None:
    """Refuse what Go's decoder refuses; null and unknown fields pass."""
    _check(body, _FIELDS[request], request)
    if request == "ChatRequest" and isinstance(messages := body.get("messages"), list):
        for message in messages:
            if not isinstance(message, dict):
                raise _wrong(message, "ChatRequest.messages", "api.Message")
            _check(message, _MESSAGE, "ChatRequest.messages")


def _check(
    body: Mapping[str, object], fields: Mapping[str, tuple[type, str]], request: str
) -> None:
    for name, (kind, go) in fields.items():
        value = body.get(name)
        if value is not None and _kind(value) is not kind:
            raise _wrong(value, f"{request}.{name}", go)


def _kind(value: object) -> type:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def _wrong(value: object, field: str, go: str) -> Refused:
    return Refused(
        400, f"json: cannot unmarshal {_GO[_kind(value)]} into Go struct field {field} of type {go}"
    )


def check_options(options: Mapping[str, object]) -> None:
    """Refuse options of a wrong type; unknown ones pass."""
    for name, value in options.items():
        wanted = "integer" if name in _INTEGERS else "float32" if name in _FLOATS else ""
        if wanted and _kind(value) is not float:
            raise Refused(500, f'option "{name}" must be of type {wanted}')
        if name == "stop" and not isinstance(value, list):
            raise Refused(500, 'option "stop" must be of type array')


def check_format(value: object, *, llama_server: bool) -> None:
    """Refuse a format that is neither `json` nor a schema.

    From 0.30 on llama-server reads the schema, and its error object passes through as text.
    """
    if value is None or value in ("", "json"):
        return
    if isinstance(value, dict):
        if usable(value):
            return
        if not llama_server:
            raise Refused(500, "invalid JSON schema in format", of_runner=True)
        said = f"JSON schema conversion failed:\nUnrecognized schema: {json.dumps(value)}"
        inner = {"code": 400, "message": said, "type": "invalid_request_error"}
        raise Refused(400, json.dumps({"error": inner}), of_runner=True)
    shown = json.dumps(json.dumps(value))
    raise Refused(500, f'invalid format: {shown}; expected "json" or a valid JSON Schema object')


def check_think(value: object) -> bool:
    """Whether thinking is asked for."""
    if isinstance(value, str) and value not in {"high", "medium", "low", "max"}:
        raise Refused(
            400,
            f'invalid think value: "{value}" (must be "high", "medium", "low", "max", true, or'
            " false)",
        )
    return bool(value)


def check_top(value: object) -> int:
    """How many likeliest tokens are asked for."""
    wanted = int(value) if isinstance(value, int | float) else 0
    if not 0 <= wanted <= 20:
        raise Refused(400, "top_logprobs must be between 0 and 20")
    return wanted


def name_in(body: Fields, *, empty: Refused, fields: tuple[str, ...] = ("model", "name")) -> str:
    """The model's name."""
    name = next((str(body[field]) for field in fields if body.get(field)), "")
    if not name:
        raise empty
    if _NAME.fullmatch(name) is None:
        raise Refused(400, "invalid model name")
    return name


def keep_alive(value: object, default_s: float = 300.0) -> timedelta | None:
    """How long a model stays; None is forever."""
    if value is None:
        return timedelta(seconds=default_s)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return timedelta(seconds=value) if value >= 0 else None
    text = str(value)
    if re.fullmatch(r"-?\d+(\.\d+)?", text):
        raise Refused(400, f'time: missing unit in duration "{text}"')
    if _DURATION.fullmatch(text) is None:
        raise Refused(400, f'time: invalid duration "{text}"')
    seconds = sum(
        float(number) * _UNITS[unit]
        for number, unit in re.findall(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m|h)", text)
    )
    return None if text.startswith("-") else timedelta(seconds=seconds)


def admitted(host: str, origin: str | None) -> bool:
    """Whether a server on a loopback address answers this Host and Origin."""
    name = urlsplit(f"//{host}").hostname or ""
    if name and not name.endswith(("localhost", ".local", ".internal")) and not _near(name):
        return False
    if origin is None:
        return True
    parts = urlsplit(origin)
    web = parts.scheme in {"http", "https"} and parts.hostname in {
        "localhost",
        "127.0.0.1",
        "0.0.0.0",
    }  # compared
    return web or parts.scheme in {"app", "file", "tauri"} or parts.scheme.startswith("vscode-")


def _near(name: str) -> bool:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_private or address.is_unspecified
