from __future__ import annotations

import pytest

from app.core.types import Verdict
from app.generation.reading import Claim, ReadPassage
from app.generation.support import SupportJudge, verdict_of

MEADOW = """The north gate closes at six, the south gate at nine. The oldest tree is an oak of 410 \
years; the tallest is a spruce of 38 metres. Lena Hauge hired Per Moe as keeper in 2016, two years \
after the fence was built. Dogs must never run free on the meadow. First lock the shed, then switch \
off the pump. The mill is old. It grinds rye and stands by the brook. Its wheel turns once a minute.

| Bed | Tulips | Roses |
|---|---|---|
| East | 120 | 45 |
| West | 80 | 60 |
"""


def verdict(claim: str, text: str = MEADOW) -> Verdict:
    passage = ReadPassage.of_text(text)
    found = SupportJudge().examine([passage], source_given=True).compare(Claim(claim), passage)
    return verdict_of([found] if found else [], 0.45)[0]


@pytest.mark.parametrize(
    "claim",
    [
        "The north gate closes at six.",
        "The south gate closes at nine.",
        "The tallest tree is a spruce of 38 metres.",
        "Lena Hauge hired Per Moe.",
        "Per Moe was hired by Lena Hauge in 2016.",
        "In 2016 Lena Hauge hired Per Moe as keeper.",
        "Dogs are not allowed to run free on the meadow.",
        "First lock the shed, then switch off the pump.",
        "The mill grinds rye.",
        "The wheel of the mill turns once a minute.",
        "The west bed has 60 roses.",
        "There are 120 tulips in the east bed.",
        "The east bed has more tulips than the west bed.",
        "The west bed has the most roses.",
    ],
)
def test_what_stands_together_in_one_place_is_supported(claim: str) -> None:
    assert verdict(claim) == "supported"


@pytest.mark.parametrize(
    "claim",
    [
        "The north gate closes at nine.",
        "The south gate closes at six.",
        "Per Moe hired Lena Hauge.",
        "Dogs may run free on the meadow.",
        "The mill grinds no rye.",
        "The east bed has 80 tulips.",
        "The east bed has 45 tulips.",
        "The west bed has more tulips than the east bed.",
        "The east bed has the most roses.",
    ],
)
def test_another_figure_role_denial_or_comparison_contradicts(claim: str) -> None:
    assert verdict(claim) == "contradicted"


@pytest.mark.parametrize(
    "claim",
    [
        "The oldest tree is a spruce.",
        "The tallest tree is 410 years old.",
        "The fence was built after Per Moe was hired.",
        "First switch off the pump, then lock the shed.",
        "Lena Hauge was hired in 2016.",
        "The fence was built in 2016.",
        "The mill grinds rye and oats.",
        "Only the east bed has roses.",
    ],
)
def test_words_of_two_places_never_add_up(claim: str) -> None:
    assert verdict(claim) != "supported"


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("The owner of the dog barked.", "supported"),
        ("The dog barked.", "weak"),
        ("Anna sold a house.", "supported"),
        ("Anna bought a house.", "weak"),
        ("The cook peels potatoes.", "supported"),
        ("The helper peels potatoes.", "weak"),
        ("Ben met Carl.", "weak"),
        ("Some huts have beds.", "supported"),
        ("All huts have beds.", "contradicted"),
        ("You may swim with a guide.", "weak"),
        ("The match is cancelled.", "weak"),
        ("The dog barks loudly at noon.", "weak"),
    ],
)
def test_what_may_be_left_out_of_a_sentence(claim: str, said: Verdict) -> None:
    text = (
        "The owner of the dog barked. Anna bought a car and sold a house. The cook peels potatoes"
        " and the helper onions. Ben met Dora and Carl met Eva. Some huts have beds. You may swim"
        " only with a guide. If it rains, the match is cancelled. The dog barks loudly at night."
    )
    assert verdict(claim, text) == said


def test_a_claim_in_another_language_is_supported_word_for_word_only() -> None:
    text = (
        "Kein Mitglied darf im Mai Abfall verbrennen, und die Wege sind am Abend geschlossen."
        " Der Turm ist f\u00fcr alle offen."
    )
    assert verdict("Der Turm ist f\u00fcr alle offen.", text) == "supported"
    assert verdict("Mitglied darf im Mai Abfall verbrennen.", text) != "supported"
    assert verdict("Der Turm ist offen.", text) == "weak"
