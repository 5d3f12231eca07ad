from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from app.core.errors import InvalidInput
from app.core.ids import content_sha256, document_id
from app.core.types import Library
from app.ingest.sources.folders import (
    OLD_MANIFEST_FILE,
    Manifest,
    SyncPlan,
    held_by_folder,
    plan_sync,
    visible_files,
)

PAPERS = Library.PAPERS


class SyncedLibrary:
    """Applies plans to a dictionary, as the CLI does to a library."""

    def __init__(self) -> None:
        self.live: dict[str, str] = {}
        self.claims: dict[str, tuple[Path, str]] = {}

    def upload(self, key: str, content: bytes) -> None:
        self.live[document_id(PAPERS, key)] = content_sha256(content)

    def sync(self, root: Path, *, allow_empty: bool = False) -> SyncPlan:
        manifest = Manifest(manifest_of(root), PAPERS, root)
        held = held_by_folder(root, manifest.entries)
        claimed = [
            key
            for key, (of, sha) in self.claims.items()
            if of == root and self.live.get(document_id(PAPERS, key)) == sha
        ]
        plan = plan_sync(held, PAPERS, manifest, self.live, claimed, allow_empty=allow_empty)
        for file in (*plan.add, *plan.replace):
            sha256 = content_sha256(file.raw().content)
            self.live[document_id(PAPERS, file.source_key)] = sha256
            self.claims[file.source_key] = root, sha256
        for key in plan.remove:
            del self.live[document_id(PAPERS, key)]
        manifest.record((*plan.add, *plan.replace, *plan.unchanged), plan.remove)
        manifest.save()
        return plan


def manifest_of(root: Path) -> Path:
    return root.parent / "data" / "manifest.json"


def keys(files: object) -> list[str]:
    assert isinstance(files, tuple)
    return [file.source_key for file in files]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.md").write_text("a")
    (folder / "deep" / "b.txt").write_text("b")
    return folder


def test_a_folder_is_added_then_unchanged_then_follows_its_files(root: Path) -> None:
    shelf = SyncedLibrary()
    first = shelf.sync(root)
    assert (keys(first.add), first.remove) == (["a.md", "deep/b.txt"], ())
    second = shelf.sync(root)
    assert (second.add, second.replace, second.remove, len(second.unchanged)) == ((), (), (), 2)
    (root / "a.md").write_text("a new")
    (root / "deep" / "b.txt").unlink()
    (root / "c.md").write_text("c")
    third = shelf.sync(root)
    assert (keys(third.add), keys(third.replace), third.remove) == (
        ["c.md"],
        ["a.md"],
        ("deep/b.txt",),
    )
    assert len(shelf.live) == 2


def test_uploads_and_other_folders_are_never_removed(root: Path, tmp_path: Path) -> None:
    shelf = SyncedLibrary()
    shelf.upload("uploaded.pdf", b"mine")
    other = tmp_path / "other"
    other.mkdir()
    (other / "z.md").write_text("z")
    shelf.sync(other)
    shelf.sync(root)
    assert shelf.sync(root).remove == ()
    assert len(shelf.live) == 4


def test_a_document_replaced_from_elsewhere_is_not_removed(root: Path) -> None:
    shelf = SyncedLibrary()
    shelf.sync(root)
    shelf.upload("a.md", b"a later upload under the same name")
    (root / "a.md").unlink()
    assert shelf.sync(root).remove == ()


def test_the_manifest_decides_nothing_about_removal(root: Path) -> None:
    shelf = SyncedLibrary()
    shelf.upload("uploaded.pdf", b"mine")
    shelf.sync(root)
    manifest_of(root).write_text("{broken")
    (root / "a.md").unlink()
    assert shelf.sync(root).remove == ("a.md",)
    known = {"uploaded.pdf": {"sha256": content_sha256(b"mine"), "size": 4, "mtime_ns": 1}}
    manifest_of(root).write_text(json.dumps({"version": 1, "libraries": {"papers": known}}))
    assert shelf.sync(root).remove == ()


