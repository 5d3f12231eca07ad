"""Engines by name: what `documind doctor`, /health/ready, /metrics and `documind migrate` know of them.

PostgreSQL is real; Qdrant and S3 are doubles.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast
from urllib.request import urlopen

import boto3
import pytest
from moto.server import ThreadedMotoServer

from app.cli import doctor
from app.cli.doctor import Diagnosis
from app.settings import Settings
from app.storage.catalog.schema import SCHEMA_VERSION
from app.storage.files.durable import Steps
from app.storage.opening import open_database
from evaluation.lib.served import Served
from tests.fakes.postgres_server import PASSWORD, PostgresServer, running_server
from tests.fakes.qdrant_double import VERSION
from tests.shared.engines import DoubleProcess

ROOT = Path(__file__).resolve().parents[2]
AWAY = "http://127.0.0.1:9"


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A database server that the test may stop."""
    with running_server() as server:
        yield server


@pytest.fixture
def qdrant(tmp_path: Path) -> Iterator[DoubleProcess]:
    double = DoubleProcess(tmp_path / "engine")
    double.start()
    yield double
    double.kill()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadedMotoServer]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    make_bucket(server)
    yield server
    server.stop()


def endpoint(server: ThreadedMotoServer) -> str:
    host, port = server.get_host_and_port()
    return f"http://{host}:{port}"


def make_bucket(server: ThreadedMotoServer) -> None:
    client = boto3.client("s3", endpoint_url=endpoint(server), region_name="us-east-1")
    client.create_bucket(Bucket="documind")


def asked(tmp_path: Path, **values: object) -> Sequence[Diagnosis]:
    settings = Settings(_env_file=None, data_dir=tmp_path / "data", **values)  # type: ignore[arg-type]
    return list(doctor.engines(settings))


def test_doctor_names_each_engine_with_its_address_and_version(
    tmp_path: Path,
    postgres_server: PostgresServer,
    qdrant: DoubleProcess,
    store: ThreadedMotoServer,
) -> None:
    found = asked(
        tmp_path,
        database_url=postgres_server.url(),
        search_url=qdrant.url,
        originals_url=f"s3://documind/originals?endpoint={endpoint(store)}",
    )
    assert [(one.what, one.state) for one in found] == [
        ("PostgreSQL", "ok"),
        ("Qdrant", "ok"),
        ("copies in Qdrant", "ok"),
        ("state of Qdrant", "ok"),
        ("object store", "ok"),
    ]
    database, search, copies, epochs, originals = (one.detail for one in found)
    assert epochs == "every collection was written for this state of the catalog"
    assert copies == "SEARCH_REPLICAS=1 in a cluster of 1 node: no node may be away"
    version = postgres_server.run("SHOW server_version")
    assert database.endswith(f":{postgres_server.port}/postgres, PostgreSQL {version}")
    assert search == f"{qdrant.url}, Qdrant {VERSION}"
    assert f"s3://documind/originals at {endpoint(store)}" in originals
    assert PASSWORD not in str(found)


def test_doctor_says_of_each_engine_that_is_away_what_to_do(tmp_path: Path) -> None:
    found = asked(
        tmp_path,
        database_url="postgresql://a:b-word@127.0.0.1:9/c",
        search_url=AWAY,
        originals_url=f"s3://documind?endpoint={AWAY}",
    )
    assert [one.state for one in found] == ["problem"] * 3
    for one, setting in zip(found, ("DATABASE_URL", "SEARCH_URL", "ORIGINALS_URL"), strict=True):
        assert "127.0.0.1:9" in one.detail
        assert setting in one.detail
        assert f"start {'the object store' if one.what == 'object store' else one.what}" in one.cure
        assert setting in one.cure
    assert "b-word" not in str(found)


def test_doctor_asks_each_node_and_tells_a_missing_bucket_or_setting(
    tmp_path: Path, qdrant: DoubleProcess, store: ThreadedMotoServer
) -> None:
    nodes, dead = f"{qdrant.url},{AWAY}", "postgresql://a:b@127.0.0.1:9/c"
    _, there, away, copies = asked(tmp_path, search_url=nodes, database_url=dead)
    assert (there.state, away.state, copies.state) == ("ok", "problem", "ok")
    assert AWAY in away.detail
    (missing,) = asked(tmp_path, originals_url=f"s3://no-such-bucket?endpoint={endpoint(store)}")
    assert missing.state == "problem"
    assert "no-such-bucket" in missing.detail
    (alone,) = asked(tmp_path, search_url=nodes)
    assert (alone.state, alone.cure) == ("problem", "set DATABASE_URL and SEARCH_URL, or neither")


