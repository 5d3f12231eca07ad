"""Which provider answers and which one embeds, as things stand now.

Nothing is constructed here: the choices name providers and models, and `app.bootstrap` makes the
adapters.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from app.core.errors import DocuMindError, InvalidInput, ModelNotInstalled
from app.core.ports import Embedder
from app.core.types import Fingerprint, Library
from app.models.http import on_this_machine
from app.models.minilm import MODEL as MINILM
from app.models.minilm import WEIGHTS_SHA256
from app.models.multilingual import MODEL as MULTILINGUAL
from app.models.multilingual import WEIGHTS_SHA256 as MULTILINGUAL_SHA256
from app.models.ollama import (
    InstalledModel,
    OllamaHost,
    OllamaWatch,
    parameters_in_name,
    parameters_of,
    same_model,
)
from app.models.ollama_adapters import OllamaEmbedder
from app.models.options import (
    HOSTED_DIGEST,
    PRESETS,
    SUGGESTED_MODEL,
    HostedOptions,
    ProviderOptions,
)

_EMBEDDED: Mapping[str, str] = MappingProxyType({"minilm": MINILM, "multilingual": MULTILINGUAL})
"""Models that run in this process, by provider."""


@dataclass(frozen=True, slots=True)
class GeneratorChoice:
    """The generator; `provider` is `extractive`, `ollama` or a preset's name."""

    provider: str
    model: str = ""
    helper: str = ""
    """Model for rewriting and the like, on the same provider."""
    hosted: bool = False
    """True when passages leave the machine."""
    reason: str = ""
    """Why a model that could be expected is not used, and the cure; empty when none was
    expected."""
    once: bool = False
    """The reason stays as it is until the user acts: one answer says it, not every one."""
    why: str = field(default="", compare=False)
    """Why this model answers; without one, why none does, and the cure."""


@dataclass(frozen=True, slots=True)
class Preferences:
    """What decides among a host's chat models where the configuration names none."""

    chosen: str = ""
    """The model that the user chose; empty for none."""
    right: Callable[[str], float | None] = lambda _digest: None
    """Share of the test's questions that a model had right, by its digest; None untested."""


NO_PREFERENCES = Preferences()
MOST_PARAMETERS = 8e9
"""A larger model is not taken by itself: on a machine without a large graphics card it answers in
minutes."""
_MEMORY_SHARE = 0.8
"""A model that takes more of the memory than this leaves too little for the rest."""


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """The embedder of a library; `provider` is `minilm`, `ollama` or a preset's name."""

    provider: str
    model: str
    hosted: bool = False
    notice: str = ""
    """Set when the configuration asks for another embedder than this; says why this one it is."""


def choose_generator(
    options: ProviderOptions,
    watch: OllamaWatch,
    model: str | None = None,
    preferences: Preferences = NO_PREFERENCES,
) -> GeneratorChoice:
    """Return who answers the next question.

    `auto` takes Ollama when it answers and has the model, else quotes; it never takes a hosted
    provider. A provider chosen by name is taken even when it is away: its errors say so. Without
    LLM_MODEL, Ollama's model is the one that `automatic_model` finds.

    Raises:
        ModelNotInstalled: Ollama answers but lacks the model that was asked for by name.
        InvalidInput: A hosted provider is configured without a model.
    """
    provider = options.llm_provider
    if provider == "extractive":
        return GeneratorChoice("extractive", why="LLM_PROVIDER=extractive decides")
    if provider not in {"auto", "ollama"}:
        named = model or options.hosted.get(provider, HostedOptions()).model
        if not named:
            raise InvalidInput(f"LLM_PROVIDER={provider} needs a model; set HOSTED_MODEL")
        helper = options.helper_model or named
        why = f"LLM_PROVIDER={provider} decides"
        return GeneratorChoice(provider, named, helper, _leaves(provider, options), why=why)
    status = watch.status()
    wanted, why = model or options.llm_model, "LLM_MODEL decides"
    if not wanted:
        wanted, why = automatic_model(options, watch, preferences)
    if provider == "ollama" and model is None:
        return _on_ollama(
            wanted or preferences.chosen or SUGGESTED_MODEL, options.helper_model, why
        )
    if wanted and status.has(wanted):
        helper = options.helper_model if status.has(options.helper_model) else ""
        return _on_ollama(wanted, helper, why)
    if status.reachable and model is not None:
        raise ModelNotInstalled(f"model {model!r} is not installed; run: ollama pull {model}")
    if provider == "ollama":
        return _on_ollama(wanted, options.helper_model, why)
    if status.reachable:
        lacks = repr(wanted) if wanted else "no chat model"
        said = (
            f"Ollama {'does not have' if wanted else 'has'} {lacks}, so passages are quoted"
            f" instead; run: ollama pull {wanted or SUGGESTED_MODEL}"
        )
        return GeneratorChoice("extractive", reason=said, once=True, why=said)
    expected = model is not None or (watch.seen(wanted) if wanted else watch.had_a_chat_model)
    away = f"{status.trouble}; passages are quoted until it is back"
    return GeneratorChoice(
        "extractive",
        reason=away if expected else "",
        why=away if expected else f"{status.trouble}; start it: documind up, or: ollama serve",
    )


