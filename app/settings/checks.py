"""Check the configuration at start: where the server listens, and misspelt names."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from app.core.errors import ExtraMissing, InvalidInput
from app.core.hosts import is_loopback
from app.jobs.context import Lane
from app.jobs.options import LANES
from app.providers.multilingual import CURE, is_installed
from app.settings import Settings

_PREFIXES = tuple(
    "API_ CHROMA_ DATABASE_ OLLAMA_ LLM_ EMBEDDING_ EMBED_ CHUNK_ RELEVANCE_ PUBLIC_ KEYWORD_"
    " FALLBACK_ FLARE_ MEMORY_ PROMPTS_ STORE_"
    " ANSWER_ ARXIV_ SEED_SAMPLE SAMPLE TRUSTED_"
    " CORS_ EMBEDDED_ PAPERS_EMBEDDED DOCUMIND_ DOCMIND_ MAX_DENSE MAX_FILE MAX_STREAMS MAX_MODEL"
    " CROSS_ENCODER RATE_LIMIT"
    " THREAD_POOL VECTOR_ PAPERS_VECTOR SEARCH_ JOB_".split()
)
_ALIKE = 0.9
"""Similarity of a misspelt name with its setting (`difflib`, [0, 1]): one or two letters of ten."""
_FOREIGN = frozenset(
    {
        "OLLAMA_HOST",
        "OLLAMA_MODELS",
        "OLLAMA_NUM_PARALLEL",
        "OLLAMA_MAX_LOADED_MODELS",
        "OLLAMA_CONTEXT_LENGTH",
        "OLLAMA_ORIGINS",
    }
)


def check_start(settings: Settings) -> None:
    """Refuse to listen beyond this machine without a key, and a model that is not installed.

    Raises:
        InvalidInput: No API_KEY on an address that others can reach.
        ExtraMissing: EMBEDDED_MODEL without its package.
    """
    wanted = {*settings.embedded_models.values(), settings.embedding_provider}
    if "multilingual" in wanted and not is_installed():
        raise ExtraMissing(
            f"EMBEDDED_MODEL=multilingual asks for a model that is not installed; {CURE}"
        )
    if (
        not is_loopback(settings.api_host)
        and not settings.api_key
        and not settings.allow_insecure_bind
    ):
        raise InvalidInput(
            f"API_HOST {settings.api_host!r} can be reached from other machines and no API_KEY is"
            " set:"
            " set API_KEY, or ALLOW_INSECURE_BIND=true if something in front of the server asks"
            " for one"
        )


def lanes_of(text: str) -> tuple[Lane, ...]:
    """Return the lanes that a text names, with commas between them.

    Raises:
        InvalidInput: It names none, or one that does not exist.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    lanes = tuple(lane for lane in LANES if lane in names)
    if not lanes or set(names) - set(lanes):
        raise InvalidInput(f"lanes {text!r} must be some of {', '.join(LANES)}")
    return lanes


def check_work(settings: Settings) -> None:
    """Refuse a worker that has no server to work for, or nothing to do.

    Raises:
        InvalidInput: DATABASE_URL, SEARCH_URL or JOB_LANES is missing.
    """
    named = (("DATABASE_URL", settings.database_url), ("SEARCH_URL", settings.search_url))
    if missing := [name for name, value in named if not value]:
        raise InvalidInput(
            f"documind work needs {' and '.join(missing)}: it runs jobs of servers that share a"
            " database and a search engine"
        )
    if not settings.job_lanes:
        raise InvalidInput("JOB_LANES=none leaves nothing to do: name lanes, or use --lanes")


def unknown_names(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return environment names that look like ours but are no setting.

    For a warning at start.
    """
    known = (
        {name.upper() for name in Settings.model_fields}
        | _FOREIGN
        | {"DOCMIND_GIT_SHA", "DOCUMIND_CLI_URL"}
    )
    names = os.environ if environment is None else environment
    return sorted(
        name
        for name in names
        if name not in known
        and name != "API_URL"
        and (name.startswith(_PREFIXES) or _resembles(name, known))
    )


def _resembles(name: str, known: Collection[str]) -> bool:
    """Return whether a name is a setting's but for a slip of the fingers."""
    return "_" in name and bool(get_close_matches(name, known, 1, _ALIKE))
