"""The outside is as the golden files say; a change of it is written with `python -m tests.fence`."""

from __future__ import annotations

import json

import pytest

from tests.fence.answers import answers
from tests.fence.bundles import bundled, wait_for
from tests.fence.outside import GOLDEN, PARTS
from tests.fence.server import StoredVectors, fence_server, stored_embedder

CURE = "the outside changed; if it should, run: python -m tests.fence, and say why in CHANGELOG.md"


@pytest.mark.parametrize("name", sorted(PARTS))
def test_the_outside_is_as_it_was(name: str) -> None:
    assert PARTS[name]() + "\n" == (GOLDEN / name).read_text("utf-8"), CURE


@pytest.mark.timeout(600)
def test_answers_are_as_they_were() -> None:
    lines = (GOLDEN / "answers.jsonl").read_text("utf-8").splitlines()
    with stored_embedder(StoredVectors.read(GOLDEN / "vectors.npz")):
        found = answers()
    expected = [json.loads(line) for line in lines]
    changed = [
        f"{was['request']}\nwas {was}\nis  {row}"
        for was, row in zip(expected, found, strict=True)
        if was != row
    ]
    assert not changed, f"{len(changed)} of {len(found)} answers changed; {CURE}\n" + changed[0]


def test_a_bundle_of_an_earlier_build_is_taken() -> None:
    kept = json.loads((GOLDEN / "bundle.json").read_text("utf-8"))
    with fence_server() as server:
        body = {"path": str(GOLDEN / "papers.documind"), "library": "papers"}
        job = server.client.post("/api/v1/import", json=body).json()["id"]
        wait_for(server, job)
        assert bundled(server) == kept
