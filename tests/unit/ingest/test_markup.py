"""reStructuredText, AsciiDoc, LaTeX and source code: structure is read, marks are left out, code stays as it is."""

from __future__ import annotations

import pytest

from app.core.types import ParsedDocument
from app.ingest.chunking import chunk
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser

RST = r"""
Tides
=====

:Author: Ann Lee
:Date: 2019-03-01

.. contents::
.. toctree::
   :maxdepth: 2

   intro

Run ``tide`` by :func:`~os.path.join`, see :ref:`the map <map>`: :math:`\frac{a+b}{2}`.

.. code-block:: python
   :linenos:

   x = 1

Depths
------

=====  =====
Pier   Depth
=====  =====
East   4 m
=====  =====

1. one

   - deep

.. py:function:: foo(x)
   :module: a

   Does things.

.. versionadded:: 1.2
.. include:: /etc/passwd
"""
ASCIIDOC = """= Reactor Guide
:toc:

The *valve* `V-7` holds 40 bar, see <<x,the map>>.

== Steps
. Open it.
.. Slowly.

.Depths
[cols="1,1"]
|===
|Pier |Depth

|East |4 m
|West
|5 m
|===

[source,python]
----
x = 1

y = 2
----
// comment
"""
LATEX = r"""\documentclass{article}
\newcommand{\model}{DocuMind} % comment
\title{On Tides\thanks{x} of \emph{S\o{}by}}
\author{Ann Lee\thanks{U} \and Bo Hill\\ Uni}
\date{May 2019}
\begin{document}
\maketitle
\begin{abstract}
\model{} reads tides~\cite{lee2019}. It costs 5\% less. % hidden
\end{abstract}
\section{Method}\label{sec:m}
It is $E = \frac{a+b}{2}$ m\textsuperscript{2} in H\textsubscript{2}O.\footnote{A note.}

\begin{enumerate}
\item First \textbf{one}
\begin{itemize}\item[b)] deep\end{itemize}
\end{enumerate}
\begin{table}
\caption{Depths}
\begin{tabular}{l|r}
\hline
Pier & Depth \\ \hline
East \& West & 4~m \\
\end{tabular}
\end{table}
\begin{align}
x &= 10^{-9}
\end{align}
\begin{verbatim}
% kept \section{x}
\end{verbatim}
\includegraphics[width=3cm]{a.png}
\end{document}
junk"""


def read(content: str, name: str) -> ParsedDocument:
    return DirectParser(IngestOptions()).parse(content.encode(), name)


def titles(parsed: ParsedDocument) -> list[tuple[int, str]]:
    return [(one.level, one.title) for one in parsed.headings]


def test_restructured_text_is_read_with_what_sphinx_adds() -> None:
    parsed = read(RST, "tides.rst")
    assert parsed.text == (
        "Tides\n\nAuthor: Ann Lee\nDate: 2019-03-01\n\nRun tide by join, see the map: (a+b)/2.\n\nx = 1\n\n"
        "Depths\n\nPier | Depth\nPier: East | Depth: 4 m\n\n1. one\n  - deep\n\nfoo(x)\n\nDoes things.\n\n"
        "versionadded: 1.2"
    )
    assert titles(parsed) == [(1, "Tides"), (2, "Depths")]
    assert (parsed.title, parsed.authors, parsed.year) == ("Tides", ("Ann Lee",), 2019)
    assert parsed.warnings == ("what directives take from elsewhere is not read: include",)


def test_what_is_too_deep_for_docutils_is_read_as_text() -> None:
    parsed = read("".join(" " * depth + "* a\n\n" for depth in range(300)), "deep.rst")
    assert parsed.text.count("* a") == 300
    assert "too deep" in parsed.warnings[0]


def test_asciidoc_is_read_by_its_lines() -> None:
    parsed = read(ASCIIDOC, "guide.adoc")
    assert parsed.text == (
        "Reactor Guide\n\nThe valve V-7 holds 40 bar, see the map.\n\nSteps\n\n- Open it.\n  - Slowly.\n\n"
        "Depths\nPier | Depth\nPier: East | Depth: 4 m\nPier: West | Depth: 5 m\n\nx = 1\n\ny = 2"
    )
    assert titles(parsed) == [(1, "Reactor Guide"), (2, "Steps")]


def test_latex_is_read_without_its_preamble_and_comments() -> None:
    parsed = read(LATEX, "tides.tex")
    assert parsed.text == (
        "On Tides of Søby\n\nAbstract\n\nDocuMind reads tides [lee2019]. It costs 5% less.\n\n"
        "Method\n\nIt is E = (a+b)/2 m² in H2O.\n\nA note.\n\n1. First one\n  b) deep\n\nDepths\n"
        "Pier | Depth\nPier: East & West | Depth: 4 m\n\nx = 10^-9\n\n% kept \\section{x}"
    )
    assert titles(parsed) == [(1, "On Tides of Søby"), (2, "Abstract"), (2, "Method")]
    assert (parsed.title, parsed.authors, parsed.year) == (
        "On Tides of Søby",
        ("Ann Lee", "Bo Hill"),
        2019,
    )
    assert parsed.warnings == ("not read: pictures",)


@pytest.mark.parametrize(
    ("name", "source", "sections"),
    [
        (
            "a.py",
            "import a\n\n\ndef f(x: int) -> int:\n\treturn 1\n\nclass B:\n    def g(self): ...\n",
            ["def f(x: int) -> int:", "class B:"],
        ),
        (
            "a.ts",
            "export async function f() {\n}\nconst x = 1;\nclass A<T> {\n  m() {}\n}\n",
            ["export async function f() {", "class A<T> {"],
        ),
        (
            "a.c",
            "#include <a.h>\nstatic int *main(int n) {\n}\nelse if (x) {\n",
            ["static int *main(int n) {"],
        ),
        (
            "a.go",
            "package a\nfunc (s *T) Read() error {\n}\ntype T struct {\n}\n",
            ["func (s *T) Read() error {", "type T struct {"],
        ),
        ("a.sql", "CREATE TABLE a (\n  id int\n);\n", ["CREATE TABLE a ("]),
        ("a.sh", "set -e\nrun() {\n  x\n}\n", ["run() {"]),
    ],
)
def test_source_code_stays_as_it_is_and_begins_sections_at_declarations(
    name: str, source: str, sections: list[str]
) -> None:
    parsed = read(source, name)
    assert parsed.text == source
    assert [one.title for one in parsed.headings] == sections
    assert all(parsed.text[one.start : one.end] == one.title for one in parsed.headings)


def test_no_chunk_of_code_begins_or_ends_within_a_line() -> None:
    source = "".join(f"value_{n} = compute(n={n}).  Then. add({n})\n" for n in range(200))
    parsed = read(source, "a.py")
    spans = chunk(parsed, IngestOptions())
    assert len(spans) > 5
    for span in spans:
        assert span.start == 0 or source[span.start - 1] == "\n"
        assert source[span.end] == "\n"
