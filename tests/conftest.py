"""Fixtures every suite shares."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from app.core.ids import bundle
from app.models.minilm import MiniLmEmbedder
from scripts import build_model
from tests.fakes.postgres_server import PostgresServer, running_server
from tests.stores import OPENED, close_opened

# Other work on the machine slows examples down; a time limit for each would fail by chance.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test asks the hub
os.environ["OCR"] = "off"  # an engine may be installed: tests name the one that they use
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts what runs in the background deaf to Ctrl-C; each command a
    # test starts would be so too.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_SCHEMAS = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    """Build the embedded model where `make dev` did not yet; workers come later."""
    if not hasattr(config, "workerinput") and not (bundle("minilm") / "int8.graph").is_file():
        build_model.build(bundle("minilm"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of the catalog's database; `make shared-test` takes PostgreSQL."""
    parser.addoption("--catalog", choices=["sqlite", "postgresql"], default="sqlite")


@pytest.fixture(autouse=True)
def stores_of_a_test() -> Iterator[None]:
    """Close the stores that a test opened; those of its module stay."""
    before = len(OPENED)
    yield
    close_opened(but=before)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this run; it fails where the binaries are missing."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def new_database_url(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Gives out DATABASE_URL of empty catalogs; always empty with SQLite."""
    if request.config.getoption("--catalog") == "sqlite":
        return str
    server: PostgresServer = request.getfixturevalue("postgres_server")

    def make() -> str:
        schema = f"catalog_{next(_SCHEMAS)}"
        server.run(f"CREATE SCHEMA {schema}")
        return server.url(schema)

    return make


@pytest.fixture
def database_url(new_database_url: Callable[[], str]) -> str:
    """DATABASE_URL of the test's own empty catalog; empty with SQLite."""
    return new_database_url()


@pytest.fixture(scope="session")
def minilm() -> MiniLmEmbedder:
    """The embedded model as the product runs it."""
    return MiniLmEmbedder(threads=1)


@pytest.fixture(scope="session")
def exact_minilm(tmp_path_factory: pytest.TempPathFactory) -> MiniLmEmbedder:
    """The embedded model's weights, unrounded."""
    folder = tmp_path_factory.mktemp("fp32")
    build_model.build(folder, "fp32")
    return MiniLmEmbedder(folder, threads=1, precision="fp32")
