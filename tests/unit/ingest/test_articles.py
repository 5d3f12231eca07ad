import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from libzim.writer import Creator, Hint, Item, StringProvider
from pyarrow import parquet

from app.core.errors import InvalidInput, NotFound, Unreadable
from app.ingest.sources.articles import open_articles

ROWS = [{"id": str(n), "url": f"https://w.example/{n}", "title": f"Title {n}", "text": f"Text of {n}."} for n in range(5)]


class Page(Item):  # type: ignore[misc]  # libzim has no types
    """A ZIM entry for the test archive."""

    def __init__(self, path: str, title: str, content: str, mimetype: str = "text/html") -> None:
        super().__init__()
        self._path, self._title, self._content, self._mimetype = path, title, content, mimetype

    def get_path(self) -> str:
        return self._path

    def get_title(self) -> str:
        return self._title

    def get_mimetype(self) -> str:
        return self._mimetype

    def get_contentprovider(self) -> object:
        return StringProvider(self._content)

    def get_hints(self) -> dict[Hint, bool]:
        return {Hint.FRONT_ARTICLE: True}


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_json_lines(tmp_path: Path, name: str) -> None:
    data = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    articles = list(open_articles(str(tmp_path / name)))
    assert [(a.key, a.title, a.source, a.url) for a in articles] == [(r["id"], r["title"], r["text"], r["url"]) for r in ROWS]
    assert len({a.revision for a in articles}) == len(ROWS)


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(ROWS[0]) + "\n{\n", encoding="utf-8")
    with pytest.raises(Unreadable, match="line 2"):
        list(open_articles(str(tmp_path / "a.jsonl")))


def test_parquet_files_and_folders(tmp_path: Path) -> None:
    for n, rows in enumerate((ROWS[:2], ROWS[2:])):
        parquet.write_table(pa.Table.from_pylist(rows), tmp_path / f"part-{n}.parquet")
    assert [a.key for a in open_articles(str(tmp_path))] == ["0", "1", "2", "3", "4"]
    assert [a.key for a in open_articles(str(tmp_path / "part-1.parquet"))] == ["2", "3", "4"]


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(Unreadable, match="Parquet"):
        list(open_articles(str(tmp_path / "a.parquet")))


def test_zim_archives(tmp_path: Path) -> None:
    path = tmp_path / "w.zim"
    with Creator(path) as creator:
        creator.add_item(Page("A/One", "One", "<html><body><p>First.</p></body></html>"))
        creator.add_item(Page("style.css", "", "p {}", "text/css"))
        creator.add_redirection("A/Uno", "Uno", "A/One", {Hint.FRONT_ARTICLE: True})
    articles = {a.key: a for a in open_articles(str(path))}
    assert articles["A/One"].markup == "html"
    assert "First." in articles["A/One"].source
    assert articles["A/Uno"].redirect_to == "One"
    assert "style.css" not in articles


def test_a_folder_of_text_files(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.txt").write_text("X title\n\nBody of x.\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("Only a title", encoding="utf-8")
    assert [(a.key, a.title, a.source) for a in open_articles(str(tmp_path))] == [
        ("a.txt", "Only a title", "Only a title"),
        ("b/x.txt", "X title", "Body of x."),
    ]


def test_what_is_no_source_is_refused_with_what_would_be_one(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    with pytest.raises(InvalidInput, match=r"\.zim"):
        open_articles(str(tmp_path / "a.pdf"))
    with pytest.raises(NotFound, match="no file"):
        open_articles(str(tmp_path / "missing.xml"))
