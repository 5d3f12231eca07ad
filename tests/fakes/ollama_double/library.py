"""What the server has: lists, details, pulls, copies, deletions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.fakes.ollama_double.models import DEFAULT_MODELS, DoubleModel, Runner, full_name
from tests.fakes.ollama_double.protocol import Refused, check_types, name_in
from tests.fakes.ollama_double.wire import PLAIN_JSON, Fields, Wire, now

NO_REGISTRY = (
    'pull model manifest: Get "https://{host}/v2/{path}/manifests/{tag}": dial tcp:'
    " lookup {host} on 127.0.0.53:53: no such host"
)


class LibraryEndpoints(Wire):
    """The models themselves."""

    def tags(self) -> Fields:
        return {"models": [self._row(model) for model in self.server.models]}

    def ps(self) -> Fields:
        return {
            "models": [self._loaded(model, runner) for model, runner in self.server.in_memory()]
        }

    def show(self, body: Fields) -> None:
        if self._faulty():
            return
        check_types(body, "ShowRequest")
        name = name_in(body, empty=Refused(400, "model is required"))
        model = self.server.find(name)
        if model is None:
            raise Refused(404, f"model '{name}' not found")
        info: Fields = {
            "general.architecture": model.family,
            f"{model.family}.context_length": model.context_length,
            f"{model.family}.embedding_length": model.dimension or 2048,
            "tokenizer.ggml.tokens": None,
        }
        shown: Fields = {
            "template": model.template,
            "details": _details(model),
            "model_info": info,
            "modified_at": now(),
        }
        lines = (
            [f"num_ctx                        {model.num_ctx}"] if model.num_ctx is not None else []
        )
        if parameters := "\n".join([*lines, *filter(None, [model.parameters])]):
            shown["parameters"] = parameters
        if model.tells_capabilities:
            shown["capabilities"] = model.capabilities
        self._json(200, shown)

    def pull(self, body: Fields) -> None:
        fault = self._fault_before_body()
        if fault is not None and fault.kind == "status":
            return
        check_types(body, "PullRequest")
        name = name_in(body, empty=Refused(400, "invalid model name"))
        lines = self._pulled(name)
        if body.get("stream") is not False:
            self._stream(iter(lines), fault)
        elif "error" in lines[-1]:
            self._error(500, str(lines[-1]["error"]), PLAIN_JSON)
        else:
            self._send(200, b'{"status":"success"}', PLAIN_JSON)

    def _pulled(self, name: str) -> list[Fields]:
        lines: list[Fields] = [{"status": "pulling manifest"}]
        host, _, path = name.rpartition("/")[0].partition("/")
        if "." in host:  # a registry of one's own, and none can be reached from here
            text = NO_REGISTRY.format(
                host=host,
                path=path or name.rpartition("/")[2],
                tag=full_name(name).rpartition(":")[2],
            )
            return [*lines, {"error": text}]
        if name.startswith("unknown"):
            return [*lines, {"error": "pull model manifest: file does not exist"}]
        blob: Fields = {
            "status": "pulling 0123456789ab",
            "digest": "sha256:0123456789ab",
            "total": 4000,
        }
        lines += [{**blob}, *({**blob, "completed": done} for done in (1000, 2500, 4000))]
        lines += [
            {"status": "verifying sha256 digest"},
            {"status": "writing manifest"},
            {"status": "success"},
        ]
        if self.server.find(name) is None:
            known = {model.name: model for model in DEFAULT_MODELS}
            self.server.models.append(known.get(full_name(name), DoubleModel(full_name(name))))
        return lines

    def copy(self, body: Fields) -> None:
        check_types(body, "CopyRequest")
        source = name_in(body, empty=Refused(400, 'source "" is invalid'), fields=("source",))
        target = name_in(
            body, empty=Refused(400, 'destination "" is invalid'), fields=("destination",)
        )
        model = self.server.find(source)
        if model is None:
            raise Refused(404, f"model '{source}' not found")
        self.server.models.insert(0, replace(model, name=full_name(target), weights=model.digest))
        self._send(200, b"", "")

    def delete(self, body: Fields) -> None:
        check_types(body, "DeleteRequest")
        name = name_in(body, empty=Refused(400, "name is required"))
        model = self.server.find(name)
        if model is None:
            raise Refused(404, f"model '{name}' not found")
        self.server.models.remove(model)
        self._send(200, b"", "")

    def _row(self, model: DoubleModel) -> Fields:
        row: Fields = {
            "name": model.name,
            "model": model.name,
            "modified_at": now(),
            "size": model.size,
            "digest": model.digest,
        }
        row["details"] = _details(model)
        if model.tells_capabilities and self.server.since(0, 30, 0):
            row["capabilities"] = list(model.listed) or model.capabilities
        return row

    def _loaded(self, model: DoubleModel, runner: Runner) -> Fields:
        until = runner.until.strftime("%Y-%m-%dT%H:%M:%S.%f123Z")
        return {
            **self._row(model),
            "expires_at": until,
            "size_vram": 0,
            "context_length": runner.window,
        }


def _details(model: DoubleModel) -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": model.family,
        "families": [model.family],
        "parameter_size": model.parameter_size,
        "quantization_level": model.quantisation,
    }
