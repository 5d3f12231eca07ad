"""Models and the bulk account."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from app.api.schemas.base import Reply, Request


class InstalledModel(Reply):
    """A model on Ollama's disk."""

    name: str
    size_bytes: int | None


class ModelList(Reply):
    """Models of the Ollama host, and what is in use."""

    installed: list[InstalledModel]
    loaded: list[str] = Field(description="in memory now")
    in_use: dict[str, str] = Field(description="answers, helper, embeds -> provider:model")
    fit: bool | None = Field(description="whether the answering and the embedding model stay in memory together; null: unknown")


class PullRequest(Request):
    """Which model."""

    model: Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]*$")]
