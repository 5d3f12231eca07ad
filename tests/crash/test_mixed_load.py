"""The short form of `make bench-mixed-load`."""

from __future__ import annotations

from pathlib import Path

from evaluation.campaigns.mixed_load import trial


def test_eighty_clients_see_only_2xx_and_503_and_lose_nothing(
    tmp_path: Path, model_cache_dir: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "models").symlink_to(model_cache_dir)
    outcome, (lost, back), faults = trial(tmp_path, clients=80, seconds=6.0)
    assert outcome.odd == []
    assert (lost, back, faults) == ([], [], [])
    assert outcome.live
    assert outcome.deleted
    assert all(outcome.statuses[f"{what} 200"] for what in ("query", "list", "delete"))
