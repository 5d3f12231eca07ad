"""The entrance of app.shared is what app.storage.opening asks for."""

from __future__ import annotations

from app.shared import entrance
from app.storage.opening import SharedMode

ENTRANCE: SharedMode = entrance
"""Types are compared where types are checked."""


def test_the_entrance_has_what_is_asked_for() -> None:
    asked = {name for name in vars(SharedMode) if not name.startswith("_")}
    assert asked
    assert not asked - set(vars(ENTRANCE))
