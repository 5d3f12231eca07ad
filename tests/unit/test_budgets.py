"""A room over its budget, or without one, is named."""

from pathlib import Path

from scripts import budgets


def test_rooms_are_counted_and_held_to_their_lines(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "text.py").write_text("a = 1\nb = 2\n", "utf-8")
    (tmp_path / "core" / "ids.py").write_text("c = 3\n", "utf-8")
    (tmp_path / "client.py").write_text("d = 4\n", "utf-8")

    lines = budgets.rooms(tmp_path)

    assert lines == {"core": 3, "client": 1}
    assert budgets.problems(lines, {"core": 3, "client": 1}) == []
    assert budgets.problems(lines, {"core": 2}) == [
        "client: 1 lines and no budget in docs/budgets.toml",
        "core: 3 lines, 2 in docs/budgets.toml",
    ]
