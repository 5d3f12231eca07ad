"""A name and password in an address reach the host and nobody else: no page, report, message or log."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from app.bootstrap.models import Models
from app.bootstrap.telemetry import open_spans
from app.cli import server_checks
from app.generation.options import GenerationOptions
from app.providers.addresses import without_credentials
from app.settings import Settings
from tests.fakes.collector import Collector
from tests.fakes.ollama_double import OllamaDouble

SECRET = "hunter2"


def test_an_address_without_its_credentials() -> None:
    assert without_credentials("http://me:hunter2@10.0.0.1:11434/x") == "http://10.0.0.1:11434/x"
    assert without_credentials("http://me@[::1]:11434") == "http://[::1]:11434"
    assert without_credentials("http://127.0.0.1:11434") == "http://127.0.0.1:11434"


def test_neither_health_nor_doctor_shows_the_password_of_a_model_host(tmp_path: Path) -> None:
    with OllamaDouble() as double:
        for url in (double.url, "http://127.0.0.1:9"):
            address = url.replace("://", f"://me:{SECRET}@")
            settings = Settings(
                _env_file=None, data_dir=tmp_path, ollama_base_url=address, llm_provider="ollama"
            )
            with Models(settings.providers(), GenerationOptions()) as models:
                (host,) = models.hosts()
            shown = f"{host} {list(server_checks.ollama(settings))}"
            assert host.reachable is (url == double.url)
            assert SECRET not in shown
            assert url in shown


def test_the_log_does_not_show_the_password_of_a_collector(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Collector() as collector, caplog.at_level(logging.INFO):
        settings = Settings(
            _env_file=None,
            data_dir=tmp_path,
            otel_exporter_otlp_endpoint=collector.url.replace("://", f"://me:{SECRET}@"),
        )
        with open_spans(settings, "1"):
            pass
    assert collector.url in caplog.text
    assert SECRET not in caplog.text