def test_a_server_names_each_engine_that_goes_away_and_counts_its_calls(
    tmp_path: Path, own_server: PostgresServer, qdrant: DoubleProcess, store: ThreadedMotoServer
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    settings = {
        "DATABASE_URL": own_server.url(),
        "SEARCH_URL": f"{qdrant.url},{AWAY}",
        "ORIGINALS_URL": f"s3://documind/originals?endpoint={endpoint(store)}",
        "AWS_REGION": "us-east-1",
    }
    with Served(data, **settings) as server:
        whole = {"status": "ready", "missing": [], "detail": ""}
        degraded = [f"search engine {AWAY} does not answer"]
        assert server.client.ready() == whole | {"degraded": degraded}
        before = counts(server)
        assert set(before) == {"database", "search", "originals"}
        assert all(one > 0 for one in before.values())

        store.stop()
        address, _, said = _degraded(server)[1].partition(" at ")
        assert address == "object store s3://documind/originals"
        assert said.endswith("does not answer")

        qdrant.kill()
        ready = server.client.ready()
        assert (ready["status"], ready["missing"]) == ("failed", [f"search engine {qdrant.url}"])
        assert str(ready["detail"]).endswith("does not answer; the server goes on when it is back")
        own_server.stop(kill=True)
        ready = server.client.ready()
        assert [str(name).rpartition(" ")[0] for name in ready["missing"]] == [
            "database",
            "search engine",
        ]
        assert "do not answer; the server goes on when they are back" in str(ready["detail"])
        assert "DATA_DIR" not in str(ready["detail"])
        assert PASSWORD not in str(ready)

        own_server.start()
        qdrant.start()
        again = ThreadedMotoServer(ip_address="127.0.0.1", port=store.get_host_and_port()[1])
        again.start()
        make_bucket(again)
        while server.client.ready()["status"] != "ready":
            time.sleep(0.1)
        assert counts(server, "failures")["database"] > 0
        assert counts(server, "failures")["search"] > 0
        again.stop()


def counts(server: Served, what: str = "calls") -> dict[str, float]:
    """Return what a server counted, by engine."""
    found = {}
    with urlopen(f"{server.url}/metrics") as reply:
        lines = reply.read().decode().splitlines()
    for line in lines:
        if line.startswith(f"documind_engine_{what}_total{{"):
            name, value = line.split()
            found[name.partition('engine="')[2].partition('"')[0]] = float(value)
    return found


def migrated(data: Path, url: str) -> subprocess.CompletedProcess[str]:
    """Run `documind migrate`, which asks the database alone."""
    return subprocess.run(
        [sys.executable, "-m", "app", "migrate"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=110,
        env={**os.environ, "DATA_DIR": str(data), "DATABASE_URL": url,
             "SEARCH_URL": "http://127.0.0.1:9"},
    )  # fmt: skip


def test_migrate_makes_a_catalog_and_leaves_one_of_this_release(
    tmp_path: Path, own_server: PostgresServer
) -> None:
    first, second = (migrated(tmp_path / name, own_server.url()) for name in ("one", "two"))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert f"a new catalog, schema {SCHEMA_VERSION}" in " ".join(first.stdout.split())
    assert f"schema {SCHEMA_VERSION}, nothing to do" in " ".join(second.stdout.split())
    assert own_server.run("SELECT version_num FROM alembic_version") == SCHEMA_VERSION
    assert PASSWORD not in first.stdout + first.stderr


def test_migrate_runs_beside_servers_that_share_the_catalog(
    tmp_path: Path, own_server: PostgresServer
) -> None:
    """An upgrade of a cluster migrates while the servers of the release before still answer."""
    assert migrated(tmp_path / "one", own_server.url()).returncode == 0
    assert own_server.run("SELECT count(*) FROM jobs") == "0"
    running = open_database(tmp_path / "none", own_server.url(), Steps())
    try:
        ended = migrated(tmp_path / "two", own_server.url())
    finally:
        running.close()
    assert ended.returncode == 0, ended.stderr
    assert "nothing to do" in " ".join(ended.stdout.split())


def test_migrate_names_a_database_that_does_not_answer(tmp_path: Path) -> None:
    ended = migrated(tmp_path, f"postgresql://me:{PASSWORD}@127.0.0.1:9/library")
    assert ended.returncode == 2
    assert "DATABASE_URL" in ended.stderr
    assert "127.0.0.1:9/library" in ended.stderr
    assert PASSWORD not in ended.stdout + ended.stderr


def test_migrate_refuses_a_catalog_of_a_newer_release(
    tmp_path: Path, own_server: PostgresServer
) -> None:
    assert migrated(tmp_path, own_server.url()).returncode == 0
    own_server.run("UPDATE alembic_version SET version_num = '9999'")
    ended = migrated(tmp_path, own_server.url())
    assert ended.returncode == 1
    assert "'9999'" in ended.stderr


def _degraded(server: Served) -> list[str]:
    return [str(one) for one in cast("list[object]", server.client.ready()["degraded"])]
