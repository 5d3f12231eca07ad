from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from app.core.errors import InvalidInput
from app.core.ids import content_sha256, document_id
from app.core.types import Library
from app.ingest.sources.folders import MANIFEST_FILE, Manifest, SyncPlan, plan_sync, visible_files

PAPERS = Library.PAPERS


class SyncedLibrary:
    """Applies plans to a dictionary, as the CLI does to a library."""

    def __init__(self) -> None:
        self.live: dict[str, str] = {}
        self.claims: dict[str, tuple[Path, str]] = {}

    def upload(self, key: str, content: bytes) -> None:
        self.live[document_id(PAPERS, key)] = content_sha256(content)

    def sync(self, root: Path) -> SyncPlan:
        manifest = Manifest(root, PAPERS)
        claimed = [
            key
            for key, (of, sha) in self.claims.items()
            if of == root and self.live.get(document_id(PAPERS, key)) == sha
        ]
        plan = plan_sync(root, PAPERS, manifest, self.live, claimed)
        for file in (*plan.add, *plan.replace):
            sha256 = content_sha256(file.raw().content)
            self.live[document_id(PAPERS, file.source_key)] = sha256
            self.claims[file.source_key] = root, sha256
        for key in plan.remove:
            del self.live[document_id(PAPERS, key)]
        manifest.record((*plan.add, *plan.replace, *plan.unchanged), plan.remove)
        manifest.save()
        return plan


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
    (root / MANIFEST_FILE).write_text("{broken")
    (root / "a.md").unlink()
    assert shelf.sync(root).remove == ("a.md",)
    known = {"uploaded.pdf": {"sha256": content_sha256(b"mine"), "size": 4, "mtime_ns": 1}}
    (root / MANIFEST_FILE).write_text(json.dumps({"version": 1, "libraries": {"papers": known}}))
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
        plan_sync(gone, PAPERS, Manifest(gone, PAPERS), {}, ())


def test_a_folder_that_cannot_be_written_says_what_that_means(root: Path) -> None:
    manifest = Manifest(root, PAPERS)
    (root / f"{MANIFEST_FILE}.new").mkdir()
    with pytest.raises(InvalidInput, match="writable"):
        manifest.save()


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
