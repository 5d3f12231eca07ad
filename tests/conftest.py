"""Fixtures every suite shares."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from app.providers.minilm import MiniLmEmbedder

# Other work on the machine slows examples down; a time limit for each would fail by chance.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test asks the hub
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts what runs in the background deaf to Ctrl-C; each command a
    # test starts would be so too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def model_cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One place for built model graphs, so that a test run builds each once."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def minilm(model_cache_dir: Path) -> MiniLmEmbedder:
    """The embedded model as the product runs it."""
    return MiniLmEmbedder(model_cache_dir, threads=1)
