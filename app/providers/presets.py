"""Hosted providers that speak OpenAI's protocol: data."""

from __future__ import annotations

from dataclasses import dataclass

HOSTED_DIGEST = "hosted:"
"""Start of a hosted embedder's digest (`hosted:provider:model`), by which a fingerprint tells
where its vectors came from."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One provider's differences from the others."""

    name: str
    """As people know it."""
    base_url: str
    env_prefix: str
    """Of its settings: PREFIX_API_KEY, PREFIX_MODEL."""
    max_tokens_field: str = "max_tokens"
    usage_on_request: bool = True
    """False where the stream carries usage unasked and refuses `stream_options`."""
    logprobs: bool = False
    embedding_model: str = ""
    """Default embedding model; empty where the provider has none."""


PRESETS: dict[str, Preset] = {
    # platform.openai.com/docs/api-reference
    "openai": Preset(
        "OpenAI",
        "https://api.openai.com/v1",
        "OPENAI",
        "max_completion_tokens",
        logprobs=True,
        embedding_model="text-embedding-3-small",
    ),
    # any server of the same protocol, at OPENAI_BASE_URL
    "openai_compatible": Preset(
        "the OpenAI-compatible server", "http://127.0.0.1:8000/v1", "OPENAI", logprobs=True
    ),
    # console.groq.com/docs/openai
    "groq": Preset("Groq", "https://api.groq.com/openai/v1", "GROQ", "max_completion_tokens"),
    # ai.google.dev/gemini-api/docs/openai
    "google": Preset(
        "Google",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GOOGLE",
        embedding_model="gemini-embedding-001",
    ),
    # docs.mistral.ai/api
    "mistral": Preset(
        "Mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL",
        usage_on_request=False,
        embedding_model="mistral-embed",
    ),
    # docs.anthropic.com/en/api/openai-sdk
    "anthropic": Preset("Anthropic", "https://api.anthropic.com/v1", "ANTHROPIC"),
}