def automatic_model(
    options: ProviderOptions, watch: OllamaWatch, preferences: Preferences
) -> tuple[str, str]:
    """Return the model of Ollama that answers where LLM_MODEL names none, and why that one.

    Empty without a chat model. The chosen one; else the only one; else the one with the best test;
    else the largest of up to `MOST_PARAMETERS` that fits memory; else the smallest. A model that
    Ollama passes on to its cloud is taken only if it was chosen.
    """
    models = [one for one in watch.status().models if one.chats]
    for one in models:
        if preferences.chosen and same_model(one.name, preferences.chosen):
            return _plain(one.name), "it was chosen"
    lost = preferences.chosen
    gone = f"; {lost!r}, which was chosen, is not installed" if lost else ""
    here = sorted((one for one in models if not _in_cloud(one.name)), key=lambda one: one.name)
    if len(here) < 2:
        return (_plain(here[0].name), f"the only chat model{gone}") if here else ("", "")
    rated = [(share, one) for one in here if (share := preferences.right(one.digest)) is not None]
    if rated:
        share, best = max(rated, key=lambda row: row[0])
        return _plain(best.name), f"best in its test, {share:.0%} right{gone}"
    room = _MEMORY_SHARE * options.memory_bytes if watch.host.local else 0.0
    fitting = [
        one
        for one in here
        if _parameters(one) <= MOST_PARAMETERS and (not room or one.size_bytes <= room)
    ]
    if fitting:
        largest = max(fitting, key=_parameters)
        return _plain(largest.name), f"the largest chat model that this machine suits{gone}"
    return _plain(min(here, key=_parameters).name), f"the smallest chat model{gone}"


def decision_model(options: ProviderOptions, watch: OllamaWatch, named: str | None) -> str:
    """Return the decision model of Ollama that judges claims; empty without one.

    The one that is named, if it decides; where none is named, the first by name that stays on the
    host. Where LLM_PROVIDER names another host, or quotes, none.
    """
    if options.llm_provider not in {"auto", "ollama"}:
        return ""
    found = sorted(one.name for one in watch.status().models if one.decides)
    if named is not None:
        return next((name for name in found if same_model(name, named)), "")
    return next((_plain(name) for name in found if not _in_cloud(name)), "")


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
        f" to change to {wanted.model!r} ({wanted.provider}), re-embed it: documind reembed"
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
    made_with = _embedder_of(fingerprint, options)
    wanted = _configured_embedder(options, watch, library)
    if wanted.provider == made_with.provider and same_model(wanted.model, made_with.model):
        return None
    if options.embedding_provider == "auto" and (
        made_with.provider != "minilm" or wanted.provider == "minilm"
    ):
        return None
    if wanted.provider == "ollama" and not watch.status().has(wanted.model):
        return None
    return wanted


def _on_ollama(model: str, helper: str, why: str) -> GeneratorChoice:
    return GeneratorChoice(
        "ollama", model, helper or model, hosted=_in_cloud(model) or _in_cloud(helper), why=why
    )


def _plain(name: str) -> str:
    return name.removesuffix(":latest")


