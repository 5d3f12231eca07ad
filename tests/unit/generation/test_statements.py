from __future__ import annotations

import pytest

from app.core.types import Verdict
from app.generation.check.support import ClaimComparer, Origin, verdict_of
from app.generation.language.claims import Claim, ReadPassage

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
    return read_off(claim, text, "source")


def read_off(claim: str, text: str, are: Origin) -> Verdict:
    passage = ReadPassage.of_text(text)
    return verdict_of(
        ClaimComparer([passage], None, are).compare(Claim(claim), [passage]).values()
    )[0]


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
        ("The dog barked.", "unsure"),
        ("Anna sold a house.", "supported"),
        ("Anna bought a house.", "unsure"),
        ("The cook peels potatoes.", "supported"),
        ("The helper peels potatoes.", "unsure"),
        ("Ben met Carl.", "unsure"),
        ("Some huts have beds.", "supported"),
        ("All huts have beds.", "contradicted"),
        ("You may swim with a guide.", "unsure"),
        ("The match is cancelled.", "unsure"),
        ("The dog barks loudly at noon.", "unsure"),
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
    assert verdict("Der Turm ist offen.", text) == "unsure"


SHOP = """Jonas Lind (1890-1951), printer

Jonas Lind was born in Vik. He learnt the trade in Oslo. In 1922 he opened the shop, his second; it \
burnt down in the fire of 1931. He married the teacher Ada Roos in 1925. Pull the upper cover off \
and clean it. Use two wooden blocks; iron ones scratch the plate. Heat the press to 60 degrees for \
card and to 40 degrees for paper. Many people lived here, but in 1950 only nine. Members pay 3 \
euros less for books, but not for maps. The press was named after Ole Holm, who was also known as \
Inky.
"""


@pytest.mark.parametrize(
    "claim",
    [
        "The shop was opened by Lind in 1922.",  # a surname, a phrase at the other end
        "Lind married Ada Roos, a teacher, in 1925.",
        "The upper cover is pulled off.",
        "Iron blocks scratch the plate.",
        "For card the press is heated to 60 degrees.",
    ],
)
def test_the_same_said_in_another_order_is_supported(claim: str) -> None:
    assert verdict(claim, SHOP) == "supported"


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("Heat the press to 40 degrees for card.", "contradicted"),
        ("Members pay 3 euros less for maps.", "contradicted"),
        ("Many people lived here in 1950.", "unsure"),  # what stands behind a contrast
        ("The press was named before Ole Holm, who was also known as Inky.", "contradicted"),
        ("The press was sold to Ole Holm, who was also known as Inky.", "unsure"),
    ],
)
def test_a_part_of_a_claim_does_not_carry_the_rest(claim: str, said: Verdict) -> None:
    assert verdict(claim, SHOP) == said


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The vault was built in the 17th century.", "The vault was finished in 1672."),
        ("Half of them had left by the 1700s.", "Half of them had left by the 18th century."),
        (
            "It binds to the class 1 receptor of a cell.",
            "It binds to a class I receptor of a cell.",
        ),
        ("It honours the dead of WWII.", "It honours the dead of World War II."),
        (
            "The fence was built in 2014.",
            "Per was hired in 2016, two years after the fence was built.",
        ),
    ],
)
def test_a_figure_in_another_form_does_not_contradict(claim: str, text: str) -> None:
    assert verdict(claim, text) in ("supported", "unsure")


def test_what_a_search_found_contradicts_only_where_it_lacks_no_other_word() -> None:
    text = "The ranker was an encoder of 22 million parameters that read each passage once."
    claims = {
        "An encoder of 500 million parameters read each passage once.": "contradicted",
        "The translator Babel has 500 million parameters.": "unsure",
    }
    for claim, said in claims.items():
        assert read_off(claim, text, "search") == said


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("The base model has 110 million parameters.", "supported"),
        ("The base model has 110,000,000 parameters.", "supported"),
        ("The base model has 110 billion parameters.", "contradicted"),
        ("The large model has 1.5 billion parameters.", "supported"),
    ],
)
def test_a_number_with_a_letter_is_the_number_in_words(claim: str, said: Verdict) -> None:
    assert (
        verdict(claim, "The base model has 110M parameters, the large model has 1.5B parameters.")
        == said
    )


def test_an_opposite_somewhere_else_contradicts_only_what_was_written_from_the_text() -> None:
    text = "The old mill stands at the first bridge and was the name of a large inn of the town."
    claim = "The new inn was painted and has the name of the mill at the first bridge."
    assert read_off(claim, text, "source") == "contradicted"
    assert read_off(claim, text, "evidence") == "unsure"
