"""List the file formats: how each is recognised, and its parser.

A new format is one row here, its name in `app.core.vocabulary.FileType`, and a module with a
parse function (docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import cast

from app.core.text import either
from app.core.types import FileType, ParsedDocument
from app.ingest.names import IngestOptions

Parse = Callable[[bytes, str, IngestOptions], ParsedDocument]
"""Content, file name and limits to a document; raises UnsupportedType, Encrypted, NoTextLayer,
TooLarge or Unreadable."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """One format; a file is of the first that recognises it."""

    label: str
    """Name in messages and documents."""
    media_type: str
    suffixes: tuple[str, ...]
    """Extensions in lower case, the usual one first; they tell one text format from another."""
    parser: str
    """`module:function` under `app.ingest.parsers`, imported on first use: a child process that
    never sees a DOCX never loads lxml."""
    magic: bytes = b""
    """Bytes that a file begins with; those of a PDF may stand behind others."""
    zip_part: str = ""
    """Folder inside the ZIP container that only this format has."""

    @property
    def is_text(self) -> bool:
        """Return whether files are plain text, which no signature tells apart."""
        return not self.magic and not self.zip_part

    def parse(self, content: bytes, filename: str, options: IngestOptions) -> ParsedDocument:
        """Return the parsed document; see `Parse`."""
        module, _, function = self.parser.partition(":")
        found = cast("Parse", getattr(import_module(f"app.ingest.parsers.{module}"), function))
        return found(content, filename, options)


_CODE = tuple(
    ".py .pyi .js .mjs .cjs .jsx .ts .tsx .java .kt .kts .scala .swift .go .rs .c .h .cc .cpp .cxx"
    " .hh .hpp .cs .php .dart .proto .sol .zig .rb .ex .exs .jl .sh .bash .zsh .sql .lua .r .pl"
    " .pm".split()
)

FORMATS: Mapping[FileType, FileFormat] = MappingProxyType(
    {
        "pdf": FileFormat("PDF", "application/pdf", (".pdf",), "pdf:parse_pdf", magic=b"%PDF-"),
        "docx": FileFormat(
            "DOCX",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            (".docx", ".docm", ".dotx", ".dotm"),
            "docx:parse_docx",
            zip_part="word/",
        ),
        "html": FileFormat("HTML", "text/html", (".html", ".htm", ".xhtml"), "html:parse_html"),
        "markdown": FileFormat(
            "Markdown",
            "text/markdown",
            (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".rmd", ".qmd"),
            "markdown:parse_markdown",
        ),
        "rtf": FileFormat("RTF", "application/rtf", (".rtf",), "rtf:parse_rtf", magic=b"{\\rtf"),
        "epub": FileFormat(
            "EPUB",
            "application/epub+zip",
            (".epub",),
            "epub:parse_epub",
            zip_part="META-INF/container.xml",
        ),
        "email": FileFormat("EML", "message/rfc822", (".eml",), "mail:parse_email"),
        "mbox": FileFormat("MBOX", "application/mbox", (".mbox", ".mbx"), "mail:parse_mailbox"),
        "mhtml": FileFormat(
            "MHTML", "application/x-mimearchive", (".mhtml", ".mht"), "mail:parse_mhtml"
        ),
        "ipynb": FileFormat(
            "IPYNB", "application/x-ipynb+json", (".ipynb",), "notebook:parse_notebook"
        ),
        "subtitles": FileFormat(
            "SRT or VTT", "text/vtt", (".srt", ".vtt"), "subtitles:parse_subtitles"
        ),
        "rst": FileFormat("reStructuredText", "text/x-rst", (".rst", ".rest"), "markup:parse_rst"),
        "asciidoc": FileFormat(
            "AsciiDoc", "text/asciidoc", (".adoc", ".asciidoc", ".asc"), "markup:parse_asciidoc"
        ),
        "latex": FileFormat("LaTeX", "text/x-tex", (".tex", ".ltx"), "latex:parse_latex"),
        "code": FileFormat("source code", "text/x-source", _CODE, "code:parse_code"),
        "text": FileFormat("plain text", "text/plain", (".txt",), "plain:parse_plain"),
    }
)
"""Every format by the name that documents carry; the order is that of messages."""


def type_of(media_type: str) -> FileType:
    """Return the name of a media type's format."""
    return next(name for name, one in FORMATS.items() if one.media_type == media_type)


def accepted() -> str:
    """Return the formats in words: `PDF, DOCX, HTML, Markdown or plain text`."""
    return either(one.label for one in FORMATS.values())
