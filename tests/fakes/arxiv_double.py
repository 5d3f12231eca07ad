"""A real HTTP server that speaks arXiv's Atom API and serves PDFs."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

from tests.fakes.http_double import Asked, Canned, HttpDouble

FEED = """<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">{entry}</feed>"""
ENTRY = """<entry><id>http://arxiv.org/abs/{id}</id><published>2022-10-06T01:00:32Z</published>
<title>Rivers That
  Carry Silt</title><author><name>Ada Brook</name></author><author><name>Émile Fleuve</name></author></entry>"""
ERROR = (
    "<entry><id>http://arxiv.org/api/errors#incorrect_id_format</id><title>Error</title></entry>"
)


class ArxivDouble(HttpDouble):
    """Has every paper but those whose id starts with `9`."""

    pdf = b"%PDF-1.4 a paper of this test"

    def default(self, asked: Asked) -> Canned:
        parts = urlsplit(asked.path)
        if parts.path == "/api/query":
            wanted = parse_qs(parts.query)["id_list"][0]
            entry = ERROR if wanted.startswith("9") else ENTRY.format(id=wanted)
            return Canned(FEED.format(entry=entry).encode(), content_type="application/atom+xml")
        if parts.path.startswith("/pdf/") and not unquote(parts.path).startswith("/pdf/9"):
            return Canned(self.pdf, content_type="application/pdf")
        return Canned(b"not found", 404, "text/plain")
