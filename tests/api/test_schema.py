"""The whole contract against generated requests: nothing undeclared, no 500, every body as its schema says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import schemathesis

# schemathesis would import it deep under Hypothesis, where pytest's rewriting of it can fail
import schemathesis.transport.wsgi
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from scripts.write_openapi import PAGE, TARGET, document, page
from tests.api.conftest import LIBRARY, listening, site

# The server runs in this process and uses `random` in threads of its own (names of temporary files,
# say); Hypothesis takes that for a strategy that does.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Do not use the `random` module:hypothesis.errors.HypothesisDeprecationWarning"
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
OPERATIONS = [
    found.ok()
    for found in schemathesis.openapi.from_dict(json.loads(document())).get_all_operations()
    if isinstance(found, Ok)
]


@dataclass(frozen=True)
class Door:
    """Where to knock, and with which key."""

    url: str
    headers: dict[str, str]


@pytest.fixture(scope="module", params=["", "k3y"], ids=["open", "with key"])
def door(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Door]:
    with site(tmp_path_factory.mktemp("schema"), api_key=request.param) as opened:
        headers = {"X-API-Key": "k3y"}
        opened.client.headers.update(headers)
        assert opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))[0] == 201
        with listening(opened.app, lifespan="off") as url:
            yield Door(url, headers)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_request_gets_a_declared_reply(operation: APIOperation, door: Door) -> None:  # type: ignore[type-arg]
    @settings(
        max_examples=6, suppress_health_check=list(HealthCheck), derandomize=True, database=None
    )
    @given(case=operation.as_strategy())
    def knock(case: schemathesis.Case) -> None:  # type: ignore[type-arg]
        reply = case.call(base_url=door.url, headers=door.headers, timeout=120)
        case.validate_response(reply, checks=CHECKS)

    knock()


def test_the_document_is_the_one_that_was_agreed() -> None:
    agreed = json.loads(TARGET.read_text("utf-8"))
    ids = [
        operation["operationId"] for path in agreed["paths"].values() for operation in path.values()
    ]
    assert len(ids) == len(set(ids))
    assert not any("__" in identity or "api_v1" in identity for identity in ids)
    assert json.loads(document()) == agreed, (
        "if this change of the contract is meant, run: python -m scripts.write_openapi"
    )
    assert PAGE.read_text("utf-8") == page(TARGET.read_text("utf-8")), (
        "run: python -m scripts.write_openapi"
    )
