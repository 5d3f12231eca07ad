"""What a worker and a server without lanes need, said before anything starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from app.core.errors import InvalidInput
from app.settings import Settings, check_work, lanes_of

DATABASE_URL, SEARCH_URL = "postgresql://me@host/library", "http://host:6333"


def shared(**more: object) -> Settings:
    """Return the settings of the shared mode, from the environment besides."""
    update = {"database_url": DATABASE_URL, "search_url": SEARCH_URL, **more}
    return Settings().model_copy(update=update)


def test_lanes_are_named_and_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lanes_of("network, interactive") == ("interactive", "network")
    monkeypatch.setenv("JOB_LANES", "background,network")
    assert shared().jobs().lanes == ("background", "network")
    monkeypatch.setenv("JOB_LANES", "none")
    assert shared().jobs().threads == {}


@pytest.mark.parametrize("text", ["", "none", "interactive,fast"])
def test_lanes_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="interactive, background, network"):
        lanes_of(text)


def test_a_worker_needs_what_servers_share() -> None:
    with pytest.raises(InvalidInput, match="needs DATABASE_URL and SEARCH_URL"):
        check_work(Settings())
    with pytest.raises(InvalidInput, match="needs SEARCH_URL:"):
        check_work(shared(search_url=""))
    with pytest.raises(InvalidInput, match="JOB_LANES=none"):
        check_work(shared(job_lanes=()))
    check_work(shared())


def test_a_server_that_is_alone_works_in_every_lane() -> None:
    with pytest.raises(InvalidInput, match="JOB_LANES leaves jobs undone"):
        shared(job_lanes=("interactive",), search_url="").jobs()
    assert Settings().jobs().threads == {"interactive": 2, "background": 2, "network": 1}


def test_the_embedded_composition_imports_no_database_driver() -> None:
    extras = ("psycopg", "app.shared.postgres")
    code = f"import sys, app.bootstrap, app.cli.serve; print([m for m in {extras} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
