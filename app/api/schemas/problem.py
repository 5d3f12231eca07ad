"""The one shape of errors."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Problem(BaseModel):
    """RFC 9457 problem details, with a stable code."""

    type: str = Field(
        description="a URI that names the kind of problem", examples=["urn:documind:not_found"]
    )
    title: str = Field(description="the status's own phrase")
    status: int
    detail: str = Field(description="the wrong value, the expected one, and what to do")
    code: str = Field(description="stable, for programs", examples=["not_found"])
    retryable: bool = Field(description="whether the same request may succeed later")
    request_id: str = Field(description="as in the X-Request-ID header and the server's log")
