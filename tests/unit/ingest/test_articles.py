import bz2
import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest
from libzim.writer import Creator, Hint, Item, StringProvider
from pyarrow import parquet

from app.core.errors import InvalidInput, NotFound, Unreadable
from app.core.labels import Labels
from app.core.types import Article, Library
from app.ingest.bulk import BulkTask, Positioned, parse_article, prepare
from app.ingest.options import IngestOptions
from app.ingest.sources.dumps import is_part, open_articles, source_name
from scripts.generate_production_corpus import SyntheticEncyclopedia, SyntheticOptions, write_xml

ROWS = [
    {"id": str(n), "url": f"https://w.example/{n}", "title": f"Title {n}", "text": f"Text of {n}."}
    for n in range(5)
]


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
    assert [(a.key, a.title, a.source, a.url) for a in articles] == [
        (r["id"], r["title"], r["text"], r["url"]) for r in ROWS
    ]
    assert len({a.revision for a in articles}) == len(ROWS)


def test_a_bad_row_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    bad = ['{"text": "no title"}', "", "[1]", '{"title": null, "text": "x"}', '{"title": "cut']
    lines = [json.dumps(ROWS[0]), *bad[:4], json.dumps(ROWS[1]), bad[4]]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    articles = list(open_articles(str(tmp_path / "a.jsonl")))
    assert [(a.key, a.fault) for a in articles] == [
        ("0", None),
        ("a.jsonl, row 2", "no title, first in row 2"),
        ("a.jsonl, row 4", "no JSON object, first in row 4"),
        ("a.jsonl, row 5", "no title, first in row 2"),
        ("1", None),
        ("a.jsonl, row 7", "no JSON object, first in row 4"),
    ]
    assert _prepared(articles[1]) == ("skipped", "no title, first in row 2")


def _prepared(article: Article) -> tuple[str, str]:
    task = BulkTask(Library.PUBLIC, "a", IngestOptions())
    entry = prepare(task, [article])[0].entry
    return entry.state, entry.reason


def test_a_file_without_any_article_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"name": "x"}\n{\n', encoding="utf-8")
    with pytest.raises(Unreadable, match="no title and no text"):
        list(open_articles(str(tmp_path / "a.jsonl")))
    data = gzip.compress(json.dumps(ROWS[0]).encode())
    (tmp_path / "b.jsonl.gz").write_bytes(data[:-9])
    with pytest.raises(Unreadable, match="to its end"):
        list(open_articles(str(tmp_path / "b.jsonl.gz")))


def test_a_row_of_parquet_without_a_title_is_skipped(tmp_path: Path) -> None:
    rows = [ROWS[0], {**ROWS[1], "title": None}]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    found = list(open_articles(str(tmp_path / "a.parquet")))
    assert [a.fault for a in found] == [None, "no title, first in row 2"]


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


def test_an_article_of_an_archive_has_no_furniture() -> None:
    page = """<html><head><title>Tarn</title></head><body><h1>Tarn</h1>
<div class="hatnote">For the film, see Tarn (film).</div>
<p>A town<sup class="reference"><a>[note 1]</a></sup> of weavers.</p>
<h2>History<span class="mw-editsection">[<a>edit</a>]</span></h2><p>Old.</p>
<div class="reflist"><ol class="references"><li>Gauge book.</li></ol></div>
<div class="navbox">Towns: Korvik</div><div class="printfooter">Retrieved from "x"</div>
<div>This article is issued from a wiki. The text is licensed under a licence.</div></body></html>"""
    parsed = parse_article(Article("a", "1", "Tarn", "html", page))
    assert parsed.text == "Tarn\n\nA town of weavers.\n\nHistory\n\nOld."


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


def test_sources_know_their_name_and_how_far_they_are_read(tmp_path: Path) -> None:
    dump = io.StringIO()
    write_xml(
        SyntheticEncyclopedia(SyntheticOptions(articles=30, vocabulary=100, mean_words=30)), dump
    )
    for name, written in (
        ("a-20260101.xml", dump.getvalue().encode()),
        ("b.xml.gz", gzip.compress(dump.getvalue().encode())),
    ):
        (tmp_path / name).write_bytes(written)
        assert source_name(str(tmp_path / name)) == "synthetic"
    rows = "".join(f'{{"title": "T{number}", "text": "Some text."}}\n' for number in range(30))
    (tmp_path / "wiki_en-2026-01.jsonl").write_text(rows, encoding="utf-8")
    (tmp_path / "wiki.jsonl.gz").write_bytes(gzip.compress(rows.encode()))
    assert source_name(str(tmp_path / "wiki_en-2026-01.jsonl")) == "wiki_en"
    for name in ("a-20260101.xml", "b.xml.gz", "wiki_en-2026-01.jsonl", "wiki.jsonl.gz"):
        source = open_articles(str(tmp_path / name))
        assert isinstance(source, Positioned)
        positions = [source.position() for _ in source]
        assert len(positions) == 30
        assert positions == sorted(positions)
        assert 0 < positions[-1] <= 1
        assert source.position() == 1.0


def test_a_dump_in_parts_is_one_source(tmp_path: Path) -> None:
    pages = list(
        SyntheticEncyclopedia(SyntheticOptions(articles=30, vocabulary=100, mean_words=30))
    )
    for number, options in enumerate(
        (SyntheticOptions(articles=10, vocabulary=100, mean_words=30),) * 2
    ):
        with bz2.open(
            tmp_path / f"w-articles{number}.xml-p{number}p9.bz2", "wt", encoding="utf-8"
        ) as file:
            write_xml(SyntheticEncyclopedia(options), file)
    source = open_articles(str(tmp_path))
    assert isinstance(source, Positioned)
    assert [article.key for article in source] == [page.key for page in pages[:10]] * 2
    assert source.position() == 1.0
    assert source_name(str(tmp_path)) == "synthetic"
    assert is_part("w-articles0.xml-p0p9.bz2")
    assert not is_part("w-pages-articles.xml.bz2")


def test_a_data_set_is_streamed_as_the_hub_would_be(tmp_path: Path) -> None:
    rows = [
        {
            "id": str(n),
            "url": f"https://example.org/{n}",
            "title": f"Page {n}",
            "text": f"Text {n}.",
        }
        for n in range(3)
    ]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "part.parquet")
    found = list(open_articles(f"hub:{tmp_path}"))
    assert [(article.key, article.title, article.source) for article in found] == [
        (str(n), f"Page {n}", f"Text {n}.") for n in range(3)
    ]


def test_a_data_set_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="check its name"):
        list(open_articles(f"hub:{tmp_path / 'nothing'}"))


def test_rows_give_labels(tmp_path: Path) -> None:
    row: dict[str, object] = {"title": "Tides", "text": "The Moon.", "tags": ["sea", ""]}
    row |= {"metadata": {"rating": 5, "none": None, "list": [1]}}
    (tmp_path / "a.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (article,) = open_articles(str(tmp_path / "a.jsonl"))
    assert article.labels == Labels(("sea",), {"rating": 5})
