"""What an export of Zotero as RDF with files knows of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.errors import InvalidInput
from app.core.labels import labels_from
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.sources.folders import held_by_folder
from app.ingest.sources.zotero_rdf import labels_in_rdf

HEAD = """<rdf:RDF
 xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:z="http://www.zotero.org/namespaces/export#"
 xmlns:dcterms="http://purl.org/dc/terms/"
 xmlns:bib="http://purl.org/net/biblio#"
 xmlns:foaf="http://xmlns.com/foaf/0.1/"
 xmlns:link="http://purl.org/rss/1.0/modules/link/"
 xmlns:dc="http://purl.org/dc/elements/1.1/">
"""
EXPORT = (
    HEAD
    + """
    <bib:Article rdf:about="https://example.org/silt">
        <z:itemType>journalArticle</z:itemType>
        <dcterms:isPartOf>
           <bib:Journal>
               <dc:title>Journal of Water</dc:title>
               <dc:identifier>DOI 10.1234/silt</dc:identifier>
               <dc:identifier>ISSN 1234-5678</dc:identifier>
           </bib:Journal>
        </dcterms:isPartOf>
        <bib:authors>
            <rdf:Seq>
                <rdf:li><foaf:Person>
                    <foaf:surname>Baker</foaf:surname><foaf:givenName>Ann</foaf:givenName>
                </foaf:Person></rdf:li>
                <rdf:li><foaf:Person><foaf:surname>River Survey</foaf:surname></foaf:Person></rdf:li>
            </rdf:Seq>
        </bib:authors>
        <bib:editors>
            <rdf:Seq><rdf:li><foaf:Person><foaf:surname>Dune</foaf:surname></foaf:Person></rdf:li></rdf:Seq>
        </bib:editors>
        <link:link rdf:resource="#item_12"/>
        <link:link rdf:resource="#item_13"/>
        <dcterms:isReferencedBy rdf:resource="#item_14"/>
        <dc:subject>river</dc:subject>
        <dc:subject><z:AutomaticTag><rdf:value>silt, fine</rdf:value></z:AutomaticTag></dc:subject>
        <dc:title>Rivers that carry silt &amp; sand</dc:title>
        <dcterms:abstract>Silt settles where water slows.</dcterms:abstract>
        <dc:date>March 2021</dc:date>
        <dc:description>PMID: 5
Citation Key: baker2021</dc:description>
    </bib:Article>
    <z:Attachment rdf:about="#item_12">
        <z:itemType>attachment</z:itemType>
        <rdf:resource rdf:resource="files/12/Baker 2021.pdf"/>
        <dc:title>Full Text PDF</dc:title>
        <link:type>application/pdf</link:type>
    </z:Attachment>
    <z:Attachment rdf:about="#item_13">
        <rdf:resource rdf:resource="files/13/figure%201.txt"/>
        <dc:subject>figure</dc:subject>
    </z:Attachment>
    <bib:Memo rdf:about="#item_14"><rdf:value>&lt;p&gt;Ask Cole.&lt;/p&gt;</rdf:value></bib:Memo>
    <bib:Book rdf:about="#item_20">
        <dcterms:isPartOf rdf:resource="urn:issn:1"/>
        <bib:editors>
            <rdf:Seq><rdf:li><foaf:Person><foaf:surname>Dune</foaf:surname></foaf:Person></rdf:li></rdf:Seq>
        </bib:editors>
        <link:link rdf:resource="#item_21"/>
        <dc:title>Sand</dc:title>
        <dc:identifier>ISBN 978-3</dc:identifier>
    </bib:Book>
    <bib:Series rdf:about="urn:issn:1">
        <dc:identifier>DOI 10.1234/a</dc:identifier>
        <dc:identifier>DOI 10.1234/b</dc:identifier>
    </bib:Series>
    <z:Attachment rdf:about="#item_21"><rdf:resource rdf:resource="files/21/sand.txt"/></z:Attachment>
    <z:Attachment rdf:about="#item_30">
        <rdf:resource rdf:resource="files/30/alone.txt"/>
        <dc:title>A file alone</dc:title>
    </z:Attachment>
    <z:Collection rdf:about="#collection_5">
        <dc:title>Thesis</dc:title>
        <dcterms:hasPart rdf:resource="#collection_6"/>
        <dcterms:hasPart rdf:resource="#item_20"/>
    </z:Collection>
    <z:Collection rdf:about="#collection_6">
        <dc:title>Floods</dc:title>
        <dcterms:hasPart rdf:resource="https://example.org/silt"/>
    </z:Collection>
