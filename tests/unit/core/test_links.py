"""Which address of a document may leave as a link."""

from __future__ import annotations

from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from app.answer.records import Source
from app.api.schemas.questions import SearchHit
from app.core.links import WebLink, web_link
from app.core.types import Document

BAD = (
    "https://[bad", "https://", "http:///x", "https://[", "HTTPS://[::1", "https://x:99999/", "https://x:port/", "https://a b/",
    "https://a\n/", "https://%/", "javascript:alert(1)", "//host/x", "ftp://host/", "", 'https://h/"onclick=', "https://h/<b>",
)  # fmt: skip


@pytest.mark.parametrize("url", BAD)
def test_what_no_browser_opens_is_no_link(url: str) -> None:
    assert web_link(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/x?y=1#z",
        "http://[::1]:8001/",
        "HTTP://EXAMPLE.org",
        "https://m\u00fcnchen.example/\u00fc",
        "http://a_b.c/",
    ],
)
def test_addresses_of_the_web_stay_as_they_are(url: str) -> None:
    assert web_link(url) == url


@given(st.text(max_size=40))
def test_any_text_behind_the_scheme_is_judged(text: str) -> None:
    assert web_link(f"https://{text}") in {None, f"https://{text}"}


def test_no_reply_carries_a_malformed_link() -> None:
    leaves = TypeAdapter[str | None](WebLink)
    assert leaves.validate_python("https://[bad") is None
    assert leaves.validate_python("https://example.org/") == "https://example.org/"
    for reply in (Document, SearchHit, Source):
        assert get_type_hints(reply, include_extras=True)["source_url"] == WebLink
