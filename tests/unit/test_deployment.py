"""Rules for what is deployed. No container engine runs here, so the files themselves are held to what can go wrong in them."""

import configparser
import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.jobs.runner import CLOSE_ALONE_S, CLOSE_S
from app.settings import Settings, names_of
from scripts.write_env_example import COMPOSE_FILES, compose

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
LAST_STAGE = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
SERVICES: dict[str, Any] = COMPOSE["services"]


def environment_of_the_image() -> dict[str, str]:
    (pairs,) = re.findall(r"^ENV (.*)$", LAST_STAGE.replace("\\\n", " "), re.MULTILINE)
    return dict(pair.split("=", 1) for pair in pairs.split())


def test_the_image_runs_as_a_plain_user_on_a_slim_base() -> None:
    assert re.search(r"^FROM python:3\.\d+-slim$", LAST_STAGE, re.MULTILINE)
    user = re.search(r"^USER (\w+)$", LAST_STAGE, re.MULTILINE)
    assert user is not None
    assert user[1] != "root"
    assert "HEALTHCHECK" in LAST_STAGE
    assert "/health/live" in LAST_STAGE


def test_the_image_installs_only_what_the_lock_names() -> None:
    installs = re.findall(r"pip install (.*)", DOCKERFILE)
    assert installs
    assert all("--no-deps" in line for line in installs)
    assert any("--require-hashes -r locks/runtime.lock" in line for line in installs)
    assert any('--require-hashes -r "locks/${extra}.lock"' in line for line in installs)


def test_the_image_can_be_built_with_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    locked = {
        extra
        for extra in project["optional-dependencies"]
        if (ROOT / f"locks/{extra}.lock").exists()
    }
    assert "ocr" in locked
    assert "COPY locks/ locks/" in DOCKERFILE


def test_the_image_has_tesseract_where_the_extra_is_ocr(tmp_path: Path) -> None:
    assert re.search(r'^ARG EXTRAS=""$', LAST_STAGE, re.MULTILINE)
    (install,) = re.findall(r"^RUN (.*apt-get.*)$", LAST_STAGE, re.MULTILINE)
    said = tmp_path / "apt-get"
    said.write_text(f"#!/bin/sh\necho $* >> {tmp_path}/said\n")
    said.chmod(0o755)
    shown = install.replace("rm -rf", "echo")
    for extras, installed in (("", False), ("bulk otel", False), ("ocr", True), ("bulk ocr", True)):
        (tmp_path / "said").unlink(missing_ok=True)
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "EXTRAS": extras}
        subprocess.run(["sh", "-ec", shown], env=env, check=True, capture_output=True)
        assert (tmp_path / "said").exists() is installed, extras
        if installed:
            assert "tesseract-ocr" in (tmp_path / "said").read_text()


def test_api_port_moves_the_published_port() -> None:
    assert SERVICES["documind"]["ports"] == ["127.0.0.1:${API_PORT:-8001}:8001"]


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