</rdf:RDF>
"""
)


def test_files_get_what_is_known_of_their_item() -> None:
    found = labels_in_rdf(EXPORT)
    paper = found["files/12/Baker 2021.pdf"]
    assert paper.title == "Rivers that carry silt & sand"
    assert paper.authors == ("Ann Baker", "River Survey")
    assert (paper.year, paper.tags) == (2021, ("river", "silt fine", "Thesis/Floods"))
    assert paper.metadata == {"citation key": "baker2021", "DOI": "10.1234/silt"}
    assert found["files/13/figure 1.txt"].tags == ("river", "silt fine", "figure", "Thesis/Floods")
    book = found["files/21/sand.txt"]
    assert (book.title, book.authors, book.tags) == ("Sand", ("Dune",), ("Thesis",))
    assert not book.metadata.get("DOI"), "a series that several share says nothing of one"
    assert found["files/30/alone.txt"].title == "A file alone"


def test_collections_that_hold_each_other_end() -> None:
    source = (
        HEAD
        + """
    <z:Attachment rdf:about="#f"><rdf:resource rdf:resource="f.txt"/></z:Attachment>
    <z:Collection rdf:about="#a"><dc:title>A</dc:title>
        <dcterms:hasPart rdf:resource="#b"/><dcterms:hasPart rdf:resource="#f"/></z:Collection>
    <z:Collection rdf:about="#b"><dc:title>B</dc:title>
        <dcterms:hasPart rdf:resource="#a"/></z:Collection>
    </rdf:RDF>"""
    )
    assert labels_in_rdf(source)["f.txt"].tags == ("B/A",)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "no XML",
        EXPORT[:-20],
        '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>',
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>',
    ],
)
def test_what_is_no_rdf_is_told(source: str) -> None:
    with pytest.raises(InvalidInput, match="as Zotero RDF with files"):
        labels_in_rdf(source)


def test_rdf_of_others_says_nothing() -> None:
    assert labels_in_rdf(HEAD + "<rdf:Description rdf:about='x'/></rdf:RDF>") == {}


def test_an_exported_folder_is_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    for name in ("files/12/Baker 2021.pdf", "files/13/figure 1.txt", "files/21/sand.txt"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(f"{name} is here.")
    (folder / "export.rdf").write_text(EXPORT)
    (folder / "files/21/sand.txt.meta.json").write_text('{"title": "My own title"}')
    held = held_by_folder(folder, {})
    assert held.failed == ()
    labels = {key: labels_from(file.entry.labels) for key, file in held.found.items()}
    assert labels["files/12/Baker 2021.pdf"].year == 2021
    assert labels["files/13/figure 1.txt"].title == "Rivers that carry silt & sand"
    assert (labels["files/21/sand.txt"].title, labels["files/21/sand.txt"].tags) == (
        "My own title",
        ("Thesis",),
    )
    for broken in (EXPORT[:900].encode(), b"\xff\xfe<"):
        (folder / "export.rdf").write_bytes(broken)
        held = held_by_folder(folder, {})
        ((path, reason),) = held.failed
        assert path == "export.rdf"
        assert "in Zotero export again" in reason
        assert held.found["files/12/Baker 2021.pdf"].entry.labels == ""


def test_the_export_itself_is_read_without_its_tags() -> None:
    found = DirectParser(IngestOptions()).parse(EXPORT.encode(), "export.rdf")
    assert "abstract: Silt settles where water slows." in found.text
    assert "Ask Cole." in found.text
    assert "<" not in found.text
