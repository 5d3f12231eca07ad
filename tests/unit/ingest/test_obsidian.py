"""What a vault of Obsidian says of its notes."""

from __future__ import annotations

import json
from pathlib import Path

from app.core.links import obsidian_address, obsidian_link
from app.ingest.sources.folders import held_by_folder
from app.ingest.sources.obsidian import vault_at


def vault(root: Path, notes: dict[str, str]) -> Path:
    (root / ".obsidian").mkdir(parents=True)
    for name, text in notes.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def labels_of(root: Path) -> dict[str, dict[str, object]]:
    held = held_by_folder(root, {})
    return {key: json.loads(file.entry.labels or "{}") for key, file in held.found.items()}


def test_a_note_has_its_address_tags_aliases_and_links(tmp_path: Path) -> None:
    root = vault(
        tmp_path / "My Vault",
        {
            "Bees/Honey bee.md": "---\ntags: [insects, farm/bees]\naliases: [Apis mellifera]\n---\n"
            "It makes honey. #pollination See [[Comb]], [[Smoker|the smoker]], [[Bees/Queen#Age]],"
            " ![[Swarm^block]] and [[Nowhere]]. `[[Code]]` and issue #12.\n",
            "Bees/Queen.md": "# Queen\n\nLives five years, as [[apis mellifera]] does.\n",
            "Comb.md": "Wax.\n",
            "Tools/Smoker.md": "Calms bees.\n",
            "Bees/Swarm.md": "Flies in May. ^block\n",
            "Code.md": "None links here.\n",
        },
    )
    told = labels_of(root)
    bee = told["Bees/Honey bee.md"]
    assert bee["tags"] == ["insects", "farm/bees", "pollination"]
    assert bee["metadata"] == {
        "obsidian": "obsidian://open?vault=My%20Vault&file=Bees%2FHoney%20bee",
        "links": "Comb; Smoker; Queen; Swarm; Nowhere",
        "aliases": "Apis mellifera",
    }
    assert told["Bees/Queen.md"]["metadata"]["links"] == "apis mellifera"  # type: ignore[index]
    comb = told["Comb.md"]["metadata"]
    assert isinstance(comb, dict)
    assert (comb["links"], comb["aliases"]) == (None, None)


def test_templates_and_canvases_are_no_notes(tmp_path: Path) -> None:
    root = vault(tmp_path, {"Day.md": "A day.", "Forms/Day.md": "{{date}}", "Plan.canvas": "{}"})
    (root / ".obsidian" / "templates.json").write_text('{"folder": "Forms"}')
    held = held_by_folder(root, {})
    assert set(held.found) == {"Day.md"}
    assert {path for path, _ in held.skipped} == {"Forms/Day.md", "Plan.canvas"}


def test_a_folder_without_its_settings_is_no_vault(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("[[Link]] #tag")
    assert vault_at(tmp_path) is None
    assert labels_of(tmp_path) == {"note.md": {}}


def test_settings_that_cannot_be_read_leave_nothing_out(tmp_path: Path) -> None:
    root = vault(tmp_path, {"Forms/Day.md": "A day."})
    for broken in ("{", "[]", '{"folder": null}'):
        (root / ".obsidian" / "templates.json").write_text(broken)
        assert set(held_by_folder(root, {}).found) == {"Forms/Day.md"}


def test_a_note_opens_at_its_heading_and_nothing_else_is_a_link() -> None:
    address = obsidian_address("My Vault", "Bees/Honey & wax")
    assert obsidian_link(address, "") == address
    assert obsidian_link(address, "In May?") == f"{address}%23In%20May%3F"
    for other in (
        None,
        4,
        "obsidian://new?vault=a&file=b",
        f"{address}&x=y",
        "javascript:alert(1)",
    ):
        assert obsidian_link(other, "x") is None
