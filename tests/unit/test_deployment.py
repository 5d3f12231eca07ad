"""Rules for what is deployed. No container engine runs here, so the files themselves are held to what can go wrong in them."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SERVICES: dict[str, Any] = COMPOSE["services"]


def test_the_image_runs_as_a_plain_user_on_a_slim_base() -> None:
    last_stage = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
    assert re.search(r"^FROM python:3\.\d+-slim$", last_stage, re.MULTILINE)
    user = re.search(r"^USER (\w+)$", last_stage, re.MULTILINE)
    assert user is not None
    assert user[1] != "root"
    assert "HEALTHCHECK" in last_stage
    assert "/health/live" in last_stage


def test_the_image_installs_only_what_the_lock_names() -> None:
    installs = re.findall(r"pip install (.*)", DOCKERFILE)
    assert installs
    assert all("--no-deps" in line for line in installs)
    assert any("--require-hashes -r requirements.lock" in line for line in installs)


def test_what_the_dockerfile_copies_exists() -> None:
    for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_ports_are_published_on_loopback_only(name: str) -> None:
    assert all(str(port).startswith("127.0.0.1:") for port in SERVICES[name].get("ports", ()))


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_images_are_pinned(name: str) -> None:
    image = SERVICES[name]["image"]
    assert image == "documind:latest" or re.search(r":v?\d+\.\d+", image)


def test_the_server_cannot_write_outside_its_volume() -> None:
    server = SERVICES["documind"]
    assert server["read_only"] is True
    assert server["cap_drop"] == ["ALL"]
    assert "documind-data:/var/lib/documind" in server["volumes"]
    assert "./data:/opt/documind/data:ro" in server["volumes"]
    assert "host.docker.internal:host-gateway" in server["extra_hosts"]


def test_compose_passes_only_known_settings() -> None:
    known = {name.upper() for name in Settings.model_fields}
    assert set(SERVICES["documind"]["environment"]) <= known


def test_optional_services_stay_behind_profiles() -> None:
    assert {name for name, service in SERVICES.items() if "profiles" not in service} == {"documind"}


def test_the_forge_only_calls_make_check() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["check"]
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12"]
    assert [step["run"].split()[:2] for step in job["steps"] if "run" in step][-1] == ["make", "check"]
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text(encoding="utf-8"))["updates"]
    assert {row["package-ecosystem"] for row in updates} == {"github-actions", "pip", "npm"}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_locks_carry_hashes_and_no_addresses_and_no_torch(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    names = re.findall(r"^([a-z0-9.-]+)==", text, re.MULTILINE)
    assert "torch" not in names
    assert "sentence-transformers" not in names
    assert text.count("--hash=sha256:") >= len(names)


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = set(re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE))
    wanted = {re.split(r"[<>=;\[ ]", line)[0].lower().replace("_", "-") for line in project["dependencies"]}
    assert wanted <= locked


def test_every_file_that_monitoring_mounts_is_there() -> None:
    for name in ("prometheus", "grafana"):
        mounts = [str(volume).split(":")[0] for volume in SERVICES[name]["volumes"]]
        local = [ROOT / mount for mount in mounts if mount.startswith("./")]
        assert local
        assert all(path.exists() for path in local), name
    source = yaml.safe_load((ROOT / "deploy/grafana/provisioning/datasources/prometheus.yml").read_text("utf-8"))
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
