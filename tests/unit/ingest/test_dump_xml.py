import bz2
import gzip
from pathlib import Path

import pytest

from app.core.errors import Unreadable
from app.ingest.sources.dumps import XmlDump, multistream_index, stream_offsets

HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10"'
    ' xml:lang="en"><siteinfo><sitename>W</sitename>'
    "<dbname>w</dbname><base>https://w.example/wiki/Main_Page</base><generator>g</generator><case>first-letter</case>"
    '<namespaces><namespace key="0" case="first-letter" /></namespaces></siteinfo>'
)


def page(number: int, text: str, redirect: str = "") -> str:
    target = f'<redirect title="{redirect}" />' if redirect else ""
    return (
        "<page><title>Title"
        f" {number}</title><ns>0</ns><id>{number}</id>{target}<revision><id>{number}00</id>"
        f"<timestamp>2020-01-01T00:00:00Z</timestamp><contributor><username>u</username><id>1</id></contributor>"
        "<model>wikitext</model><format>text/x-wiki</format><text"
        f" xml:space='preserve'>{text}</text><sha1 /></revision></page>"
    )


def dump() -> str:
    return (
        HEAD + page(1, "one") + page(2, "#REDIRECT", "Title 1") + page(3, "three") + "</mediawiki>"
    )


@pytest.mark.parametrize("suffix", [".xml", ".xml.bz2", ".xml.gz"])
def test_pages_come_in_order_with_their_ids(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"w{suffix}"
    data = dump().encode()
    path.write_bytes(
        {".xml": data, ".xml.bz2": bz2.compress(data), ".xml.gz": gzip.compress(data)}[suffix]
    )
    articles = list(XmlDump(path))
    assert [(a.key, a.revision, a.title, a.redirect_to) for a in articles] == [
        ("1", "100", "Title 1", None),
        ("2", "200", "Title 2", "Title 1"),
        ("3", "300", "Title 3", None),
    ]
    assert articles[0].url == "https://w.example/wiki/Title_1"
    assert articles[2].source == "three"


@pytest.mark.parametrize("workers", [1, 3])
def test_a_multistream_dump_reads_the_same_with_and_without_its_index(
    tmp_path: Path, workers: int
) -> None:
    streams = [HEAD, *(page(n, f"text {n}") for n in range(1, 40)), "</mediawiki>"]
    offsets: list[int] = []
    data = b""
    for stream in streams:
        offsets.append(len(data))
        data += bz2.compress(stream.encode())
    path = tmp_path / "w-pages-articles-multistream.xml.bz2"
    path.write_bytes(data)
    lines = "".join(f"{offset}:{n}:Title {n}\n" for n, offset in enumerate(offsets[1:-1], 1))
    index = tmp_path / "w-pages-articles-multistream-index.txt.bz2"
    index.write_bytes(bz2.compress(lines.encode()))
    assert multistream_index(path) == index
    assert stream_offsets(index) == offsets[1:-1]
    assert [a.source for a in XmlDump(path, workers=workers)] == [f"text {n}" for n in range(1, 40)]


def test_a_torn_dump_names_the_last_good_page(tmp_path: Path) -> None:
    path = tmp_path / "w.xml"
    path.write_text(dump()[:-60], encoding="utf-8")
    with pytest.raises(Unreadable, match="Title 2"):
        list(XmlDump(path))


def test_a_file_that_is_no_dump_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.xml"
    path.write_text("hello", encoding="utf-8")
    with pytest.raises(Unreadable, match="MediaWiki"):
        list(XmlDump(path))
