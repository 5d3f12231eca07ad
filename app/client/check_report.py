"""Write a checked text as a report: Markdown or HTML, from a CheckResponse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Literal, cast

ReportForm = Literal["markdown", "html"]
SAID = {
    "supported": "supported",
    "weak": "close to the source, not confirmed",
    "contradicted": "contradicted",
    "not_found": "not found",
    "no_claim": "claims nothing",
}
_JUDGED = {"supported": "supported", "not_supported": "not supported"}
_QUOTE_CHARACTERS = 300
_MARKS = re.compile(r"[\\`*_{}\[\]<>#!|~&$]|(?<=\w):(?=//)|(?<=www)\.|(?<=\w)@|^[-+=]")
"""What begins markup in CommonMark, GitHub's tables and addresses, and mathematics."""
Fields = Mapping[str, object]


def written(report: Fields, form: ReportForm) -> str:
    """Return a report for reading: counts, then each sentence with verdict and place."""
    return as_html(report) if form == "html" else as_markdown(report)


def as_text(report: Fields) -> str:
    """Return the sentences with verdicts and places, for a model to read; empty without any."""
    lines = []
    for sentence in _sentences(report):
        lines.append(f"{_verdict(sentence, report)}: {_line(sentence['text'])}")
        lines += [
            f'  {word}"{_line(place["quote"])}" ({_where(place)})'
            for place, word in _places(sentence)
        ]
    failed = _failed(report)
    return "\n".join([*lines, failed] if failed else lines)


def as_markdown(report: Fields) -> str:
    """Return a report as Markdown, a list entry for each sentence."""
    lines = ["# Check", "", _plain(_counts(report)), ""]
    for sentence in _sentences(report):
        said = _plain(_verdict(sentence, report))
        lines.append(f"- **{said}**: {_plain(_line(sentence['text']))}")
        for place, word in _places(sentence):
            lines += [
                f"  > {word}{_plain(_line(place['quote']))}",
                f"  > ({_plain(_where(place))})",
            ]
    return "\n".join(lines) + "\n"


def as_html(report: Fields) -> str:
    """Return a report as a page of its own, without scripts."""
    rows = []
    for sentence in _sentences(report):
        shown = "<br>".join(
            f"{escape(word)}{escape(_line(place['quote']))}<br><small>{escape(_where(place))}</small>"
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
        + "\n</table>\n</html>\n"
    )


def _sentences(report: Fields) -> list[Fields]:
    return cast("list[Fields]", report["sentences"])


def _verdict(sentence: Fields, report: Fields) -> str:
    """Return the verdict, and the model's next to it where one was asked."""
    own = SAID[str(sentence["verdict"])]
    if report.get("judge") is None or sentence["verdict"] == "no_claim":
        return own
    judged = sentence.get("judged")
    return f"{own} ({report['judge']}: {_JUDGED[str(judged)] if judged else 'no clear reply'})"


def _places(sentence: Fields) -> list[tuple[Fields, str]]:
    """Return the best place and the better one of a library, each with its lead."""
    places = [(place, "") for place in cast("list[Fields]", sentence["citations"])[:1]]
    better = cast("Fields | None", sentence.get("better"))
    return [*places, (better, "better: ")] if better else places


def _counts(report: Fields) -> str:
    counts = cast("dict[str, int]", report["counts"])
    said = ", ".join(f"{counts[verdict]} {said}" for verdict, said in SAID.items())
    failed = _failed(report)
    return f"{said}; {failed}" if failed else said


def _failed(report: Fields) -> str:
    """Return why the model was asked no further; empty where it did not fail."""
    reason = report.get("judge_failed")
    return " ".join(f"{report['judge']} failed: {reason}".split()) if reason else ""


def _where(place: Fields) -> str:
    named = (
        f"{_line(place['title'])}, {place['library']}, {place['doc_id']}, "
        if place["doc_id"]
        else ""
    )
    support = cast("float", place["support"])
    return f"{named}characters {place['start']} to {place['end']}, support {support:.2f}"


def _plain(text: str) -> str:
    """Return text that a viewer of Markdown shows as it is, on one line: no links, no HTML.

    CommonMark lets a backslash stand before any ASCII punctuation (0.31, section 2.4).
    """
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))


def _line(text: object) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= _QUOTE_CHARACTERS else line[: _QUOTE_CHARACTERS - 1] + "\u2026"
