"""Define what an Ollama host tells of its models: installed, loaded, details."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """One row of the host's list. `digest` is hex, `size_bytes` on disk."""

    name: str
    digest: str
    size_bytes: int
    family: str
    parameters: str
    quantisation: str
    capabilities: tuple[str, ...]
    """Empty where the host says them only of a single model (before 0.30), or not at all."""

    @property
    def chats(self) -> bool:
        """True for a model that writes; by family and name where the host does not say."""
        if self.capabilities:
            return "completion" in self.capabilities
        return "bert" not in self.family.lower() and "embed" not in self.name.lower()


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory.

    `context_tokens` is what was allocated; `vram_bytes` below `size_bytes` means partly on the CPU.
    """

    name: str
    """The name that loaded it; a model can have several."""
    digest: str
    size_bytes: int
    vram_bytes: int
    context_tokens: int | None
    expires_at: str


@dataclass(frozen=True, slots=True)
class ModelDetails:
    """A model's abilities; None or empty where an old host does not say."""

    name: str
    capabilities: tuple[str, ...]
    context_tokens: int | None
    dimension: int | None
    configured_ctx: int | None
    """`num_ctx` of the model file."""
    sets_repeat_penalty: bool = False
    """The model file sets `repeat_penalty`."""
    bare_prompt: bool = False
    """The model file hands over bare text, without turns of a chat."""

    @property
    def embeds(self) -> bool:
        """False only when the host says that the model is no embedding model."""
        return not self.capabilities or "embedding" in self.capabilities


@dataclass(frozen=True, slots=True)
class PullProgress:
    """One step of a pull; bytes of the blob in work, where there is one."""

    status: str
    completed: int | None = None
    total: int | None = None


def same_model(left: str, right: str) -> bool:
    """Return whether two names mean one model, ignoring case and tag `latest`."""
    return _canonical(left) == _canonical(right)


def _canonical(name: str) -> str:
    lowered = name.lower()
    return lowered if ":" in lowered.rpartition("/")[2] else f"{lowered}:latest"
