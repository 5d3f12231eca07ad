"""Which provider answers and which one embeds, as things stand now.

Nothing is constructed here: the choices name providers and models, and `app.bootstrap` makes the
adapters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from app.core.errors import InvalidInput, ModelNotInstalled
from app.core.types import Fingerprint, Library
from app.providers.addresses import on_this_machine
from app.providers.minilm import MODEL as MINILM
from app.providers.minilm import WEIGHTS_SHA256
from app.providers.multilingual import MODEL as MULTILINGUAL
from app.providers.multilingual import WEIGHTS_SHA256 as MULTILINGUAL_SHA256
from app.providers.ollama_listing import same_model
from app.providers.ollama_watch import OllamaStatus, OllamaWatch
from app.providers.options import HostedOptions, ProviderOptions
from app.providers.presets import HOSTED_DIGEST, PRESETS

_EMBEDDED: Mapping[str, str] = MappingProxyType({"minilm": MINILM, "multilingual": MULTILINGUAL})
"""Models that run in this process, by provider."""


@dataclass(frozen=True, slots=True)
class GeneratorChoice:
    """The generator.

    `provider` is `extractive`, `ollama`, `openai_compatible` or a preset's name.
    """

    provider: str
    model: str = ""
    helper: str = ""
    """Model for rewriting and the like, on the same provider."""
    hosted: bool = False
    """True when passages leave the machine."""
    reason: str = ""
    """Why a model that could be expected is not used, and the cure; empty when none was
    expected."""


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """The embedder of a library.

    `provider` is `minilm`, `ollama`, `openai_compatible` or a preset's name.
    """

    provider: str
    model: str
    hosted: bool = False
    notice: str = ""
    """Set when the configuration asks for another embedder than this; says why this one it is."""


def choose_generator(
    options: ProviderOptions, watch: OllamaWatch, model: str | None = None
) -> GeneratorChoice:
    """Return who answers the next question.

    `auto` takes Ollama when it answers and has the model, else quotes; it never takes a hosted
    provider. A provider chosen by name is taken even when it is away: its errors say so.

    Args:
        options: The configuration.
        watch: Whether Ollama is there.
        model: Asked for by name for one question.

    Raises:
        ModelNotInstalled: Ollama answers but lacks the model that was asked for by name.
        InvalidInput: A hosted provider is configured without a model.
    """
    if options.llm_provider == "extractive":
        return GeneratorChoice("extractive")
    if options.llm_provider not in {"auto", "ollama"}:
        chosen = model or _hosted_model(options.llm_provider, options, "MODEL")
        helper = options.helper_model or chosen
        return GeneratorChoice(
            options.llm_provider, chosen, helper, _leaves(options.llm_provider, options)
        )
    wanted = model or options.llm_model
    if options.llm_provider == "ollama" and model is None:
        return _on_ollama(wanted, options.helper_model)
    status = watch.status()
    if status.has(wanted):
        helper = options.helper_model if status.has(options.helper_model) else ""
        return _on_ollama(wanted, helper)
    if status.reachable and model is not None:
        raise ModelNotInstalled(f"model {model!r} is not installed; run: ollama pull {model}")
    if options.llm_provider == "ollama":
        return _on_ollama(wanted, options.helper_model)
    return GeneratorChoice(
        "extractive", reason=_why_not(wanted, status, watch, named=model is not None)
    )


def choose_embedder(
    options: ProviderOptions,
    watch: OllamaWatch,
    fingerprint: Fingerprint | None = None,
    library: Library | None = None,
) -> EmbedderChoice:
    """Return who embeds a library.

    An empty library (no fingerprint) gets what is configured; `auto` is Ollama when it has the
    model, else the embedded one. Otherwise the fingerprint decides, and a configuration that asks
    for something else by name only earns a notice.

    Raises:
        InvalidInput: A hosted provider is configured without a model.
    """
    if fingerprint is None:
        return _configured_embedder(options, watch, library)
    made_with = _embedder_of(fingerprint, options)
    if options.embedding_provider == "auto":
        return made_with
    wanted = _configured_embedder(options, watch, library)
    if wanted.provider == made_with.provider and same_model(wanted.model, made_with.model):
        return made_with
    notice = (
        f"the library was embedded with {made_with.model!r} ({made_with.provider}) and keeps it;"
        f" to change to {wanted.model!r}"
        f" ({wanted.provider}), re-embed it: documind reembed"
    )
    return EmbedderChoice(made_with.provider, made_with.model, made_with.hosted, notice)


def better_embedder(
    options: ProviderOptions,
    watch: OllamaWatch,
    fingerprint: Fingerprint,
    library: Library | None = None,
) -> EmbedderChoice | None:
    """Return the configured, available embedder if the library has another.

    `auto` prefers Ollama's, and the multilingual model where it is asked for, to MiniLM; any other
    embedder is the user's choice.

    Raises:
        InvalidInput: A hosted provider is configured without a model.
    """
    made_with, wanted = (
        _embedder_of(fingerprint, options),
        _configured_embedder(options, watch, library),
    )
    if wanted.provider == made_with.provider and same_model(wanted.model, made_with.model):
        return None
    if options.embedding_provider == "auto" and (
        made_with.provider != "minilm" or wanted.provider == "minilm"
    ):
        return None
    if wanted.provider == "ollama" and not watch.status().has(wanted.model):
        return None
    return wanted


def _on_ollama(model: str, helper: str) -> GeneratorChoice:
    return GeneratorChoice(
        "ollama", model, helper or model, hosted=_in_cloud(model) or _in_cloud(helper)
    )


def _in_cloud(model: str) -> bool:
    # Ollama passes such models on to its own servers (docs/facts/ollama.md)
    return model.endswith(("-cloud", ":cloud"))


def _why_not(model: str, status: OllamaStatus, watch: OllamaWatch, *, named: bool) -> str:
    if status.reachable:
        return (
            f"Ollama does not have {model!r}, so passages are quoted instead; run: ollama pull"
            f" {model}"
        )
    if named or watch.seen(model):
        return f"{status.trouble}; passages are quoted until it is back"
    return ""


def _configured_embedder(
    options: ProviderOptions, watch: OllamaWatch, library: Library | None
) -> EmbedderChoice:
    if options.embedding_provider == "auto":
        model = options.embedding_model
        if not watch.status().has(model):
            wanted = options.embedded_model.get(library, "minilm") if library else "minilm"
            return EmbedderChoice(wanted, _EMBEDDED[wanted])
        if watch.twin(model):
            notice = (
                f"Ollama's {model!r} is the embedded model, which gives the same vectors"
                " sooner, so that one embeds"
            )
            return EmbedderChoice("minilm", MINILM, notice=notice)
        return EmbedderChoice("ollama", model)
    if options.embedding_provider in _EMBEDDED:
        return EmbedderChoice(options.embedding_provider, _EMBEDDED[options.embedding_provider])
    if options.embedding_provider == "ollama":
        return EmbedderChoice("ollama", options.embedding_model, _in_cloud(options.embedding_model))
    provider = options.embedding_provider
    preset = PRESETS[provider]
    # the default of EMBEDDING_MODEL names a model of Ollama, which no hosted provider has
    model = (
        options.embedding_model
        if options.embedding_model != ProviderOptions().embedding_model
        else preset.embedding_model
    )
    if not model:
        raise InvalidInput(f"EMBEDDING_PROVIDER={provider} needs EMBEDDING_MODEL")
    return EmbedderChoice(provider, model, _leaves(provider, options))


def _embedder_of(fingerprint: Fingerprint, options: ProviderOptions) -> EmbedderChoice:
    if fingerprint.model_digest.startswith(WEIGHTS_SHA256):
        return EmbedderChoice("minilm", MINILM)
    if fingerprint.model_digest == MULTILINGUAL_SHA256:
        return EmbedderChoice("multilingual", MULTILINGUAL)
    if fingerprint.model_digest.startswith(HOSTED_DIGEST):
        provider = fingerprint.model_digest.removeprefix(HOSTED_DIGEST).partition(":")[0]
        return EmbedderChoice(provider, fingerprint.embedding_model, _leaves(provider, options))
    return EmbedderChoice(
        "ollama", fingerprint.embedding_model, _in_cloud(fingerprint.embedding_model)
    )


def _hosted_model(provider: str, options: ProviderOptions, setting: str) -> str:
    model = options.hosted.get(provider, HostedOptions()).model
    if not model:
        prefix = PRESETS[provider].env_prefix
        raise InvalidInput(f"LLM_PROVIDER={provider} needs a model; set {prefix}_{setting}")
    return model


def _leaves(provider: str, options: ProviderOptions) -> bool:
    base_url = options.hosted.get(provider, HostedOptions()).base_url or PRESETS[provider].base_url
    return not on_this_machine(base_url)
