"""Value objects as JSON: what the API sends, the store keeps and clients read is the same class.

They are plain dataclasses that pydantic reads and writes. It is imported where that happens: the
child that parses files imports the classes and has no use for it.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from functools import cache
from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Held = TypeVar("Held")


@cache
def _docstrings(kind: type) -> dict[str, str]:
    """Return the docstrings of a class's own fields."""
    (found,) = ast.parse(dedent(inspect.getsource(kind))).body
    said = {}
    for field, text in pairwise(cast("ast.ClassDef", found).body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(words))):
                said[name] = inspect.cleandoc(words)
    return said


def _described(schema: dict[str, Any], kind: type) -> None:
    """Add the docstrings of fields, which are read when OpenAPI is asked for, not at the start."""
    own = {field.name: field for field in fields(kind)}
    for base in kind.__mro__[:-1]:
        for name, words in _docstrings(base).items():
            alias = own[name].metadata.get("alias", name)
            if alias in schema["properties"]:
                schema["properties"][alias].setdefault("description", words)


DESCRIBED = {"json_schema_extra": _described}
PUBLIC = {
    **DESCRIBED,
    "serialize_by_alias": True,
    "json_schema_serialization_defaults_required": True,
}
"""`__pydantic_config__` of what leaves as JSON. An alias in `metadata` is a field's name there."""
INTERNAL = {"exclude": True}
"""`metadata` of a field that never leaves as JSON."""


@cache
def adapter(kind: type) -> TypeAdapter[Any]:
    """Return what reads and writes a type as JSON."""
    from pydantic import TypeAdapter  # noqa: PLC0415  # a parser's child only packs

    return TypeAdapter(kind)


def from_json(kind: type[Held], value: object) -> Held:
    """Return what JSON holds as a value object; a ValueError where it is of another form."""
    found: Held = adapter(kind).validate_python(value)  # type: ignore[arg-type]  # a class hashes
    return found


def json_values(value: object) -> dict[str, Any]:
    """Return a value object as plain JSON values."""
    kind: type = type(value)
    found: dict[str, Any] = adapter(kind).dump_python(value, mode="json")
    return found
