import json
from pathlib import Path

import pytest

from app.core.errors import NotFound
from app.core.types import Library
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.sources.folders import INVENTED, SampleDocuments, bundled


def test_there_are_enough_samples_of_every_kind() -> None:
    public = list(SampleDocuments(Library.PUBLIC, bundled()))
    papers = list(SampleDocuments(Library.PAPERS, bundled()))
    assert len(public) >= 40
    assert len(papers) >= 6
    assert {Path(document.filename).suffix for document in papers} == {".pdf", ".docx", ".md"}
    ids = [document.doc_id or "" for document in public + papers]
    assert len(set(ids)) == len(ids)
    assert all(name.startswith("sample_") for name in ids)


def test_the_questions_name_samples_that_hold_their_answers() -> None:
    texts = {
        f"sample_{path.stem}": " ".join(path.read_text(encoding="utf-8").split())
        for path in bundled().glob("public/*.txt")
    }
    texts |= {
        f"sample_{path.stem}": " ".join(path.read_text(encoding="utf-8").split())
        for path in bundled().glob("sources/*.md")
    }
    rows = [
        json.loads(line)
        for line in (bundled() / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert len(rows) >= 50
    for row in rows:
        assert set(row) == {
            "question",
            "library",
            "intent",
            "expected_substrings",
            "keywords",
            "expected_docs",
            "oos",
        }
        for name in row["expected_docs"]:
            assert all(part in texts[name] for part in row["expected_substrings"]), row
    assert any(row["oos"] for row in rows)


def test_missing_samples_say_where_they_should_be(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="sample documents"):
        list(SampleDocuments(Library.PUBLIC, tmp_path))


def test_papers_say_that_they_are_invented_on_their_first_page_and_in_their_metadata() -> None:
    parser = DirectParser(IngestOptions())
    for raw in SampleDocuments(Library.PAPERS, bundled()):
        assert isinstance(raw.content, Path)
        parsed = parser.parse(raw.content, raw.filename)
        first = parsed.pages[0].end if parsed.pages else 600
        assert INVENTED in parsed.text[:first].replace("\n", " "), raw.filename
        assert INVENTED in str(raw.licence)
    assert all(
        INVENTED not in str(raw.licence) for raw in SampleDocuments(Library.PUBLIC, bundled())
    )
