"""List the file formats: how each is recognised, and its parser.

A new format is one row here, its name in `app.core.vocabulary.FileType`, and a module with a
parse function (docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import cast

from app.core.text import either
from app.core.types import FileType, PageWords, ParsedDocument
from app.ingest.names import IngestOptions

Parse = Callable[..., ParsedDocument]
"""Content, file name and limits to a document, of pages also the words that OCR recognised.

Raises UnsupportedType of bytes that are no text, Encrypted, NoTextLayer, TooLarge (a ZIP bomb, say)
or Unreadable of what is damaged; a parser's docstring says which others it raises."""


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
    """Start of a name inside the ZIP container that only this format has; `mimetype`: the part of
    this name holds the media type."""
    subject: str = ""
    """Groups formats in messages and documents; those of one stand together."""
    ole_stream: str = ""
    """Name of a stream in the container of Office 97 that only this format has."""
    has_pictures: bool = False
    """Its pages can be pictures of text, whose words OCR recognises."""

    @property
    def is_text(self) -> bool:
        """Return whether files are plain text, which no signature tells apart."""
        return not (self.magic or self.zip_part or self.ole_stream)

    def parse(
        self, content: bytes, filename: str, options: IngestOptions, words: Sequence[PageWords] = ()
    ) -> ParsedDocument:
        """Return the parsed document; see `Parse`."""
        module, _, function = self.parser.partition(":")
        found = cast("Parse", getattr(import_module(f"app.ingest.parsers.{module}"), function))
        more = {"words": words} if self.has_pictures else {}
        return found(content, filename, options, **more)


_CODE = tuple(
    ".py .pyi .js .mjs .cjs .jsx .ts .tsx .java .kt .kts .scala .swift .go .rs .c .h .cc .cpp .cxx"
    " .hh .hpp .cs .php .dart .proto .sol .zig .rb .ex .exs .jl .sh .bash .zsh .sql .lua .r .pl"
    " .pm".split()
)

