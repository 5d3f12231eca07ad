"""Test the OpenAPI contract with generated requests, with and without a key.

All phases of schemathesis.

    python -m evaluation.campaigns.contract [--seconds S] [--examples N]

A real server, with doubles for Ollama and arXiv; examples, coverage, fuzzing and stateful links.
Nothing undeclared may come back and no 500. tests/api/test_schema.py is the short form that every
check runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from app.client import FileToSend
from evaluation.lib.reports import Line, options, write
from evaluation.lib.served import Served
from tests.fakes.arxiv_double import ArxivDouble
from tests.fakes.ollama_double import OllamaDouble

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
PHASES = "examples,coverage,fuzzing,stateful"
KEY = "k3y"
EXPECTED = """[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 503]
"""
"""A request may name a model that is not installed; 503 is documented, and the conformance of
its body is checked."""


def knock(
    url: str, key: str, seconds: int, examples: int, report: Path
) -> tuple[int, dict[str, float]]:
    """Run all phases; returns schemathesis' exit code and its counts."""
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"{url}/openapi.json", "--phases", PHASES, "--checks", CHECKS,
        "--max-examples", str(examples), "--max-time", str(seconds), "--continue-on-failure", "--no-color", "--seed", "7",
        "--report-json-path", str(report),
    ]  # fmt: skip
    command += ["-H", f"X-API-Key:{key}"] if key else []
    (report.parent / "schemathesis.toml").write_text(EXPECTED, "utf-8")
    made = subprocess.run(command, check=False, cwd=report.parent)
    found = json.loads(report.read_text("utf-8")) if report.exists() else {}
    counts: dict[str, object] = found.get("summary") or found.get("statistics") or {}
    return made.returncode, {
        name: float(value) for name, value in counts.items() if isinstance(value, int | float)
    }


def main() -> int:
    asked = options(
        __doc__, seconds=(240, "of each way"), examples=(50, "generated requests per operation")
    )
    lines: list[Line] = []
    figures: dict[str, float] = {}
    for name, server_key in (("without a key", ""), ("with a key", KEY)):
        with (
            tempfile.TemporaryDirectory(prefix="documind-contract-") as folder,
            OllamaDouble() as ollama,
            ArxivDouble() as arxiv,
        ):
            settings = {
                "OLLAMA_BASE_URL": ollama.url, "ARXIV_BASE_URL": arxiv.url,
                "API_KEY": server_key, "MAX_FILE_SIZE_MB": "1",
            }  # fmt: skip
            with Served(Path(folder) / "data", **settings) as server:
                if not server_key:
                    paper = Path(folder) / "copper.txt"
                    paper.write_text(
                        "Copper\n\nCopper is a soft red metal. Its melting point is 1085 degrees"
                        " Celsius.\n"
                    )
                    server.client.ingest([FileToSend(paper)], "papers")
                found = Path(folder) / "report.json"
                code, counts = knock(server.url, server_key, asked.seconds, asked.examples, found)
                ready = server.client.ready()["status"] == "ready"
        lines.append(Line(f"findings, {name} (exit code of schemathesis)", code))
        lines.append(Line(f"ready afterwards, {name}", float(ready), 1, at_most=False))
        figures |= {f"{count}, {name}": value for count, value in counts.items()}
    remarks = [
        f"Phases: {PHASES}. Checks: {CHECKS}. {asked.examples} examples per operation, at most"
        f" {asked.seconds} s each way."
    ]
    title = "The contract against generated requests"
    return write("contract", title, remarks, lines, figures, "make contract")


if __name__ == "__main__":
    sys.exit(main())
