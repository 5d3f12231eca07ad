"""What a vault of Obsidian says of its notes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from app.core.links import obsidian_address, obsidian_block, obsidian_link
from app.core.types import Document, Library
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.sources.folders import held_by_folder
from app.ingest.sources.obsidian import neighbours, vault_at


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
            " ![[Swarm^block]] and [[Nowhere]]. `[[Code]]` and issue #12. Also"
            " [wax](../Wax%20and%20more.md#Use), not [a page](https://a.org/b.md).\n",
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
        "links": "Comb; Smoker; Bees/Queen; Swarm; Nowhere; Wax and more",
        "aliases": "Apis mellifera",
        "blocks": None,
    }
    assert told["Bees/Queen.md"]["metadata"]["links"] == "apis mellifera"  # type: ignore[index]
    comb = told["Comb.md"]["metadata"]
    assert isinstance(comb, dict)
    assert (comb["links"], comb["aliases"]) == (None, None)
    swarm = told["Bees/Swarm.md"]["metadata"]
    assert isinstance(swarm, dict)
    assert swarm["blocks"] == "block flies in may"


BLOCKS = """# Plan

The [[Dam|big dam]] costs **four hundred** [francs](https://a.org)
and more. ^cost-2024

- First the wall is built. ^wall
- Then the [[Gate]] is hung.

> Water finds its way
> through any wall.

^quote1

| a | b |
|---|---|
| 1 | 2 |
^table1

Ends with 5^2 and 10 ^12 ^000

`A ^code` is none.
"""


def test_a_passage_opens_at_its_block(tmp_path: Path) -> None:
    root = vault(tmp_path / "Garden", {"Plan.md": BLOCKS})
    metadata = labels_of(root)["Plan.md"]["metadata"]
    assert isinstance(metadata, dict)
    kept = metadata["blocks"]
    assert kept == (
        "cost-2024 the big dam costs four hundred; wall first the wall is built;"
        " quote1 water finds its way through any; table1 a b 1 2"
    )
    read = DirectParser(IngestOptions()).parse(BLOCKS.encode(), "Plan.md")
    assert "^cost" not in read.text
    assert "^quote1" not in read.text
    assert obsidian_block(kept, read.text) == "cost-2024", "the first of a passage"
    assert obsidian_block(kept, read.text[read.text.index("First the") :]) == "wall"
    assert obsidian_block(kept, read.text[read.text.index("Water finds") :]) == "quote1"
    assert obsidian_block(kept, "Nothing of it.") == ""
    assert obsidian_block(None, read.text) == ""
    link = obsidian_link(metadata["obsidian"], "Plan", "cost-2024")
    assert link == "obsidian://open?vault=Garden&file=Plan%23%5Ecost-2024"


def document(path: str, **metadata: str) -> Document:
    return Document(
        doc_id=f"id of {path}", library=Library.PAPERS, source_key=f"{path}.md", revision=1,
        sha256="", title=path, authors=(), year=None, type="markdown", state="live", characters=0,
        pages=0, chunks=0, embedded=0, duplicate_of=None, source_url=None, licence=None, added_at="",
        updated_at="", metadata=metadata,
    )  # fmt: skip


def note(path: str, vault_name: str = "Garden", **metadata: str) -> Document:
    own = document(path, obsidian=obsidian_address(vault_name, path), **metadata)
    return replace(own, doc_id=f"{own.doc_id} in {vault_name}")


def test_the_links_of_a_note_are_its_neighbours() -> None:
    notes = [
        note("Bees/Honey bee", links="Comb; apis CERANA; Bees/Queen; Nowhere; Honey bee"),
        note("Bees/Queen", links="honey bee"),
        note("Old/Queen"),
        note("Comb", links="Bees/Honey bee"),
        note("Asia/Cerana", aliases="Apis cerana; Eastern bee"),
        note("Honey bee", vault_name="Other", links="Comb"),
    ]
    titles = {one.doc_id: one.title for one in notes}

    def around(at: int) -> tuple[list[str], list[str]]:
        to, back = neighbours(notes[at], notes)
        return [titles[one.doc_id] for one in to], [titles[one.doc_id] for one in back]

    assert around(0) == (["Asia/Cerana", "Bees/Queen", "Comb"], ["Bees/Queen", "Comb"])
    assert around(1) == (["Bees/Honey bee"], ["Bees/Honey bee"])
    assert around(2) == ([], [])
    assert around(4) == ([], ["Bees/Honey bee"])
    assert neighbours(document("mine.txt"), notes) == ([], [])


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
