"""The charts of a report: whole, within their frame, from values that may be equal, zero or hostile."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.evaluation.report import Point, Scale, quality, quality_by_time

SHARES = st.floats(0, 1)
POINTS = st.lists(
    st.builds(
        lambda arm, values, ms: Point(arm, values[1], values[0], values[2], ms),
        st.sampled_from(["baseline", "a <b> & 'c'", "fusion rrf"]),
        st.tuples(SHARES, SHARES, SHARES).map(sorted),
        st.floats(0, 1e5),
    ),
    min_size=1,
    max_size=8,
)


@given(POINTS)
def test_every_arm_is_in_both_charts_and_within_the_frame(points: list[Point]) -> None:
    for drawn in (quality(points, "nDCG@10"), quality_by_time(points, "nDCG@10")):
        picture = ET.fromstring(drawn)
        width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
        dots = list(picture.iter("circle"))
        assert [dot.findtext("title", "").rpartition(":")[0].split(":")[0] for dot in dots] == [
            point.arm for point in points
        ]
        assert all(
            0 <= float(dot.attrib["cx"]) <= width and 0 <= float(dot.attrib["cy"]) <= height
            for dot in dots
        )
        texts = [text.text for text in picture.iter("text")]
        assert all(point.arm in texts for point in points)
        assert "nDCG@10" in texts


def test_a_scale_by_hand() -> None:
    assert [Scale(0.0, 1.0, 100)(value) for value in (0.0, 0.25, 1.0)] == [0.0, 25.0, 100.0]
    assert Scale(1.0, 100.0, 200, log=True)(10.0) == pytest.approx(100.0)
    assert Scale(1.0, 16.0, 1, log=True).ticks() == pytest.approx([1, 2, 4, 8, 16])
    assert Scale(0.5, 0.5, 100)(0.5) == 50.0
    assert Scale(0.5, 0.5, 100).ticks() == [0.5]
