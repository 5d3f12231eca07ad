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
from app.ingest.options import IngestOptions

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
    subject: str = ""
    """Groups formats in messages and documents; those of one stand together."""
    magic: bytes = b""
    """Bytes that a file begins with; those of a PDF may stand behind others."""
    zip_part: str = ""
    """Start of a name inside the ZIP container that only this format has; `mimetype`: the part of
    this name holds the media type."""
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
        module, _, function = self.parser.partition(":")
        found = cast("Parse", getattr(import_module(f"app.ingest.parsers.{module}"), function))
        more = {"words": words} if self.has_pictures else {}
        return found(content, filename, options, **more)


_CODE = tuple(
    ".py .pyi .js .mjs .cjs .jsx .ts .tsx .java .kt .kts .scala .swift .go .rs .c .h .cc .cpp .cxx"
    " .hh .hpp .cs .php .dart .proto .sol .zig .rb .ex .exs .jl .sh .bash .zsh .sql .lua .r .pl"
    " .pm".split()
)

_OFFICE = "application/vnd.openxmlformats-officedocument."
_OASIS = "application/vnd.oasis.opendocument."
_DOCUMENTS, _TABLES, _PAGES, _DATA = "office documents", "tables", "pages and markup", "data"
_PICTURE = "images:parse_image", "pictures of text"
FORMATS: Mapping[FileType, FileFormat] = MappingProxyType({
    "pdf": FileFormat("PDF", "application/pdf", (".pdf",), "pdf:parse_pdf", magic=b"%PDF-",
                      has_pictures=True),
    "docx": FileFormat("DOCX", f"{_OFFICE}wordprocessingml.document",
                       (".docx", ".docm", ".dotx", ".dotm"), "docx:parse_docx", _DOCUMENTS,
                       zip_part="word/"),
    "odt": FileFormat("ODT", f"{_OASIS}text", (".odt", ".ott", ".fodt"), "opendocument:parse_odt",
                      _DOCUMENTS, zip_part="mimetype"),
    "pptx": FileFormat("PPTX", f"{_OFFICE}presentationml.presentation",
                       (".pptx", ".pptm", ".potx", ".ppsx", ".ppsm"), "slides:parse_pptx",
                       _DOCUMENTS, zip_part="ppt/"),
    "xlsx": FileFormat("XLSX", f"{_OFFICE}spreadsheetml.sheet",
                       (".xlsx", ".xlsm", ".xltx", ".xltm"), "workbooks:parse_xlsx", _TABLES,
                       zip_part="xl/workbook.xml"),
    "xls": FileFormat("XLS", "application/vnd.ms-excel", (".xls", ".xlt", ".xlsb"),
                      "workbooks:parse_xls", _TABLES, zip_part="xl/workbook.bin",
                      ole_stream="Workbook"),
    "ods": FileFormat("ODS", f"{_OASIS}spreadsheet", (".ods", ".ots", ".fods"),
                      "opendocument:parse_ods", _TABLES, zip_part="mimetype"),
    "odp": FileFormat("ODP", f"{_OASIS}presentation", (".odp", ".otp", ".fodp"),
                      "opendocument:parse_odp", _DOCUMENTS, zip_part="mimetype"),
    "odg": FileFormat("ODG", f"{_OASIS}graphics", (".odg", ".otg", ".fodg"),
                      "opendocument:parse_odg", _DOCUMENTS, zip_part="mimetype"),
    "csv": FileFormat("CSV", "text/csv", (".csv", ".tsv", ".tab", ".psv"), "tables:parse_csv",
                      _TABLES),
    "html": FileFormat("HTML", "text/html", (".html", ".htm", ".xhtml"), "html:parse_html", _PAGES),
    "markdown": FileFormat("Markdown", "text/markdown",
                           (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".rmd", ".qmd"),
                           "markdown:parse_markdown", _PAGES),
    "rtf": FileFormat("RTF", "application/rtf", (".rtf",), "rtf:parse_rtf", _DOCUMENTS,
                      magic=b"{\\rtf"),
    "epub": FileFormat("EPUB", "application/epub+zip", (".epub",), "epub:parse_epub", _PAGES,
                       zip_part="META-INF/container.xml"),
    "email": FileFormat("EML", "message/rfc822", (".eml",), "mail:parse_email", "mail"),
    "mbox": FileFormat("MBOX", "application/mbox", (".mbox", ".mbx"), "mail:parse_mailbox", "mail"),
    "msg": FileFormat("MSG", "application/vnd.ms-outlook", (".msg",), "outlook:parse_msg", "mail",
                      ole_stream="__properties_version1.0"),
    "mhtml": FileFormat("MHTML", "application/x-mimearchive", (".mhtml", ".mht"),
                        "mail:parse_mhtml", _PAGES),
    "cards": FileFormat("ICS or VCF", "text/calendar", (".ics", ".ical", ".vcf", ".vcard"),
                        "cards:parse_cards", "calendars and contacts"),
    "ipynb": FileFormat("IPYNB", "application/x-ipynb+json", (".ipynb",), "notebook:parse_notebook",
                        _DATA),
    "subtitles": FileFormat("SRT or VTT", "text/vtt", (".srt", ".vtt"),
                            "subtitles:parse_subtitles"),
    "json": FileFormat("JSON", "application/json", (".json", ".jsonl", ".ndjson", ".geojson"),
                       "structured:parse_json", _DATA),
    "yaml": FileFormat("YAML", "application/yaml", (".yaml", ".yml"), "structured:parse_yaml",
                       _DATA),
    "xml": FileFormat("XML", "application/xml",
                      (".xml", ".rss", ".atom", ".svg", ".kml", ".gpx", ".opml", ".rdf"),
                      "structured:parse_xml", _DATA),
    "rst": FileFormat("RST", "text/x-rst", (".rst", ".rest"), "markup:parse_rst", _PAGES),
    "asciidoc": FileFormat("AsciiDoc", "text/asciidoc", (".adoc", ".asciidoc"),
                           "markup:parse_asciidoc", _PAGES),
    "org": FileFormat("Org", "text/org", (".org",), "markup:parse_org", _PAGES),
    "latex": FileFormat("LaTeX", "text/x-tex", (".tex", ".ltx"), "latex:parse_latex", _PAGES),
    "code": FileFormat("source code", "text/x-source", _CODE, "plain:parse_code"),
    "png": FileFormat("PNG", "image/png", (".png",), *_PICTURE, b"\x89PNG", has_pictures=True),
    "jpeg": FileFormat("JPEG", "image/jpeg", (".jpg", ".jpeg"), *_PICTURE, b"\xff\xd8\xff",
                       has_pictures=True),
    "tiff": FileFormat("TIFF", "image/tiff", (".tif", ".tiff"), *_PICTURE, b"II*\0",
                       has_pictures=True),
    "webp": FileFormat("WebP", "image/webp", (".webp",), *_PICTURE, b"RIFF", has_pictures=True),
    "text": FileFormat("plain text", "text/plain", (".txt",), "plain:parse_plain"),
})  # fmt: skip
"""Every format by the name that documents carry; the order is that of messages."""


def type_of(media_type: str) -> FileType:
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
