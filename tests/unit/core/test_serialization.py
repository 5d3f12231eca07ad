"""A value object as JSON: names, what stays within, and what OpenAPI says of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.core.serialization import INTERNAL, PUBLIC, adapter, from_json, json_values


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing."""

    __pydantic_config__ = PUBLIC
    n_in: int = field(metadata={"alias": "in"})
    """Before.

    Of all.
    """
    kept: str = field(default="here", metadata=INTERNAL)
    """Never shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Thing):
    """A thing with a name."""

    name: str = ""
    """What it is called."""
    plain: int = 0


def test_a_field_has_its_alias_and_what_stays_within_is_left_out() -> None:
    thing = Named(n_in=3, kept="there", name="pump")
    assert json_values(thing) == {"in": 3, "name": "pump", "plain": 0}
    assert from_json(Named, {"in": 3, "name": "pump"}) == Named(n_in=3, name="pump")


def test_docstrings_of_fields_are_descriptions_inherited_ones_too() -> None:
    schema = adapter(Named).json_schema(mode="serialization")
    said = {name: one.get("description") for name, one in schema["properties"].items()}
    assert said == {"in": "Before.\n\nOf all.", "name": "What it is called.", "plain": None}
    assert schema["required"] == ["in", "name", "plain"]
