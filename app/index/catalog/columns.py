"""Share what every table of the catalog is declared with."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, MetaData
from sqlalchemy import Text as AnyText
from sqlalchemy.types import TypeEngine

metadata = MetaData()

Big = BigInteger().with_variant(Integer(), "sqlite")
"""64 bits everywhere; SQLite's INTEGER is that wide already, and only it can be a rowid."""


Text = AnyText().with_variant(AnyText(collation="C"), "postgresql")
"""Text that sorts and compares by code points everywhere, as SQLite does."""


def required(kind: type[TypeEngine[Any]] | TypeEngine[Any], *names: str) -> list[Column[Any]]:
    """Return columns of one type that hold no NULL."""
    return [Column(name, kind, nullable=False) for name in names]
