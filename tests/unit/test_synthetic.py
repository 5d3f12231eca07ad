import io
from collections import Counter
from pathlib import Path

from app.ingest.parsers.wikitext import parse_wikitext
from app.ingest.sources.dumps import XmlDump
from scripts.generate_production_corpus import SyntheticEncyclopedia, SyntheticOptions, write_xml

SMALL = SyntheticOptions(articles=120, vocabulary=2000, mean_words=120)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    def text(options: SyntheticOptions) -> str:
        file = io.StringIO()
        write_xml(SyntheticEncyclopedia(options), file)
        return file.getvalue()

    assert text(SMALL) == text(SMALL)
    assert text(SMALL) != text(
        SyntheticOptions(articles=120, vocabulary=2000, mean_words=120, seed=8)
    )


def test_what_is_written_reads_back_as_the_same_articles(tmp_path: Path) -> None:
    path = tmp_path / "s.xml"
    with path.open("w", encoding="utf-8") as file:
        assert write_xml(SyntheticEncyclopedia(SMALL), file) == 120
    assert list(XmlDump(path)) == list(SyntheticEncyclopedia(SMALL))


def test_titles_are_distinct_and_words_follow_a_long_tail() -> None:
    articles = list(SyntheticEncyclopedia(SMALL))
    assert len({article.title for article in articles}) == len(articles)
    assert 0 < sum(article.redirect_to is not None for article in articles) < 40
    words = Counter(
        word
        for article in articles
        for word in parse_wikitext(article.source, "").text.lower().split()
    )
    common = [count for _, count in words.most_common()]
    assert common[0] > 10 * common[200]


def test_a_newer_dump_changes_and_drops_the_asked_share() -> None:
    old = {a.key: a.revision for a in SyntheticEncyclopedia(SMALL)}
    newer = SyntheticOptions(
        articles=120,
        vocabulary=2000,
        mean_words=120,
        revision=2,
        changed_share=0.2,
        deleted_share=0.1,
    )
    new = {a.key: a.revision for a in SyntheticEncyclopedia(newer)}
    assert 0 < len(old.keys() - new.keys()) < 30
    assert 5 < sum(new[key] != old[key] for key in new) < 50


def test_no_markup_is_left_in_the_text() -> None:
    for article in SyntheticEncyclopedia(SMALL):
        if article.redirect_to is None:
            parsed = parse_wikitext(article.source, article.title)
            assert not parsed.warnings
            assert not any(
                mark in parsed.text for mark in ("[[", "]]", "{{", "}}", "{|", "<ref", "''", "==")
            )
