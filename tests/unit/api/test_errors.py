"""Every error class has one status, and every reply of an error one shape."""

from __future__ import annotations

import json

import pytest

from app.api.errors import STATUS, declared, problem_of, response_of, status_of, status_of_code
from app.api.routes.ingest import outcome_response
from app.client import error_from
from app.core import errors
from app.core.types import IngestOutcome, Job, json_values
from app.jobs.payloads import IngestReport

# The codes of docs/http.md.
CONTRACT = {
    "invalid_input": 422,
    "unsupported_type": 415,
    "encrypted": 422,
    "no_text_layer": 422,
    "unreadable": 422,
    "too_large": 413,
    "not_found": 404,
    "no_original": 404,
    "unauthorized": 401,
    "host_refused": 403,
    "origin_refused": 403,
    "forbidden": 403,
    "conflict": 409,
    "superseded": 409,
    "fingerprint_mismatch": 409,
    "model_not_installed": 503,
    "provider_unreachable": 502,
    "provider_timeout": 504,
    "provider_bad_response": 502,
    "busy": 503,
    "disk_full": 507,
    "database_away": 503,
    "search_away": 503,
    "originals_away": 503,
    "index_damaged": 503,
    "locked": 409,
    "rate_limited": 429,
}


@pytest.mark.parametrize(("code", "status"), CONTRACT.items())
def test_the_table_of_the_contract(code: str, status: int) -> None:
    assert status_of_code(code) == status
    error = error_from({"code": code, "detail": "why"})
    assert (error.code, error.message, status_of(type(error))) == (code, "why", status)


def test_no_code_is_missing_from_the_contract() -> None:
    assert {cls.code for cls in errors.error_classes().values()} - {"internal", "cancelled"} == set(
        CONTRACT
    )
    assert set(STATUS) <= set(errors.error_classes().values())


def test_a_new_class_answers_like_its_parent() -> None:
    class Unfindable(errors.NotFound):
        """A kind of NotFound."""

    assert status_of(Unfindable) == 404


def test_a_problem_survives_what_no_encoding_can_carry() -> None:
    reply = response_of(errors.InvalidInput("bad \ud800 and \x00"), "req1")
    body = json.loads(bytes(reply.body))
    assert reply.media_type == "application/problem+json"
    assert body == problem_of(errors.InvalidInput("bad \ud800 and \x00"), "req1")
    assert set(body) == {"type", "title", "status", "detail", "code", "retryable", "request_id"}


def test_overload_says_when_to_come_back() -> None:
    assert response_of(errors.Busy("full", retry_after_s=2.4), "r").headers["retry-after"] == "2"
    assert response_of(errors.RateLimited("slow down"), "r").headers["retry-after"] == "1"
    assert response_of(errors.Unauthorized("key"), "r").headers["www-authenticate"] == "Bearer"
    assert "retry-after" not in response_of(errors.NotFound("gone"), "r").headers


@pytest.mark.parametrize(
    ("code", "retryable", "after"),
    [("database_away", True, "5"), ("search_away", True, "5"), ("index_damaged", False, None)],
)
@pytest.mark.parametrize("whole", [True, False])
def test_an_upload_that_was_waited_for_says_whether_to_send_it_again(
    code: str, retryable: bool, after: str | None, whole: bool
) -> None:
    """Whether the job failed, or each of its files."""
    result: dict[str, object] = {"error": {"code": code, "detail": "why"}}
    if not whole:
        failed = IngestOutcome("a.txt", None, "failed", code=code, reason="why")
        result = json_values(IngestReport("text", (failed,)))
    job = Job("j", "ingest", "failed", 0, 1, "files", None, (), (), {}, result, "", "")
    reply = outcome_response(job, "r")
    assert (reply.status_code, reply.headers.get("retry-after")) == (503, after)
    assert json.loads(bytes(reply.body))["retryable"] is retryable


def test_every_route_declares_what_the_layers_around_it_may_say() -> None:
    assert {401, 403, 422, 429, 503} <= set(declared())
    assert {404, 507} <= set(declared("not_found", "disk_full"))