def test_a_touched_file_is_compared_by_its_bytes_and_an_untouched_one_is_not_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = SyncedLibrary()
    shelf.sync(root)
    os.utime(root / "a.md", ns=(1, 1))
    read: list[str] = []

    def hash_and_tell(path: Path) -> str:
        read.append(path.name)
        return content_sha256(path)

    monkeypatch.setattr("app.ingest.sources.folders.content_sha256", hash_and_tell)
    assert len(shelf.sync(root).unchanged) == 2
    assert read == ["a.md"]


def test_hidden_linked_and_ignored_files_are_left_out(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("outside")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "up").symlink_to(tmp_path)
    (root / ".env").write_text("key")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("x")
    (root / "draft.tmp").write_text("x")
    (root / ".documindignore").write_text("# mine\n*.tmp\ndeep/\n")
    assert keys(SyncedLibrary().sync(root).add) == ["a.md"]
    assert list(visible_files(root)) == [root / "a.md"]


def test_a_folder_that_cannot_be_listed_keeps_its_documents(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = SyncedLibrary()
    shelf.sync(root)
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    plan = shelf.sync(root)
    assert plan.remove == ()
    assert plan.failed == (("deep", "Permission denied"),)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(InvalidInput, match="no folder"):
        held_by_folder(gone, {})


def test_a_manifest_that_cannot_be_written_says_what_that_means(root: Path) -> None:
    manifest = Manifest(manifest_of(root), PAPERS, root)
    manifest_of(root).with_suffix(".new").mkdir(parents=True)
    with pytest.raises(InvalidInput, match="writable"):
        manifest.save()


def test_an_old_manifest_in_the_folder_is_read_once_and_left_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = SyncedLibrary()
    shelf.sync(root)
    old = manifest_of(root).rename(root / OLD_MANIFEST_FILE)
    monkeypatch.setattr(
        "app.ingest.sources.folders.content_sha256", lambda path: pytest.fail(f"{path} was read")
    )
    assert len(shelf.sync(root).unchanged) == 2
    old.write_text("{broken")
    assert len(shelf.sync(root).unchanged) == 2
    assert old.read_text() == "{broken"


def test_nothing_in_a_folder_is_opened_through_a_link(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text('{"tags": ["secret"]}')
    (root / "a.md.meta.json").symlink_to(outside)
    (root / OLD_MANIFEST_FILE).symlink_to(outside)
    (root / f"{OLD_MANIFEST_FILE}.new").symlink_to(outside)
    shelf = SyncedLibrary()
    assert [file.entry.labels for file in shelf.sync(root).add] == ["", ""]
    assert len(shelf.sync(root).unchanged) == 2
    assert outside.read_text() == '{"tags": ["secret"]}'
    (root / ".documindignore").symlink_to(outside)
    with pytest.raises(InvalidInput, match="is a link"):
        shelf.sync(root)


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_folder_that_lost_most_documents_at_once_removes_none(tmp_path: Path, left: int) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    for n in range(5):
        (root / f"{n}.md").write_text(f"text {n}")
    shelf = SyncedLibrary()
    shelf.sync(root)
    for n in range(left, 5):
        (root / f"{n}.md").unlink()
    plan = shelf.sync(root)
    assert (plan.remove, len(plan.kept), len(shelf.live)) == ((), 5 - left, 5)
    plan = shelf.sync(root, allow_empty=True)
    assert (len(plan.remove), plan.kept, len(shelf.live)) == (5 - left, (), left)


def test_files_that_get_other_names_are_not_lost(root: Path) -> None:
    shelf = SyncedLibrary()
    shelf.sync(root)
    (root / "deep").rename(root / "deeper")
    (root / "a.md").rename(root / "deeper" / "a.md")
    assert shelf.sync(root).remove == ("a.md", "deep/b.txt")
    assert len(shelf.live) == 2


def test_unfinished_downloads_wait(root: Path) -> None:
    shelf = SyncedLibrary()
    shelf.sync(root)
    (root / "a.md").rename(root / "a.md.crdownload")
    (root / "deep" / "b.txt").write_text("")
    (root / "deep" / "b.txt.part").write_text("half")
    (root / "c.pdf.download").mkdir()
    (root / "c.pdf.download" / "c.pdf").write_text("half")
    plan = shelf.sync(root)
    assert (plan.add, plan.replace, plan.remove, plan.kept) == ((), (), (), ())
    waits = "its download is not finished"
    assert dict(plan.skipped) == dict.fromkeys(
        ("a.md.crdownload", "c.pdf.download", "deep/b.txt", "deep/b.txt.part"), waits
    )
    (root / "a.md.crdownload").rename(root / "a.md")
    (root / "deep" / "b.txt.part").replace(root / "deep" / "b.txt")
    assert keys(shelf.sync(root).replace) == ["deep/b.txt"]


def test_copies_of_programs_are_passed_over_unless_a_rule_takes_them_in(root: Path) -> None:
    (root / "node_modules" / "x").mkdir(parents=True)
    for name in (
        "node_modules/x/README.md", "draft.tmp", "old.bak", "notes.md~",
        "notes.sync-conflict-20240101-120000-ABCDEFG.md", "notes (Ann's conflicted copy 2024-01-01).md",
    ):  # fmt: skip
        (root / name).write_text("text")
    found = [path.relative_to(root).as_posix() for path in visible_files(root)]
    assert found == ["a.md", "deep/b.txt"]
    (root / ".documindignore").write_text("!*.bak\n")
    found = [path.relative_to(root).as_posix() for path in visible_files(root)]
    assert found == ["a.md", "old.bak", "deep/b.txt"]


def test_an_ignore_file_follows_gitignore(tmp_path: Path) -> None:
    for name in ("a/x.log", "a/keep.log", "build/y.txt", "a/build", "x.md", "b/x.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text")
    (tmp_path / ".documindignore").write_text("# mine\n*.log\n!keep.log\nbuild/\n/x.md\n")
    found = [path.relative_to(tmp_path).as_posix() for path in visible_files(tmp_path)]
    assert found == ["a/build", "a/keep.log", "b/x.md"]


def test_an_invalid_rule_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".documindignore").write_text("!\n")
    with pytest.raises(InvalidInput, match="documindignore"):
        list(visible_files(tmp_path))


def test_a_large_vault_is_followed_note_by_note(tmp_path: Path) -> None:
    root, library = tmp_path / "Garden", SyncedLibrary()
    (root / ".obsidian").mkdir(parents=True)
    names = [f"Beds/{number % 40}/Plant {number}.md" for number in range(2000)]
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        text = f"Plant {number} grows beside [[Plant {number + 1}]]. ^plant-{number}"
        (root / name).write_text(text)
    assert keys(library.sync(root).add) == sorted(names)
    again = library.sync(root)
    assert (len(again.unchanged), again.add, again.replace, again.remove) == (2000, (), (), ())

    renamed, removed, changed = names[:20], names[20:40], names[40:60]
    for name in renamed:
        (root / name).rename(root / name.replace("Plant", "Herb"))
    for name in removed:
        (root / name).unlink()
    for name in changed:
        (root / name).write_text("It was moved beside [[Plant 3]]. #moved")
    plan = library.sync(root)
    assert keys(plan.add) == sorted(name.replace("Plant", "Herb") for name in renamed)
    assert list(plan.remove) == sorted([*renamed, *removed])
    assert sorted(keys(plan.replace)) == sorted(changed)
    assert len(plan.unchanged) == 1940
    after = library.sync(root)
    assert (len(after.unchanged), after.add, after.replace, after.remove) == (1980, (), (), ())
