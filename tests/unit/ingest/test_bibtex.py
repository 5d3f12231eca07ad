"""What a BibTeX file knows of files."""

from __future__ import annotations

from pathlib import Path

from app.core.labels import labels_from
from app.ingest.sources.bibtex import labels_of_files
from app.ingest.sources.folders import held_by_folder

EXPORT = r"""
@string{water = "Journal of Water"}
@comment{ @article{no, title = {No}, file = {no.pdf}} }

@article{baker2021,
	title = {Rivers that carry {Silt} \& sand: caf{\'e} \"{U}bung},
	author = {Baker, Ann and {River and Sea Survey} and M{\"u}ller, Jr., Karl and Cole Dune},
	journal = water # " B",
	year = 2021,
	doi = {10.1234/silt},
	keywords = {river, silt; dams},
	abstract = {It says @article{x, title = {y}} and "quotes" {here}.},
	file = {Full Text PDF:files/12/Baker 2021.pdf:application/pdf;Odd\: one:files/13/a\;b.txt:text/plain},
}

@book(plain, title = "A {"}quoted{"} book", date = {March 1999}, file = "book.pdf")
@misc{none, title = {No file}}
@article{cut, title = {Cut off, file = {cut.pdf}
"""


def test_files_get_the_facts_of_their_entry() -> None:
    found = labels_of_files(EXPORT)
    assert list(found) == ["files/12/Baker 2021.pdf", "files/13/a;b.txt", "book.pdf"]
    paper = found["files/12/Baker 2021.pdf"]
    assert paper.title == "Rivers that carry Silt & sand: café Übung"
    assert paper.authors == ("Ann Baker", "River and Sea Survey", "Karl Müller", "Cole Dune")
    assert (paper.year, paper.tags) == (2021, ("river", "silt", "dams"))
    assert paper.metadata == {"citation key": "baker2021", "DOI": "10.1234/silt"}
    assert found["files/13/a;b.txt"] == paper
    book = found["book.pdf"]
    assert (book.title, book.year, book.authors, book.tags) == ('A "quoted" book', 1999, None, None)


def test_what_is_no_bibtex_says_nothing() -> None:
    for text in (
        "",
        "@",
        "@article{",
        "@a{b,",
        "@a{b, c = ",
        "plain text {",
        "@a{b, file = {:::}}",
    ):
        assert all(one.metadata for one in labels_of_files(text).values())
    assert labels_of_files("@a{b, c = {" + "{" * 50_000) == {}


def test_an_exported_folder_is_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    (folder / "files" / "12").mkdir(parents=True)
    (folder / "export.bib").write_text(EXPORT)
    (folder / "files" / "12" / "Baker 2021.pdf").write_bytes(b"%PDF-1.4")
    (folder / "book.pdf").write_bytes(b"%PDF-1.4 book")
    (folder / "book.pdf.meta.json").write_text('{"title": "My own title"}')
    found = held_by_folder(folder, {}).found
    assert sorted(found) == ["book.pdf", "export.bib", "files/12/Baker 2021.pdf"]
    assert labels_from(found["files/12/Baker 2021.pdf"].entry.labels).year == 2021
    book = labels_from(found["book.pdf"].entry.labels)
    assert (book.title, book.year) == ("My own title", 1999)
    (folder / "export.bib").write_bytes(b"\xff\xfe@article{")
    assert held_by_folder(folder, {}).found["files/12/Baker 2021.pdf"].entry.labels == ""
