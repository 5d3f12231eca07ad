from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import InvalidInput
from app.core.normalisation import clean_name
from app.core.types import Metadata
from app.ingest.names import display_name, source_key
from tests.unit.storage.drafts import make_draft


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("../../../escaped.txt", "escaped.txt"),
        ("C:\\Users\\me\\paper.pdf", "paper.pdf"),
        ("a/b\\c.md", "c.md"),
        ("in\x00voice\r\n.pdf", "invoice.pdf"),
        ("gpj.\u202eexe.pdf", "gpj.exe.pdf"),
        ("cafe\u0301.txt", "caf\u00e9.txt"),
        ("", "unnamed"),
        ("..", "unnamed"),
        ("///", "unnamed"),
        ("<img src=x onerror=alert(1)>.pdf", "<img src=x onerror=alert(1)>.pdf"),
        ("x" * 300 + ".pdf", "x" * 238 + "~c5aab184a468.pdf"),
        ("\ud83d.txt", ".txt"),
    ],
)
def test_display_names(raw: str, shown: str) -> None:
    assert display_name(raw) == shown


@given(st.text(max_size=400))
def test_any_name_becomes_one_that_is_safe_to_show(raw: str) -> None:
    name = display_name(raw)
    assert name
    assert len(name.encode()) <= 255
    assert name == unicodedata.normalize("NFC", name)
    assert not any(char in "/\\" or unicodedata.category(char) in ("Cc", "Cs") for char in name)
    assert display_name(name) == name


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("a\x1b[2Jb\x00", "a[2Jb"),
        ("gpj.\u202eexe\u2066", "gpj.exe"),
        ("  cafe\u0301 ", "caf\u00e9"),
        (
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),
        ("pay\u200dpal", "paypal"),
    ],
)
def test_one_function_cleans_every_name(raw: str, name: str) -> None:
    assert clean_name(raw) == name
    draft = replace(make_draft("a", "text"), filename=raw)
    assert draft.filename == Metadata(raw).title == name
    assert Metadata("a\nb", ("c\r\nd",)) == Metadata("a b", ("c d",))


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ("a.md", "a.md"),
        ("./a//b.md", "a/b.md"),
        ("a\\b.md", "a/b.md"),
        ("e\u0301/x", "\u00e9/x"),
        ("a/\u202eb", "a/b"),
        ("...", "..."),
    ],
)
def test_source_keys(raw: str, key: str) -> None:
    assert source_key(raw) == key


@pytest.mark.parametrize(
    "raw", ["", ".", "/etc/passwd", "C:/x", "a/../../b", "..\\b", "a/\u202e..", "x" * 1025]
)
def test_source_keys_that_are_refused(raw: str) -> None:
    with pytest.raises(InvalidInput, match="source_key"):
        source_key(raw)


def test_long_names_that_differ_stay_two() -> None:
    names = {display_name(f"{'a' * 300}{end}.md") for end in ("x", "y")}
    assert len(names) == 2
    assert all(len(name) <= 255 and name.endswith(".md") for name in names)
