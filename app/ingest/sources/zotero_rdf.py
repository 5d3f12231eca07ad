"""Read what an export of Zotero as RDF with files knows of the files that it names.

References:
    Zotero's translator "Zotero RDF": the Bibliographic Ontology of 2004 (`bib`), Dublin Core, FOAF
    and a vocabulary of its own (`z`); a file is an `Attachment` to which an item links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from app.core.errors import InvalidInput
from app.core.labels import CITATION_KEY, DOI, Labels, found_labels
from app.core.normalisation import normalise

_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_Z = "{http://www.zotero.org/namespaces/export#}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_TERMS = "{http://purl.org/dc/terms/}"
_BIB = "{http://purl.org/net/biblio#}"
_FOAF = "{http://xmlns.com/foaf/0.1/}"
_LINK = "{http://purl.org/rss/1.0/modules/link/}link"
_DOI = re.compile(r"DOI\s+(10\.\d{4,9}/\S+)", re.IGNORECASE)
_CITED = re.compile(r"(?im)^[ \t]*Citation Key[ \t]*:[ \t]*(\S+)")
_YEAR = re.compile(r"(?<!\d)(1\d{3}|20\d\d)(?!\d)")
_LONGEST = 300


def labels_in_rdf(source: str) -> dict[str, Labels]:
    """Return labels by the path of each file that an item has, as it is written there.

    Raises:
        InvalidInput: It is no RDF.
    """
    try:
        root = fromstring(source)
    except (ParseError, DefusedXmlException, ValueError) as exc:
        raise InvalidInput(
            f"it is no readable RDF ({exc}); in Zotero export again, as Zotero RDF with files"
        ) from exc
    nodes = {about: one for one in root if (about := one.get(f"{_RDF}about"))}
    paths = _collections(nodes)
    files = {about: one for about, one in nodes.items() if one.tag == f"{_Z}Attachment"}
    owners: dict[str, list[Element]] = {}
    for node in root:
        for link in node.findall(_LINK):
            owners.setdefault(link.get(f"{_RDF}resource", ""), []).append(node)
    found: dict[str, Labels] = {}
    for about, file in files.items():
        for work in owners.get(about, [file])[:1]:
            labels = _labels(work, file, nodes, paths)
            for named in file.findall(f"{_RDF}resource"):
                path = named.get(f"{_RDF}resource", "")
                found |= dict.fromkeys((path, unquote(path)), labels)
    return found


def _labels(
    work: Element, file: Element, nodes: dict[str, Element], paths: dict[str, list[str]]
) -> Labels:
    subjects = chain.from_iterable(one.findall(f"{_DC}subject") for one in (work, file))
    tags = [*map(_said, subjects), *paths.get(work.get(f"{_RDF}about", ""), ())]
    cited = _text(work, f"{_Z}citationKey") or _first(
        _CITED, work.findtext(f"{_DC}description") or ""
    )
    known = found_labels(
        [one.replace(",", " ") for one in dict.fromkeys(tags) if one],
        {CITATION_KEY: cited or None, DOI: _doi(work, nodes)},
    )
    year = _first(_YEAR, _text(work, f"{_DC}date"))
    return replace(
        known,
        title=_text(work, f"{_DC}title") or None,
        authors=tuple(_authors(work))[:100] or None,
        year=int(year) if year else None,
    )


def _collections(nodes: dict[str, Element]) -> dict[str, list[str]]:
    """Return the collections of each item as `Thesis/Chapter 2`."""
    parts = {
        about: [part.get(f"{_RDF}resource", "") for part in one.findall(f"{_TERMS}hasPart")]
        for about, one in nodes.items()
        if one.tag == f"{_Z}Collection"
    }
    above = {part: about for about, held in parts.items() for part in held if part in parts}
    found: dict[str, list[str]] = {}
    for about, held in parts.items():
        path, at, seen = [_text(nodes[about], f"{_DC}title")], about, {about}
        while (at := above.get(at, "")) and at not in seen:
            seen.add(at)
            path.insert(0, _text(nodes[at], f"{_DC}title"))
        for part in held:
            if part not in parts:
                found.setdefault(part, []).append("/".join(path))
    return found


def _doi(work: Element, nodes: dict[str, Element]) -> str | None:
    """Return the DOI of a work, which an article may have where its journal stands.

    A journal that several articles share has those of all, which say nothing.
    """
    within = work.findall(f"{_TERMS}isPartOf")
    shared = [nodes[about] for one in within if (about := one.get(f"{_RDF}resource")) in nodes]
    own = [one.text or "" for one in work.findall(f"{_DC}identifier")]
    of_part = [
        one.text or ""
        for part in (*chain.from_iterable(within), *shared)
        for one in part.findall(f"{_DC}identifier")
    ]
    for texts in (own, of_part):
        dois = [match[1] for text in texts if (match := _DOI.match(text.strip()))]
        if dois:
            return dois[0] if len(dois) == 1 else None
    return None


def _authors(work: Element) -> Iterator[str]:
    """Yield the authors of a work, or who else made it."""
    made = work.findall(f"{_BIB}authors") or [
        one for one in work if one.find(f"{_RDF}Seq") is not None
    ]
    for one in made:
        for person in one.iter(f"{_FOAF}Person"):
            names = (f"{_FOAF}givenName", f"{_FOAF}givenname", f"{_FOAF}surname")
            if name := " ".join(filter(None, (_text(person, name) for name in names))):
                yield name


def _said(node: Element) -> str:
    """Return the text of a node, or the value within it, as that of an automatic tag."""
    return _line((node.text or "", *(one.text or "" for one in node.iter(f"{_RDF}value"))))


def _text(node: Element, name: str) -> str:
    return _line((node.findtext(name) or "",))


def _line(texts: Iterable[str]) -> str:
    """Return texts on one line, without characters that are not seen."""
    return " ".join(normalise(" ".join(texts))[0].split())[:_LONGEST].strip()


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""