def _parameters(model: InstalledModel) -> float:
    """Return a model's parameters; its bytes on disk where neither host nor name says."""
    known = parameters_of(model.parameters) or parameters_in_name(model.name)
    return known or float(model.size_bytes)


def _in_cloud(model: str) -> bool:
    # Ollama passes such models on to its own servers (docs/facts/ollama.md)
    return model.endswith(("-cloud", ":cloud"))


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


def _leaves(provider: str, options: ProviderOptions) -> bool:
    base_url = options.hosted.get(provider, HostedOptions()).base_url or PRESETS[provider].base_url
    return not on_this_machine(base_url)


# Detect whether a host's embedding model equals the embedded one, and speeds.

logger = logging.getLogger(__name__)

TWIN_COSINE = 0.98
"""Every probe's cosine from which two models are one. The embedded int8 weights and their float
originals have .9939 or more on these probes, which rounding explains and other processors round
otherwise; another model has vectors of its own, near 0."""
PROBES = (
    "Rivers carry silt to the sea.",
    "A treaty was signed in Vienna in 1815.",
    "Copper melts at 1085 degrees Celsius.",
    "The lighthouse keeper lit the lamp at dusk.",
    "How do bees find their way back to the hive?",
    "Photosynthesis turns light into sugar.",
    "The committee adopted the budget by a narrow vote.",
    "Dropout reduces overfitting in neural networks.",
    "She plays the cello in the city orchestra.",
    "Interest rates rose by a quarter of a point.",
    "The patient was given antibiotics for ten days.",
    "What is the capital of Australia?",
    "def add(a, b): return a + b",
    "Der Zug nach München hat Verspätung.",
    "La biblioteca cierra a las ocho.",
    "The 100 m final was won in 9.81 s.",
    "Glaciers shape valleys over thousands of years.",
    "The contract ends on 31 March and may be renewed.",
    "Stir the onions until they are golden.",
    "Vectors of one model cannot be compared with those of another.",
)


@dataclass(frozen=True, slots=True)
class TwinComparison:
    """Two models on the probes.

    `lowest` is the smallest cosine, 0 where their dimensions differ; speeds in passages a second.
    """

    lowest: float
    embedded_per_s: float
    other_per_s: float

    @property
    def same(self) -> bool:
        """True when both give the same vectors but for rounding."""
        return self.lowest >= TWIN_COSINE

    @property
    def speeds(self) -> str:
        return (
            f"embedded {self.embedded_per_s:.0f} passages a second, on Ollama"
            f" {self.other_per_s:.0f}"
        )


def compare(embedded: Embedder, other: Embedder) -> TwinComparison:
    """Compare two models on the probes, both loaded first; only embedding is timed.

    Raises:
        ProviderError: The other's host failed.
    """
    sides = []
    for model in (embedded, other):
        model.embed_query(PROBES[0])
        began = time.perf_counter()
        rows = model.embed_passages(PROBES)
        sides.append((rows, len(PROBES) / (time.perf_counter() - began)))
    (ours, our_speed), (theirs, their_speed) = sides
    lowest = float((ours * theirs).sum(axis=1).min()) if ours.shape == theirs.shape else 0.0
    return TwinComparison(lowest, our_speed, their_speed)


class Twins:
    """Knows which host models equal the embedded one; asks once a name; thread-safe."""

    def __init__(self, host: OllamaHost, embedded: Callable[[], Embedder]) -> None:
        """Prepare; nothing is sent or loaded."""
        self._host, self._embedded = host, embedded
        self._lock = threading.Lock()
        self._known: dict[str, bool] = {}

    def __call__(self, model: str) -> bool:
        """Return whether a model gives the embedded one's vectors; False while unknown."""
        with self._lock:
            if model not in self._known:
                try:
                    embedded = self._embedded()
                    # another dimension is known without loading it
                    like = self._host.details(model).dimension == embedded.identity.dimension
                    other = OllamaEmbedder(self._host, model)
                    self._known[model] = like and compare(embedded, other).same
                except DocuMindError as error:
                    logger.info(
                        "whether %s is the embedded model is not known: %s", model, error.message
                    )
                    return False
            return self._known[model]
