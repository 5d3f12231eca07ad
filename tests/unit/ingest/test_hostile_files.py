"""Hostile files through the parsing children: each ends as it may, quickly, and shows nothing that is not its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import InputError
from app.ingest.options import IngestOptions
from app.ingest.sandbox import SandboxedParser
from tests.fakes.hostile import CANARY, HostileFile, files
from tests.fakes.hostile.model import WORDS

QUICK = list(files(slow=False))


@pytest.fixture(scope="module")
def parser() -> Iterator[SandboxedParser]:
    options = replace(IngestOptions(), parse_processes=1, parse_cpu_s=10, parse_wall_s=30.0)
    with SandboxedParser(options) as running:
        yield running


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    everything = list(files())
    assert len(everything) >= 100
    assert len({file.name for file in everything}) == len(everything)


@pytest.mark.parametrize("file", QUICK, ids=[file.name for file in QUICK])
def test_a_hostile_file_ends_as_it_may(file: HostileFile, parser: SandboxedParser) -> None:
    try:
        parsed = parser.parse(file.make(), file.name)
    except InputError as error:
        verdict, said = error.code, error.message
        assert repr(file.name) in said or "content is binary" in said
    else:
        verdict = "indexed"
        assert CANARY not in parsed.text
        assert "\0" not in parsed.text
        parsed.text.encode()  # no half of a surrogate pair
    assert verdict in file.verdicts
    assert not Path("/tmp/documind-escaped").exists()


def test_the_child_is_as_good_as_new_afterwards(parser: SandboxedParser) -> None:
    assert parser.parse(WORDS.encode(), "after.txt").text == WORDS