FORMATS: Mapping[FileType, FileFormat] = MappingProxyType(
    {
        "pdf": FileFormat(
            "PDF",
            "application/pdf",
            (".pdf",),
            "pdf:parse_pdf",
            magic=b"%PDF-",
            has_pictures=True,
        ),
        "docx": FileFormat(
            "DOCX",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            (".docx", ".docm", ".dotx", ".dotm"),
            "docx:parse_docx",
            subject="office documents",
            zip_part="word/",
        ),
        "odt": FileFormat(
            "ODT",
            "application/vnd.oasis.opendocument.text",
            (".odt", ".ott"),
            "opendocument:parse_odt",
            subject="office documents",
            zip_part="mimetype",
        ),
        "pptx": FileFormat(
            "PPTX",
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            (".pptx", ".pptm", ".potx", ".ppsx", ".ppsm"),
            "slides:parse_pptx",
            subject="office documents",
            zip_part="ppt/",
        ),
        "xlsx": FileFormat(
            "XLSX",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            (".xlsx", ".xlsm", ".xltx", ".xltm"),
            "workbooks:parse_xlsx",
            subject="tables",
            zip_part="xl/workbook.xml",
        ),
        "xls": FileFormat(
            "XLS",
            "application/vnd.ms-excel",
            (".xls", ".xlt", ".xlsb"),
            "workbooks:parse_xls",
            subject="tables",
            zip_part="xl/workbook.bin",
            ole_stream="Workbook",
        ),
        "ods": FileFormat(
            "ODS",
            "application/vnd.oasis.opendocument.spreadsheet",
            (".ods", ".ots"),
            "opendocument:parse_ods",
            subject="tables",
            zip_part="mimetype",
        ),
        "csv": FileFormat(
            "CSV",
            "text/csv",
            (".csv", ".tsv", ".tab", ".psv"),
            "tables:parse_csv",
            subject="tables",
        ),
        "html": FileFormat(
            "HTML",
            "text/html",
            (".html", ".htm", ".xhtml"),
            "html:parse_html",
            subject="pages and markup",
        ),
        "markdown": FileFormat(
            "Markdown",
            "text/markdown",
            (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".rmd", ".qmd"),
            "markdown:parse_markdown",
            subject="pages and markup",
        ),
        "rtf": FileFormat(
            "RTF",
            "application/rtf",
            (".rtf",),
            "rtf:parse_rtf",
            magic=b"{\\rtf",
            subject="office documents",
        ),
        "epub": FileFormat(
            "EPUB",
            "application/epub+zip",
            (".epub",),
            "epub:parse_epub",
            subject="pages and markup",
            zip_part="META-INF/container.xml",
        ),
        "email": FileFormat("EML", "message/rfc822", (".eml",), "mail:parse_email", subject="mail"),
        "mbox": FileFormat(
            "MBOX", "application/mbox", (".mbox", ".mbx"), "mail:parse_mailbox", subject="mail"
        ),
        "mhtml": FileFormat(
            "MHTML",
            "application/x-mimearchive",
            (".mhtml", ".mht"),
            "mail:parse_mhtml",
            subject="pages and markup",
        ),
        "ipynb": FileFormat(
            "IPYNB",
            "application/x-ipynb+json",
            (".ipynb",),
            "notebook:parse_notebook",
            subject="data",
        ),
        "subtitles": FileFormat(
            "SRT or VTT", "text/vtt", (".srt", ".vtt"), "subtitles:parse_subtitles"
        ),
        "json": FileFormat(
            "JSON",
            "application/json",
            (".json", ".jsonl", ".ndjson", ".geojson"),
            "structured:parse_json",
            subject="data",
        ),
        "yaml": FileFormat(
            "YAML",
            "application/yaml",
            (".yaml", ".yml"),
            "structured:parse_yaml",
            subject="data",
        ),
        "xml": FileFormat(
            "XML",
            "application/xml",
            (".xml", ".rss", ".atom", ".svg", ".kml", ".gpx", ".opml"),
            "structured:parse_xml",
            subject="data",
        ),
        "rst": FileFormat(
            "RST", "text/x-rst", (".rst", ".rest"), "markup:parse_rst", subject="pages and markup"
        ),
        "asciidoc": FileFormat(
            "AsciiDoc",
            "text/asciidoc",
            (".adoc", ".asciidoc"),
            "markup:parse_asciidoc",
            subject="pages and markup",
        ),
        "latex": FileFormat(
            "LaTeX",
            "text/x-tex",
            (".tex", ".ltx"),
            "latex:parse_latex",
            subject="pages and markup",
        ),
        "code": FileFormat("source code", "text/x-source", _CODE, "code:parse_code"),
        **{
            cast("FileType", name): FileFormat(
                label,
                f"image/{name}",
                suffixes,
                "images:parse_image",
                subject="pictures of text",
                magic=magic,
                has_pictures=True,
            )
            for name, label, suffixes, magic in (
                ("png", "PNG", (".png",), b"\x89PNG"),
                ("jpeg", "JPEG", (".jpg", ".jpeg"), b"\xff\xd8\xff"),
                ("tiff", "TIFF", (".tif", ".tiff"), b"II*\0"),
                ("webp", "WebP", (".webp",), b"RIFF"),
            )
        },
        "text": FileFormat("plain text", "text/plain", (".txt",), "plain:parse_plain"),
    }
)
"""Every format by the name that documents carry; the order is that of messages."""


def type_of(media_type: str) -> FileType:
    """Return the name of a media type's format."""
    return next(name for name, one in FORMATS.items() if one.media_type == media_type)


def accepted() -> str:
    """Return the formats in words: `PDF, office documents (DOCX), ... or plain text`."""
    subjects: dict[str, list[str]] = {}
    for one in FORMATS.values():
        subjects.setdefault(one.subject or one.label, []).append(one.label)
    return either(
        subject if labels == [subject] else f"{subject} ({', '.join(labels)})"
        for subject, labels in subjects.items()
    )