SHARED: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose/shared.yml").read_text("utf-8"))
THREE_NODES = ROOT / "deploy/compose/qdrant-three-nodes.yml"
OURS = ("api-1", "api-2", "worker-1", "worker-2", "migrate")
SECRETS = ("POSTGRES_PASSWORD", "SEARCH_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def read_by_compose(folder: Path, *files: Path, profile: str = "") -> dict[str, Any] | None:
    """Return what compose makes of files, with an .env that has the secrets; None without compose."""
    if shutil.which("docker-compose") is None:
        return None
    (folder / "env").write_text("".join(f"{name}=word-of-{name}\n" for name in SECRETS))
    names = {name.upper() for field in Settings.model_fields for name in names_of(field)}
    names |= set(SECRETS)
    read = subprocess.run(
        ["docker-compose", "--env-file", str(folder / "env"), *(part for file in files for part in ("-f", str(file))),
         *(["--profile", profile] if profile else []), "config"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
        env={name: value for name, value in os.environ.items() if name not in names},
    )  # fmt: skip
    assert read.returncode == 0, read.stderr
    found: dict[str, Any] = yaml.safe_load(read.stdout)
    return found


def test_the_shared_mode_has_two_servers_two_workers_and_three_engines() -> None:
    services = SHARED["services"]
    started = {name for name, service in services.items() if "profiles" not in service}
    assert started == {*OURS, "postgresql", "qdrant", "seaweedfs"}
    known = {one.upper() for field in Settings.model_fields for one in names_of(field)}
    for name in OURS:
        service = services[name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert service["build"]["args"]["EXTRAS"].startswith("shared")
        assert set(service["environment"]) <= known | {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert all(str(port).startswith("127.0.0.1:") for port in published)
    assert len(published) == len(set(published)) == 4
    for engine in ("postgresql", "qdrant", "seaweedfs"):
        assert "ports" not in services[engine]
        assert services[engine]["healthcheck"]["test"]
        assert re.search(r":v?\d+\.\d+", services[engine]["image"])
    mounts = [str(one) for service in services.values() for one in service.get("volumes", ())]
    named = [one.split(":")[0] for one in mounts if not one.startswith("./")]
    assert sorted(named) == sorted(SHARED["volumes"])  # none is shared
    assert all((ROOT / one.split(":")[0]).exists() for one in mounts if one.startswith("./"))


def test_a_secret_of_the_shared_mode_is_asked_for_and_never_published() -> None:
    for file in (ROOT / "deploy/compose/shared.yml", THREE_NODES):
        for line in file.read_text("utf-8").splitlines():
            name, _, value = line.strip().partition(": ")
            if re.search(r"(PASSWORD|SECRET_ACCESS_KEY|ACCESS_KEY_ID|__API_KEY)$", name):
                assert re.fullmatch(r"\$\{\w+:\?set it in \.env\}", value), line


def test_compose_reads_the_shared_files(tmp_path: Path) -> None:
    shared = ROOT / "deploy/compose/shared.yml"
    found = read_by_compose(tmp_path, shared, profile="monitoring")
    if found is None:  # the rules above hold without compose
        return
    assert {"prometheus", "grafana"} < set(found["services"])
    given = found["services"]["worker-2"]["environment"]
    password = "word-of-POSTGRES_PASSWORD"
    assert given["DATABASE_URL"] == f"postgresql://documind:{password}@postgresql/documind"
    waits = found["services"]["api-2"]["depends_on"]
    assert waits["migrate"] == {"condition": "service_completed_successfully"}
    three = read_by_compose(tmp_path, shared, THREE_NODES)
    assert three is not None
    for name in ("api-1", "api-2", "worker-1", "worker-2"):
        service = three["services"][name]
        assert service["environment"]["SEARCH_URL"].count("http://") == 3
        assert str(service["environment"]["SEARCH_REPLICAS"]) == "2"
        assert {"qdrant", "qdrant-2", "qdrant-3", "migrate"} <= set(service["depends_on"])
        assert service["environment"]["DATABASE_URL"] == given["DATABASE_URL"]
    nodes = [three["services"][name] for name in ("qdrant", "qdrant-2", "qdrant-3")]
    assert len({node["image"] for node in nodes}) == 1
    assert all("--uri" in node["command"] for node in nodes)
    keys = {node["environment"]["QDRANT__SERVICE__API_KEY"] for node in nodes}
    assert keys == {"word-of-SEARCH_API_KEY"}


def test_engines_have_limits_and_time_to_stop() -> None:
    nodes = yaml.safe_load(THREE_NODES.read_text("utf-8"))["services"]
    services = SHARED["services"]
    for one in (services["qdrant"], services["seaweedfs"], nodes["qdrant-2"], nodes["qdrant-3"]):
        assert one["deploy"]["resources"]["limits"]["memory"]
        assert one["ulimits"]["nofile"]["soft"] >= 65536
        assert one["stop_grace_period"] == "60s"
    assert services["worker-1"]["stop_grace_period"] == "60s"


def test_the_server_cannot_write_outside_its_volume() -> None:
    server = SERVICES["documind"]
    assert server["read_only"] is True
    assert server["cap_drop"] == ["ALL"]
    assert "documind-data:/var/lib/documind" in server["volumes"]
    assert "./data:/opt/documind/data:ro" in server["volumes"]
    assert "host.docker.internal:host-gateway" in server["extra_hosts"]


def test_every_setting_reaches_the_container() -> None:
    known = {name.upper() for field in Settings.model_fields for name in names_of(field)}
    reaching = set(SERVICES["documind"]["environment"]) | set(environment_of_the_image())
    assert known - {"DOCMIND_GIT_SHA"} <= reaching
    assert set(SERVICES["documind"]["environment"]) <= known
    assert not {"API_HOST", "API_PORT", "DATA_DIR"} & set(
        SERVICES["documind"]["environment"]
    )  # the image's own


@pytest.mark.parametrize("profile", ["", "ollama", "ollama-gpu", "monitoring"])
def test_compose_hands_settings_on_from_the_environment_and_from_env(
    profile: str, tmp_path: Path
) -> None:
    handed = SERVICES["documind"]["environment"]
    assert handed["OLLAMA_BASE_URL"].startswith(
        "${OLLAMA_BASE_URL:-http://ollama:11434,http://host.docker.internal"
    )
    assert (
        handed["CHUNK_SIZE"] is None
    )  # a name alone: from the environment or .env, not set where neither has it
    if shutil.which("docker-compose") is None:  # with it, as in CI, compose itself reads the file
        return
    shutil.copy(ROOT / "docker-compose.yml", tmp_path)
    handed = handed_on(profile, tmp_path)  # a fresh clone: no .env
    assert handed["OLLAMA_BASE_URL"].startswith("http://ollama:11434,")
    assert handed["CHUNK_SIZE"] is None
    (tmp_path / ".env").write_text(
        "CHUNK_SIZE=700\nHELPER_MODEL=tiny\nOLLAMA_BASE_URL=\nLLM_MODEL=\n"
    )
    handed = handed_on(profile, tmp_path, OPENAI_API_KEY="k3y")
    assert (handed["CHUNK_SIZE"], handed["HELPER_MODEL"], handed["OPENAI_API_KEY"]) == (
        "700",
        "tiny",
        "k3y",
    )
    assert handed["OLLAMA_BASE_URL"].startswith("http://ollama:11434,")
    assert handed["LLM_MODEL"] == ""  # which the server takes as not set, see test_settings


def handed_on(profile: str, folder: Path, **environment: str) -> dict[str, Any]:
    """Return the server's environment as compose itself reads it, without this machine's own settings."""
    names = {name.upper() for field in Settings.model_fields for name in names_of(field)}
    given = {name: value for name, value in os.environ.items() if name not in names} | environment
    read = subprocess.run(
        ["docker-compose", *(["--profile", profile] if profile else []), "config"],
        cwd=folder, capture_output=True, text=True, check=False, timeout=60, env=given,
    )  # fmt: skip
    assert read.returncode == 0, read.stderr
    found: dict[str, Any] = yaml.safe_load(read.stdout)["services"]["documind"]["environment"]
    return found


def test_what_compose_hands_on_is_what_the_settings_say() -> None:
    for name, given in COMPOSE_FILES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        assert compose(text, given) == text, "run: python -m scripts.write_env_example"


PROFILES = {
    "": {"documind"},
    "ollama": {"documind", "ollama", "ollama-pull"},
    "ollama-gpu": {"documind", "ollama-gpu", "ollama-gpu-pull"},
    "monitoring": {"documind", "prometheus", "grafana"},
}


def started_by(profile: str) -> set[str]:
    """The services that a profile starts, as compose decides it."""
    return {
        name
        for name, service in SERVICES.items()
        if not service.get("profiles") or profile in service["profiles"]
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_each_profile_starts_what_belongs_together(profile: str) -> None:
    started = started_by(profile)
    assert started == PROFILES[profile]
    volumes = [
        str(volume).split(":")[0]
        for name in started
        for volume in SERVICES[name].get("volumes", ())
    ]
    assert all(volume.startswith("./") or volume in COMPOSE["volumes"] for volume in volumes)
    needs = [needed for name in started for needed in SERVICES[name].get("depends_on", ())]
    assert set(needs) <= started
    program = shutil.which("docker-compose")
    if (
        program is not None
    ):  # the rules above hold without it; with it, compose itself reads the file
        shown = subprocess.run(
            [program, *(["--profile", profile] if profile else []), "config", "--services"],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert shown.returncode == 0, shown.stderr
        assert set(shown.stdout.split()) >= started


def test_models_are_pulled_once_their_host_is_healthy() -> None:
    for pull, host in (("ollama-pull", "ollama"), ("ollama-gpu-pull", "ollama-gpu")):
        assert SERVICES[pull]["depends_on"] == {host: {"condition": "service_healthy"}}
        assert SERVICES[pull]["restart"] == "no"
        assert "ollama pull ${EMBEDDING_MODEL:-nomic-embed-text}" in SERVICES[pull]["command"][0]
        assert SERVICES[host]["environment"]["OLLAMA_NO_CLOUD"] == "1"
        assert "ports" not in SERVICES[host]  # it knows no key: nobody but our services reaches it
        assert SERVICES[host]["networks"]["default"]["aliases"] == ["ollama"]
    assert SERVICES["ollama-pull"]["command"] == SERVICES["ollama-gpu-pull"]["command"]
    (device,) = SERVICES["ollama-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])
    assert "deploy" not in SERVICES["ollama"]


_OLLAMA = """#!/bin/sh
case "$1" in
  list) printf 'NAME  ID  SIZE\\n'; for name in $HAS; do printf '%s \\t0f0f  1 GB\\n' "$name"; done;;
  show) case "$2" in *embed*) echo "    embedding";; *) echo "    completion";; esac;;
  pull) echo "$2" >> "$PULLED";;
esac
"""


@pytest.mark.parametrize(
    ("has", "asked", "pulled"),
    [
        ("", "", ["nomic-embed-text", "llama3.2"]),
        ("nomic-embed-text:latest", "", ["nomic-embed-text", "llama3.2"]),
        ("nomic-embed-text:latest qwen2.5:7b", "", ["nomic-embed-text"]),
        ("qwen2.5:7b", "phi4", ["nomic-embed-text", "phi4"]),
    ],
    ids=["nothing", "only embedding models", "a chat model", "a named model"],
)
def test_the_puller_fetches_a_chat_model_where_there_is_none(
    tmp_path: Path, has: str, asked: str, pulled: list[str]
) -> None:
    program = tmp_path / "ollama"
    program.write_text(_OLLAMA, encoding="utf-8")
    program.chmod(0o755)
    script = SERVICES["ollama-pull"]["command"][0].replace("$$", "$")
    subprocess.run(
        ["/bin/sh", "-c", script],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HAS": has, "LLM_MODEL": asked,
             "PULLED": str(tmp_path / "pulled")},
        check=True, timeout=60,
    )  # fmt: skip
    assert (tmp_path / "pulled").read_text(encoding="utf-8").split() == pulled


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_no_service_has_more_power_than_it_needs(name: str) -> None:
    service = SERVICES[name]
    assert not {"privileged", "pid", "network_mode", "cap_add"} & set(service)
    assert not any("docker.sock" in str(volume) for volume in service.get("volumes", ()))
    configured = [
        str(volume) for volume in service.get("volumes", ()) if str(volume).startswith("./")
    ]
    assert all(volume.endswith(":ro") for volume in configured)


def test_image_and_compose_ask_liveness_the_same_way() -> None:
    asked = SERVICES["documind"]["healthcheck"]["test"]
    said = re.search(r"CMD (\[.*health/live.*\])", DOCKERFILE)
    assert said is not None
    assert asked == ["CMD", *json.loads(said[1])]


def test_the_image_sets_what_is_a_setting_and_keeps_its_data_in_the_volume() -> None:
    image = environment_of_the_image()
    assert re.search(rf"^VOLUME {image['DATA_DIR']}$", LAST_STAGE, re.MULTILINE)
    assert set(image) - {"PATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"} <= {
        name.upper() for name in Settings.model_fields
    }


def test_optional_services_stay_behind_profiles() -> None:
    assert {name for name, service in SERVICES.items() if "profiles" not in service} == {"documind"}


@pytest.mark.parametrize("name", ["check", "release"])
def test_actions_of_others_are_pinned_by_their_commit(name: str) -> None:
    text = (ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one) for one in used)


def test_the_forge_only_calls_make_check() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["check"]
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert [step["run"].split()[:2] for step in job["steps"] if "run" in step][-1] == [
        "make",
        "check",
    ]
    assert [step["run"] for step in workflow["jobs"]["macos"]["steps"] if "run" in step] == [
        "make test PYTHON=python3.12"
    ]
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text(encoding="utf-8"))[
        "updates"
    ]
    assert {row["package-ecosystem"] for row in updates} == {"github-actions", "pip", "npm"}


@pytest.mark.parametrize("lock", sorted(path.name for path in ROOT.glob("locks/*.lock")))
def test_locks_carry_hashes_and_no_addresses_and_no_torch(lock: str) -> None:
    text = (ROOT / "locks" / lock).read_text(encoding="utf-8")
    assert "://" not in text
    names = re.findall(r"^([a-z0-9.-]+)==", text, re.MULTILINE)
    assert "torch" not in names
    assert "sentence-transformers" not in names
    assert text.count("--hash=sha256:") >= len(names)


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = set(
        re.findall(
            r"^([a-z0-9.-]+)==",
            (ROOT / "locks/runtime.lock").read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    )
    wanted = {
        re.split(r"[<>=;\[ ]", line)[0].lower().replace("_", "-")
        for line in project["dependencies"]
    }
    overrides = (ROOT / "locks/overrides.txt").read_text(encoding="utf-8")
    left_out = set(re.findall(r"^([a-z0-9.-]+) ; python_version < \"3\"", overrides, re.MULTILINE))
    assert wanted & left_out == {"kubernetes"}  # chromadb asks for it, nothing uses it
    assert wanted - left_out <= locked


def test_every_file_that_monitoring_mounts_is_there() -> None:
    for name in ("prometheus", "grafana"):
        mounts = [str(volume).split(":")[0] for volume in SERVICES[name]["volumes"]]
        local = [ROOT / mount for mount in mounts if mount.startswith("./")]
        assert local
        assert all(path.exists() for path in local), name
    source = yaml.safe_load(
        (ROOT / "deploy/grafana/provisioning/datasources/prometheus.yml").read_text("utf-8")
    )
    assert source["datasources"][0]["url"] == "http://prometheus:9090"


def test_a_tag_releases_packages_and_image_with_sbom_and_provenance() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    jobs = workflow["jobs"]
    for name, job in jobs.items():
        assert job["permissions"]["attestations"] == "write", name
        assert any("attest-build-provenance" in step.get("uses", "") for step in job["steps"]), name
    built = [step["run"] for step in jobs["packages"]["steps"] if "run" in step]
    assert any(line.startswith("make release") for line in built)
    image = next(step["with"] for step in jobs["image"]["steps"] if step.get("id") == "push")
    assert image["sbom"] is True
    assert image["provenance"]


def test_the_service_of_systemd_starts_a_command_with_settings_that_exist() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # keys as they stand
    unit.read(ROOT / "deploy/systemd/documind.service", encoding="utf-8")
    service = unit["Service"]
    assert service["ExecStart"].split()[-2:] == ["/opt/documind/.venv/bin/documind", "serve"]
    named = {pair.split("=")[0] for pair in service["Environment"].split()}
    assert named <= {name.upper() for name in Settings.model_fields}
    assert int(service["TimeoutStopSec"]) >= 60


def test_a_pod_is_given_longer_to_stop_than_jobs_are_waited_for() -> None:
    for role in ("worker", "api"):
        chart = ROOT / f"deploy/helm/documind/templates/{role}.yaml"
        grace = re.search(r"terminationGracePeriodSeconds: (\d+)", chart.read_text("utf-8"))
        assert grace is not None
        assert CLOSE_ALONE_S < CLOSE_S <= int(grace[1]) - 10
