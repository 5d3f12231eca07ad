"""What a release promises beyond the code: licences, an audit that does not pretend, one version number, papers that are there."""

from __future__ import annotations

import re
import tomllib
from email.message import Message
from pathlib import Path

import pytest

from app.core.ids import CHECKOUT
from scripts.audit import verdict
from scripts.licences import Licence, expression_of, licences, locked

ROOT = Path(__file__).resolve().parents[2]


def test_every_dependency_has_a_permissive_licence() -> None:
    names = locked()
    found = licences(names)
    assert len(found) >= len(names) - 5  # what is for other systems only is not installed here
    assert [one for one in found if not one.allowed] == []


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("GPL-3.0-or-later", False),
        ("MIT AND AGPL-3.0-only", False),
        ("", False),
        ("Commercial", False),
    ],
)
def test_what_is_allowed(expression: str, allowed: bool) -> None:
    assert Licence("x", expression).allowed is allowed


def test_a_licence_is_read_from_wherever_a_package_says_it() -> None:
    spdx, classified, said = Message(), Message(), Message()
    spdx["License-Expression"] = "BSD-2-Clause"
    classified["Classifier"] = "License :: OSI Approved :: MIT License"
    classified["Classifier"] = "Programming Language :: Python"
    said["License"] = "Apache License, Version 2.0\nand the whole text after it"
    assert [expression_of(metadata) for metadata in (spdx, classified, said, Message())] == [
        "BSD-2-Clause",
        "MIT",
        "Apache-2.0",
        "",
    ]


def test_an_audit_that_saw_nothing_does_not_pass() -> None:
    clean: dict[str, object] = {"name": "a", "version": "1", "vulns": []}
    unknown: dict[str, object] = {"name": "b", "skip_reason": "not found"}
    bad = {"name": "c", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}
    assert verdict([clean], offline=False)[0] == 0
    assert verdict([clean, bad], offline=True) == (
        1,
        ["c 1: CVE-1, fixed in 2", "2 packages looked up, 1 vulnerabilities known"],
    )
    cases: list[list[dict[str, object]]] = [[], [unknown], [clean, unknown]]
    for packages in cases:
        code, lines = verdict(packages, offline=False)
        assert code == 2
        assert "could not be looked up" in lines[-1]
        code, lines = verdict(packages, offline=True)
        assert code == 0
        assert "NOT audited" in lines[-1]


def test_there_is_one_version_number() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == CHECKOUT


def test_papers_of_a_project_are_there_and_their_links_hold() -> None:
    for name in (
        ".github/SECURITY.md",
        "docs/contributing.md",
        "LICENSE",
        "NOTICE",
        "CHANGELOG.md",
        "docs/operations.md",
    ):
        path = ROOT / name
        for link in re.findall(
            r"\]\(([^)#:\s]+)(?:#[^)]*)?(?: \"[^\"]*\")?\)", path.read_text("utf-8")
        ):
            assert (path.parent / link).exists(), f"{name} links to {link}"


def test_every_target_that_the_papers_name_exists() -> None:
    targets = set(
        re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    )
    for name in ("README.md", ".github/SECURITY.md", "docs/contributing.md", "docs/operations.md"):
        named = set(re.findall(r"`make ([a-z-]+)", (ROOT / name).read_text("utf-8")))
        assert named <= targets, (name, named - targets)
