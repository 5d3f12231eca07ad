"""A name and password in an address reach the host and nobody else: no page, report, message or log."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from app.bootstrap.models import Models
from app.bootstrap.services import open_spans
from app.cli import doctor
from app.cli.main import run_at_edge
from app.cli.maintenance import settings_in_force
from app.core.errors import InvalidInput
from app.core.ids import without_credentials
from app.generation.prompt.prompts import GenerationOptions
from app.models.http import parsed_address
from app.settings import Settings
from tests.fakes.collector import Collector
from tests.fakes.ollama_double import OllamaDouble

SECRET = "hunter2"


def test_an_address_without_its_credentials() -> None:
    assert without_credentials("http://me:hunter2@10.0.0.1:11434/x") == "http://10.0.0.1:11434/x"
    assert without_credentials("http://me@[::1]:11434") == "http://[::1]:11434"
    assert without_credentials("http://127.0.0.1:11434") == "http://127.0.0.1:11434"
    assert without_credentials("me:hunter2@h:6333") == "h:6333"
    assert without_credentials("http://me:hun/ter@2?#@h:1") == "http://h:1"
    for address, shown in (
        ("s3://b/p?endpoint=http://k:hunter2@h:1", "s3://b/p?endpoint=http://h:1"),
        ("s3://b/p?endpoint=http%3A%2F%2Fk%3Ahunter2%40h", "s3://b/p?endpoint=http%3A%2F%2Fh"),
        ("http://h/?api_key=hunter2&x=1", "http://h/?api_key=(hidden)&x=1"),
        ("db?sslmode=off;Password=hunter2", "db?sslmode=off;Password=(hidden)"),
    ):
        assert without_credentials(address) == shown


@pytest.mark.parametrize(
    "address",
    [
        f"ftp://usr:{SECRET}@h",
        f"http://usr:{SECRET}@",
        f"usr:{SECRET}@h:x",
        f"http://usr:{SECRET}/x@h",
        f"http://[usr:{SECRET}@h",
        f"http://usr:{SECRET}@h:99999999",
    ],
)
def test_a_wrong_address_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(InvalidInput, match="the address of the host is") as refused:
        parsed_address(address, "the host")
    assert SECRET not in f"{refused.value} {refused.value.__cause__}"


def test_config_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "ORIGINALS_URL": f"s3://b/p?endpoint=http://k:{SECRET}@h:1",
        "SEARCH_URL": f"http://q:{SECRET}@h:6333,q2:{SECRET}@h2:6333",
        "OLLAMA_BASE_URL": f"http://u:{SECRET}@127.0.0.1:8,u3:{SECRET}@127.0.0.1:7",
        "HOSTED_URL": f"u:{SECRET},x@h",
        "DATA_DIR": "/tmp/me@here",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    shown = {row["setting"]: row["value"] for row in settings_in_force()}
    assert SECRET not in str(shown)
    assert shown["ORIGINALS_URL"] == "s3://b/p?endpoint=http://h:1"
    assert shown["SEARCH_URL"] == "http://h:6333,h2:6333"
    assert shown["OLLAMA_BASE_URL"] == "http://127.0.0.1:8,127.0.0.1:7"
    assert shown["DATA_DIR"] == "/tmp/me@here"


def test_settings_that_do_not_fit_together_are_refused_without_the_keys(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("API_KEY", SECRET)
    monkeypatch.setenv("CHUNK_SIZE", "500")
    monkeypatch.setenv("CHUNK_OVERLAP", "500")
    with pytest.raises(SystemExit):
        run_at_edge(lambda: Settings(_env_file=None))
    said = capsys.readouterr().err
    assert "CHUNK_OVERLAP (500) must be less" in said
    assert SECRET not in said


def test_neither_health_nor_doctor_shows_the_password_of_a_model_host(tmp_path: Path) -> None:
    with OllamaDouble() as double:
        for url in (double.url, "http://127.0.0.1:9"):
            address = url.replace("://", f"://me:{SECRET}@")
            settings = Settings(
                _env_file=None, data_dir=tmp_path, ollama_base_url=address, llm_provider="ollama"
            )
            with Models(settings.providers(), GenerationOptions()) as models:
                (host,) = models.hosts()
            shown = f"{host} {list(doctor.ollama(settings))}"
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
