"""Write a checked text (a CheckReport of docs/http.md) for reading."""

from __future__ import annotations

import re
from html import escape
from io import BytesIO
from typing import Literal

from app.client import Json

ReportForm = Literal["markdown", "html", "docx"]
SAID = {
    "supported": "supported",
    "unsure": "unsure",
    "contradicted": "contradicted",
    "not_found": "not found",
    "no_claim": "claims nothing",
}
_JUDGED = {"supported": "supported", "not_supported": "not supported"}
_QUOTE_CHARACTERS = 300
_MARKS = re.compile(r"[\\`*_{}\[\]<>#!|~&$]|(?<=\w):(?=//)|(?<=www)\.|(?<=\w)@|^[-+=]")
"""What begins markup in CommonMark, GitHub's tables and addresses, and mathematics."""


def written(report: Json, form: ReportForm) -> bytes:
    """Return a report as a file: counts, then each sentence with verdict and place."""
    if form == "docx":
        return as_docx(report)
    return (as_html(report) if form == "html" else as_markdown(report)).encode()


def as_text(report: Json) -> str:
    """Return the sentences with verdicts and places, for a model to read; empty without any."""
    lines = []
    for sentence in report["sentences"]:
        lines.append(f"{_verdict(sentence, report)}: {_line(sentence['text'])}")
        lines += [
            f'  {word}"{_line(place["quote"])}" ({_where(place)})'
            for place, word in _places(sentence)
        ]
    failed = _failed(report)
    return "\n".join([*lines, failed] if failed else lines)


def as_markdown(report: Json) -> str:
    lines = ["# Check", "", _plain(_counts(report)), ""]
    for sentence in report["sentences"]:
        said = _plain(_verdict(sentence, report))
        lines.append(f"- **{said}**: {_plain(_line(sentence['text']))}")
        for place, word in _places(sentence):
            lines += [
                f"  > {word}{_plain(_line(place['quote']))}",
                f"  > ({_plain(_where(place))})",
            ]
    if report.get("references"):
        lines += ["", "## References", ""]
        lines += [f"- **{_plain(said)}**: {_plain(text)}" for said, text in _references(report)]
    return "\n".join(lines) + "\n"


def as_html(report: Json) -> str:
    """Return a report as a page of its own, without scripts."""
    rows = []
    for sentence in report["sentences"]:
        shown = "<br>".join(
            f"{escape(word)}{escape(_line(place['quote']))}<br>"
            f"<small>{escape(_where(place))}</small>"
            for place, word in _places(sentence)
        )
        said = escape(_verdict(sentence, report))
        rows.append(
            f"<tr><td>{said}</td><td>{escape(str(sentence['text']))}</td><td>{shown}</td></tr>"
        )
    head = (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Check</title>\n'
        "<h1>Check</h1>\n"
    )
    titles = "<tr><th>verdict</th><th>sentence</th><th>best place</th></tr>"
    return (
        f"{head}<p>{escape(_counts(report))}</p>\n<table>\n{titles}\n"
        + "\n".join(rows)
        + "\n</table>\n"
        + _references_html(report)
        + "</html>\n"
    )


def _references_html(report: Json) -> str:
    rows = [
        f"<tr><td>{escape(said)}</td><td>{escape(text)}</td></tr>"
        for said, text in _references(report)
    ]
    return "<h2>References</h2>\n<table>\n" + "\n".join(rows) + "\n</table>\n" if rows else ""


def as_docx(report: Json) -> bytes:
    """Return the text as a Word document; a comment on each sentence says verdict and place."""
    from docx import Document  # noqa: PLC0415  # commands that write none need not wait

    document = Document()
    document.add_paragraph(_printable(_counts(report)))
    paragraph, end = document.add_paragraph(), 0
    listed = [range(one["start"], one["end"]) for one in report.get("references", ())]
    for sentence in report["sentences"]:
        if any(sentence["start"] in one for one in listed):
            continue
        if end and sentence["start"] - end > 1:  # more than a blank lies between
            paragraph = document.add_paragraph()
        elif end:
            paragraph.add_run(" ")
        end = sentence["end"]
        run = paragraph.add_run(_printable(sentence["text"]))
        if sentence["verdict"] == "no_claim":
            continue
        lines = [_verdict(sentence, report)]
        lines += [
            f'{word}"{_line(place["quote"])}" ({_where(place)})'
            for place, word in _places(sentence)
        ]
        document.add_comment(run, _printable("\n".join(lines)), author="DocuMind", initials="DM")
    for said, text in _references(report):
        run = document.add_paragraph().add_run(_printable(text))
        document.add_comment(run, _printable(said), author="DocuMind", initials="DM")
    file = BytesIO()
    document.save(file)
    return file.getvalue()


_NO_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What XML 1.0, section 2.2, does not allow."""


def _printable(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _references(report: Json) -> list[tuple[str, str]]:
    """Return what the library has of each reference, and the reference."""
    return [(_state(one), _line(one["text"])) for one in report.get("references", ())]


def _state(reference: Json) -> str:
    if reference["state"] == "not_there":
        return "not in the library"
    document = f"{_line(reference['title'])}, {reference['doc_id']}"
    if reference["state"] == "found":
        return f"found: {document}"
    return f"found with differences ({'; '.join(map(_line, reference['differs']))}): {document}"


def _verdict(sentence: Json, report: Json) -> str:
    """Return the verdict, and next to it the model's and, where that decided, the reader's."""
    said = SAID[str(sentence["verdict"])]
    if report.get("judge") is None or sentence["verdict"] == "no_claim":
        return said
    judged = sentence.get("judged")
    beside = f"{report['judge']}: {_JUDGED[str(judged)] if judged else 'no clear reply'}"
    if report.get("check_by", "reader") != "reader":
        beside += f"; the reader: {SAID[str(sentence['by_reader'])]}"
    return f"{said} ({beside})"


def _places(sentence: Json) -> list[tuple[Json, str]]:
    """Return the best place and the better one of a library, each with its lead."""
    places = [(place, "") for place in sentence["citations"][:1]]
    better = sentence.get("better")
    return [*places, (better, "better: ")] if better else places


def _counts(report: Json) -> str:
    counts = report["counts"]
    said = ", ".join(f"{counts[verdict]} {said}" for verdict, said in SAID.items())
    failed = _failed(report)
    return f"{said}; {failed}" if failed else said


def _failed(report: Json) -> str:
    """Return why the model was asked no further; empty where it did not fail."""
    reason = report.get("judge_failed")
    who = f"{report['judge']} failed" if report.get("judge") else "the reader decided"
    return " ".join(f"{who}: {reason}".split()) if reason else ""


def _where(place: Json) -> str:
    named = (
        f"{_line(place['title'])}, {place['library']}, {place['doc_id']}, "
        if place["doc_id"]
        else ""
    )
    support = place["support"]
    return f"{named}characters {place['start']} to {place['end']}, support {support:.2f}"


def _plain(text: str) -> str:
    """Return text that a viewer of Markdown shows as it is, on one line: no links, no HTML.

    CommonMark lets a backslash stand before any ASCII punctuation (0.31, section 2.4).
    """
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))


def _line(text: object) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= _QUOTE_CHARACTERS else line[: _QUOTE_CHARACTERS - 1] + "\u2026"
