"""`documind plan` reads sizes as people write them and says what it allows."""

from __future__ import annotations

import json

import pytest

from app.cli.main import main
from app.cli.plan import count_of


@pytest.mark.parametrize(
    ("written", "count"),
    [("1e9", 10**9), ("25M", 25_000_000), ("2.5m", 2_500_000), ("100,000", 100_000), ("1B", 10**9),
     ("1e12", 10**12), ("1", 1)],
)  # fmt: skip
def test_sizes_as_people_write_them(written: str, count: int) -> None:
    assert count_of(written) == count


@pytest.mark.parametrize("written", ["0", "-5", "many", "1e13", "", "nan", "1e99", "5X", "1e9e"])
def test_what_is_no_size_ends_with_2(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", f"--chunks={written}"])
    assert ended.value.code == 2
    assert "1 to" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--dimension=0", "--replicas=17", "--machines=0"])
def test_other_numbers_have_limits(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--chunks=1e6", option])
    assert ended.value.code == 2
    assert "or equal to" in capsys.readouterr().err


def test_json_holds_each_figure_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--chunks", "25M", "--json"])
    assert not ended.value.code
    found = json.loads(capsys.readouterr().out)
    assert found["chunks"] == 25_000_000
    assert all(row["source"] for row in found["figures"])
    assert {row["mode"] for row in found["figures"]} == {"both", "embedded", "shared"}
