"""The thin command lines over bulk sources."""

import sys
from pathlib import Path

import pytest

from app.ingest.sources.dumps import FirstArticles, open_articles
from scripts import build_public_corpus, bulk_index_public, stream_wikipedia_to_txt
from scripts.generate_production_corpus import SyntheticEncyclopedia, SyntheticOptions, write_xml


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "synthetic.xml"
    with path.open("w", encoding="utf-8") as file:
        write_xml(
            SyntheticEncyclopedia(SyntheticOptions(articles=40, vocabulary=100, mean_words=30)),
            file,
        )
    return path


def test_a_dump_becomes_text_files_that_are_a_source(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", str(dump), str(tmp_path / "out"), "--articles", "20"])
    stream_wikipedia_to_txt.main()
    titles = [article.title for article in open_articles(str(tmp_path / "out"))]
    assert (
        titles
        == [article.title for article in open_articles(str(dump)) if article.redirect_to is None][
            :20
        ]
    )


def test_the_beginning_of_a_source_is_counted_in_articles(dump: Path) -> None:
    first = FirstArticles(open_articles(str(dump)), 20)
    for _ in range(2):
        found = list(first)
        assert [article.key for article in found] == [
            str(number) for number in range(1, len(found) + 1)
        ]
        assert sum(article.redirect_to is None for article in found) == 20
        assert len(found) > 20  # the redirects among them came along
        assert first.position() == 1.0


def test_everything_must_be_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in ([], ["--articles", "0"], ["--articles", "-1", "--allow-unbounded"]):
        monkeypatch.setattr(sys, "argv", ["x", *arguments])
        with pytest.raises(SystemExit):
            build_public_corpus.main()
        assert "--allow-unbounded" in capsys.readouterr().err


def test_the_command_line_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    for module in (build_public_corpus, bulk_index_public):
        monkeypatch.setattr(module, "documind", asked.append)
    monkeypatch.setattr(sys, "argv", ["x", "--articles", "9"])
    build_public_corpus.main()
    monkeypatch.setattr(sys, "argv", ["x", "--articles", "0", "--allow-unbounded"])
    build_public_corpus.main()
    monkeypatch.setattr(sys, "argv", ["x", "folder", "--workers", "2"])
    bulk_index_public.main()
    monkeypatch.setattr(sys, "argv", ["x", "folder", "--dry-run"])
    bulk_index_public.main()
    assert asked == [
        ["bulk", "index", build_public_corpus.SOURCE, "--library", "public", "--articles", "9"],
        ["bulk", "index", build_public_corpus.SOURCE, "--library", "public"],
        ["bulk", "index", "folder", "--library", "public", "--workers", "2"],
        ["bulk", "plan", "folder", "--library", "public"],
    ]
