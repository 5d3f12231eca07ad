from __future__ import annotations

import pytest

from app.generation.check.citations import claim_spans, plain_claim

PAGE = """# Results of the trial

Response time
=============

**Findings**

The method was tested on twelve benchmarks. It fell short on two.

We looked at three things:
- accuracy rose by 3 points
- `run --all`

| model | accuracy |
|---|---|
| small | 71 |

```
print("The moon is made of cheese.")
```

Why does it work?
"""


def test_headings_table_heads_code_and_lead_ins_claim_nothing() -> None:
    said = {plain_claim(PAGE[start:end]): claims for start, end, claims in claim_spans(PAGE)}
    assert [text for text, claims in said.items() if claims] == [
        "The method was tested on twelve benchmarks.",
        "It fell short on two.",
        "accuracy rose by 3 points",
        "small 71",
    ]


@pytest.mark.parametrize(
    "text",
    ["Ann asks Mike to buy butter", "The Moon", "Apple Buys Beats\nIt paid 3 billion dollars."],
)
def test_a_line_that_no_text_stands_under_may_be_a_claim(text: str) -> None:
    assert claim_spans(text)[0][2]
