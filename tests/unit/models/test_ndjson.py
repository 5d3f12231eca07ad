"""Lines of JSON from a host, however the network cuts them and whatever the host sends."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import cast

import pytest
import requests
from hypothesis import example, given
from hypothesis import strategies as st

from app.core.cancel import CancelToken
from app.core.errors import ProviderBadResponse
from app.models.errors import error_text
from app.models.http import Count, Flag, FromHost, Items, Number, StreamReply, Text, Texts, Tokens
from app.models.sockets import SocketWatch

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(
    st.sampled_from(["response", "done", "children", "texts", "n", "m", "k", "\u2028"]),
    JSON,
    max_size=4,
)


class Reply(FromHost):
    """Every kind of field."""

    response: Text = ""
    n: Count | None = None
    m: Tokens | None = None
    k: Number = 0.0
    done: Flag = False
    texts: Texts = ()
    children: Items[Reply] = ()


class _Blocks:
    """What urllib3 gives: one read of the socket after the other, then nothing."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter([*filter(None, blocks)])

    def read1(self, _: int, *, decode_content: bool) -> bytes:
        assert decode_content
        return next(self._blocks, b"")


def reply(blocks: Iterable[bytes]) -> StreamReply:
    response = SimpleNamespace(status_code=200, headers={}, raw=_Blocks(blocks))
    return StreamReply(
        cast("requests.Response", response),
        "Host",
        CancelToken(),
        SocketWatch(),
        silence_s=300.0,
        deadline=None,
    )


def cut(content: bytes, places: Iterable[int]) -> list[bytes]:
    at = sorted({min(place, len(content)) for place in places} | {0, len(content)})
    return [content[begin:end] for begin, end in itertools.pairwise(at)]


@given(
    st.lists(OBJECTS, max_size=6),
    st.lists(st.integers(0, 2000), max_size=12),
    st.booleans(),
    st.booleans(),
)
@example([{"response": "a\u2028b\u0085c\u000bd\r"}], list(range(80)), False, True)
def test_objects_come_out_as_they_went_in_wherever_the_network_cuts(
    objects: list[dict[str, object]], places: list[int], escaped: bool, ended: bool
) -> None:
    content = "\n".join(json.dumps(one, ensure_ascii=escaped) for one in objects).encode(
        "utf-8", "surrogatepass"
    )
    content += b"\n" if ended and objects else b""
    lines = [line for line in reply(cut(content, places)).lines() if line.strip()]
    assert [json.dumps(json.loads(line)) for line in lines] == [json.dumps(one) for one in objects]
    for line in lines:
        Reply.parse(line, "Host")


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=8))
def test_no_byte_is_lost_added_or_moved(content: bytes, places: list[int]) -> None:
    joined = b"\n".join(reply(cut(content, places)).lines())
    assert joined == content.removesuffix(b"\n")


@given(st.lists(st.binary(max_size=60), max_size=8), st.integers(1, 40))
def test_a_line_over_the_limit_is_refused_and_none_under_it(
    blocks: list[bytes], limit: int
) -> None:
    longest = max(map(len, b"".join(blocks).split(b"\n")))
    if longest > limit:
        with pytest.raises(ProviderBadResponse, match="more than"):
            list(reply(blocks).lines(limit))
    else:
        list(reply(blocks).lines(limit))


@given(st.binary(max_size=200) | st.text(max_size=200) | JSON.map(json.dumps))
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example('{"n": -5, "m": 1e30, "k": 1000000000000000000000000000000}')
@example('{"n": Infinity, "m": NaN, "k": 1e999}')
@example('{"n": true, "m": "3", "k": "3", "done": 1, "texts": ["a", 1], "children": [{}, 2, null]}')
@example('{"response": "\\ud83d", "n": 3.0, "m": 100000001, "children": {"n": 1}, "texts": "abc"}')
def test_whatever_a_host_sends_is_an_object_or_a_bad_response(line: bytes | str) -> None:
    try:
        read = Reply.parse(line, "Host")
    except ProviderBadResponse:
        return
    assert isinstance(read.response, str)
    assert read.n is None or 0 <= read.n <= 2**53
    assert read.m is None or 0 <= read.m <= 10**8
    assert math.isfinite(read.k)
    assert isinstance(read.done, bool)
    assert all(isinstance(one, Reply) for one in read.children)
    assert all(isinstance(one, str) for one in read.texts)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"error":' * 100_000,
        '{"error": {"message": 1e999}}',
        "<html>busy</html>",
        "",
    ],
)
def test_the_message_of_a_failure_is_found_in_any_body(text: str) -> None:
    assert isinstance(error_text(text), str)
