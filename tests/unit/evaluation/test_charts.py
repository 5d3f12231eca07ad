"""The chart of a report: whole, within its frame, from values that may be equal, zero or hostile."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from app.evaluation.report import Point, chart

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
def test_every_arm_is_in_the_chart_and_within_the_frame(points: list[Point]) -> None:
    picture = ET.fromstring(chart(points, "nDCG@10"))
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    dots = list(picture.iter("circle"))
    assert [dot.findtext("title", "").rpartition(":")[0] for dot in dots] == [
        point.arm for point in points
    ]
    assert all(
        0 <= float(dot.attrib["cx"]) <= width and 0 <= float(dot.attrib["cy"]) <= height
        for dot in dots
    )
    texts = [text.text or "" for text in picture.iter("text")]
    assert all(point.arm in texts and f"{point.p50_ms:.1f} ms" in texts for point in points)
    assert any("nDCG@10" in text for text in texts)


def test_a_chart_by_hand() -> None:
    points = [Point("a", 0.25, 0.0, 0.5, 1.0), Point("b", 0.5, 0.5, 1.0, 2.0)]
    drawn = ET.fromstring(chart(points, "nDCG@10"))
    assert [float(dot.attrib["cx"]) for dot in drawn.iter("circle")] == [115.0, 230.0]
    alike = ET.fromstring(chart([Point("a", 0.5, 0.5, 0.5, 1.0)], "nDCG@10"))
    assert [float(dot.attrib["cx"]) for dot in alike.iter("circle")] == [230.0]
