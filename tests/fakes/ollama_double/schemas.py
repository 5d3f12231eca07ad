"""JSON schemas as `format` takes them."""

from __future__ import annotations

from collections.abc import Mapping

_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "number": int,
    "integer": int,
    "boolean": bool,
    "null": None,
}


def usable(schema: object) -> bool:
    """Whether a grammar can be made of it."""
    if not isinstance(schema, Mapping):
        return False
    kind = schema.get("type")
    if isinstance(kind, list):
        return all(name in _TYPES for name in kind)
    if kind is not None and (not isinstance(kind, str) or kind not in _TYPES):
        return False
    inner = schema.get("properties", {})
    parts = (
        [*inner.values(), *([schema["items"]] if "items" in schema else [])]
        if isinstance(inner, Mapping)
        else [None]
    )
    return all(usable(part) for part in parts)


def instance_of(schema: object) -> object:
    """The smallest value that a schema allows; an empty object for `json`."""
    if not isinstance(schema, Mapping):
        return {}
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        inner = schema.get("properties", {})
        return {
            name: instance_of(inner.get(name, {"type": "string"}))
            for name in schema.get("required", inner)
        }
    if kind == "array":
        return [
            instance_of(schema.get("items", {"type": "string"}))
            for _ in range(int(schema.get("minItems", 0)))
        ]
    made = _TYPES[kind]
    return made() if made is not None else None
