"""A JSON object from outside, read field by field with its types checked."""

from __future__ import annotations

import json
import math

from app.core.errors import ProviderBadResponse

MOST = 2**53
"""Largest count, size in bytes or duration in nanoseconds (104 days) that is believed; JSON's
numbers are exact up to it."""
MOST_TOKENS = 10**8
"""Most tokens of one call or window that are believed."""


class Fields:
    """An object of a reply; absent, null or wrongly typed fields use the default."""

    def __init__(self, value: object, host: str) -> None:
        """Wrap a parsed value.

        Raises:
            ProviderBadResponse: It is no object.
        """
        if not isinstance(value, dict):
            raise ProviderBadResponse(
                f"{host} sent {str(value)[:80]!r}, expected a JSON object; is it the right address?"
            )
        self._value: dict[str, object] = value
        self._host = host

    @classmethod
    def parse(cls, text: bytes | str, host: str) -> Fields:
        """Parse an object.

        Raises:
            ProviderBadResponse: It is no JSON object.
        """
        try:
            return cls(json.loads(text), host)
        except (ValueError, RecursionError) as exc:
            raise ProviderBadResponse(
                f"{host} sent {text[:80]!r}, expected JSON; is it the right address?"
            ) from exc

    def __contains__(self, name: str) -> bool:
        """Return whether the field is there and not null."""
        return self._value.get(name) is not None

    def text(self, name: str, default: str = "") -> str:
        """Return a string."""
        value = self._value.get(name)
        return value if isinstance(value, str) else default

    def count(self, name: str, most: int = MOST) -> int | None:
        """Return a whole number from 0 to `most`; None for what is none or lies outside."""
        value = self._value.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return int(value) if 0 <= value <= most else None

    def number(self, name: str) -> float | None:
        """Return a finite number; None for what is none."""
        value = self._value.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        try:
            number = float(value)
        except OverflowError:  # a whole number of more than 308 digits
            return None
        return number if math.isfinite(number) else None

    def flag(self, name: str) -> bool:
        """Return True only for true."""
        return self._value.get(name) is True

    def child(self, name: str) -> Fields:
        """Return an object; absent reads as empty."""
        value = self._value.get(name)
        return Fields(value if isinstance(value, dict) else {}, self._host)

    def children(self, name: str) -> list[Fields]:
        """Return the objects of a list."""
        value = self._value.get(name)
        return (
            [Fields(item, self._host) for item in value if isinstance(item, dict)]
            if isinstance(value, list)
            else []
        )

    def strings(self, name: str) -> list[str]:
        """Return the strings of a list."""
        value = self._value.get(name)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    def raw(self, name: str) -> object:
        """Return the value as it came."""
        return self._value.get(name)
