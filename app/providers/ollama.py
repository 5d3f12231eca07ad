"""Manage an Ollama host: version, installed and loaded models, pulls."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.core.cancel import CancelToken
from app.core.errors import ProviderBadResponse, ProviderTimeout, ProviderUnreachable
from app.providers.addresses import on_this_machine
from app.providers.http import HttpClient
from app.providers.http_reply import HttpReply
from app.providers.json_fields import MOST_TOKENS, Fields
from app.providers.ollama_errors import translate, translate_pull
from app.providers.ollama_listing import InstalledModel, LoadedModel, ModelDetails, PullProgress

LOGPROBS_SINCE = (0, 12, 11)
"""First tag that returns token log-probabilities (docs/facts/ollama.md)."""
OWN_TEMPLATES_SINCE = (0, 30, 0)
"""First tag whose llama-server reads the chat template inside the weights where the model file
has none."""
_SHORT_S = 10.0
"""Deadline of calls that load no model."""


def _digest(row: Fields) -> str:
    return row.text("digest").removeprefix("sha256:")


class OllamaHost:
    """One Ollama server: the first address that answers; thread-safe.

    No method loads a model.
    """

    def __init__(
        self, base_url: str, *, connect_timeout_s: float = 3.0, read_timeout_s: float = 300.0
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            base_url: Address; without a scheme, http. Of several, separated by commas, the first
                that answers is used.
            connect_timeout_s: Longest wait for a connection, seconds.
            read_timeout_s: Longest silence, seconds. Nothing is sent before the first token, so
                this covers loading a model.

        Raises:
            InvalidInput: The address cannot be read.
        """
        self._clients = [
            HttpClient(
                url, "Ollama", connect_timeout_s=connect_timeout_s, read_timeout_s=read_timeout_s
            )
            for url in base_url.split(",")
        ]
        self.http = self._clients[0]
        self._version: str | None = None

    @property
    def base_url(self) -> str:
        """The address in use."""
        return self.http.base_url

    @property
    def shown_url(self) -> str:
        """The address for people and pages, without credentials."""
        return self.http.shown_url

    @property
    def name(self) -> str:
        """The host with its address, for messages; without credentials."""
        return self.http.host

    @property
    def local(self) -> bool:
        """True when the address is a loopback one."""
        return on_this_machine(self.base_url)

    def version(self) -> str:
        """Return the host's version, asked once.

        Raises:
            ProviderError: The host failed.
        """
        if self._version is None:
            self._version = self._reach("/api/version").text("version", "0.0.0")
        return self._version

    def gives_logprobs(self) -> bool:
        """Return whether answers carry log-probabilities."""
        return self._since(LOGPROBS_SINCE)

    def uses_own_templates(self) -> bool:
        """Return whether the host uses a template inside the weights.

        For a model without a template in its model file.
        """
        return self._since(OWN_TEMPLATES_SINCE)

    def _since(self, release: tuple[int, int, int]) -> bool:
        numbers = tuple(int(part) for part in re.findall(r"\d+", self.version())[:3])
        return (
            numbers == (0, 0, 0) or numbers >= release
        )  # source builds say 0.0.0 and are taken as new

    def models(self, timeout_s: float = _SHORT_S) -> list[InstalledModel]:
        """Return installed models, newest first.

        Raises:
            ProviderError: The host failed.
        """
        return [
            InstalledModel(
                name=row.text("name"),
                digest=_digest(row),
                size_bytes=row.count("size") or 0,
                family=row.child("details").text("family"),
                parameters=row.child("details").text("parameter_size"),
                quantisation=row.child("details").text("quantization_level"),
                capabilities=tuple(row.strings("capabilities")),
            )
            for row in self._reach("/api/tags", timeout_s).children("models")
        ]

    def loaded(self, timeout_s: float = _SHORT_S) -> list[LoadedModel]:
        """Return models in memory.

        Raises:
            ProviderError: The host failed.
        """
        return [
            LoadedModel(
                name=row.text("name"),
                digest=_digest(row),
                size_bytes=row.count("size") or 0,
                vram_bytes=row.count("size_vram") or 0,
                context_tokens=row.count("context_length", MOST_TOKENS),
                expires_at=row.text("expires_at"),
            )
            for row in self._ask("GET", "/api/ps", timeout_s=timeout_s).children("models")
        ]

    def details(
        self, model: str, cancel: CancelToken | None = None, *, timeout_s: float = _SHORT_S
    ) -> ModelDetails:
        """Return what a model can do.

        Raises:
            ModelNotInstalled: The host does not have it.
            ProviderError: The host failed.
        """
        shown = self._ask(
            "POST", "/api/show", {"model": model}, model=model, timeout_s=timeout_s, cancel=cancel
        )
        info = shown.child("model_info")
        family = info.text("general.architecture")
        parameters = shown.text("parameters")
        configured = re.search(r"^num_ctx\s+(\d{1,8})\b", parameters, re.MULTILINE)
        return ModelDetails(
            name=model,
            capabilities=tuple(shown.strings("capabilities")),
            context_tokens=info.count(f"{family}.context_length", MOST_TOKENS),
            dimension=info.count(f"{family}.embedding_length"),
            configured_ctx=int(configured[1]) if configured else None,
            sets_repeat_penalty=re.search(r"^repeat_penalty\s", parameters, re.MULTILINE)
            is not None,
            bare_prompt=shown.text("template").strip() == "{{ .Prompt }}"
            and not shown.text("renderer"),
        )

    def pull(self, model: str, cancel: CancelToken) -> Iterator[PullProgress]:
        """Fetch a model and yield progress, last `success`.

        The next pull resumes a cancelled one.

        Raises:
            ModelNotInstalled: The registry has no such model.
            ProviderBadResponse: The stream ended without success, or said why.
            ProviderError: The host failed.
            Cancelled: The token was cancelled.
        """
        with self.http.stream(
            "POST", "/api/pull", {"model": model, "stream": True}, cancel=cancel
        ) as reply:
            if reply.status != 200:
                raise translate_pull(
                    reply.status,
                    reply.read().decode("utf-8", "replace"),
                    host=self.name,
                    model=model,
                )
            done = False
            for line in filter(None, reply.lines()):
                step = Fields.parse(line, self.name)
                if "error" in step:
                    # the first line is out before the registry is asked, so every failure comes as
                    # status 200
                    raise translate_pull(200, step.text("error"), host=self.name, model=model)
                done = step.text("status") == "success"
                yield PullProgress(
                    step.text("status"), step.count("completed"), step.count("total")
                )
            if not done:
                raise ProviderBadResponse(
                    f"{self.name} ended the pull of {model!r} early; run it again, it resumes"
                )

    def check(self, reply: HttpReply, model: str, *, embedding: bool = False) -> Fields:
        """Return the object in a reply, or raise what its status says.

        Raises:
            DocuMindError: As `ollama_errors.translate`.
        """
        if reply.status != 200:
            raise translate(
                reply.status, reply.text, host=self.name, model=model, embedding=embedding
            )
        return Fields(reply.json(self.name), self.name)

    def _reach(self, path: str, timeout_s: float = _SHORT_S) -> Fields:
        """Ask the addresses in order; keep the first that answers, else the last."""
        *others, last = self._clients
        for client in others:
            try:
                reply = client.call("GET", path, timeout_s=timeout_s)
            except (ProviderUnreachable, ProviderTimeout):
                continue
            self._use(client)
            return self.check(reply, "")
        self._use(last)
        return self.check(last.call("GET", path, timeout_s=timeout_s), "")

    def _use(self, client: HttpClient) -> None:
        if client is not self.http:
            self.http, self._version = client, None

    def _ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        model: str = "",
        timeout_s: float = _SHORT_S,
        cancel: CancelToken | None = None,
    ) -> Fields:
        return self.check(
            self.http.call(method, path, body, timeout_s=timeout_s, cancel=cancel), model
        )
