"""Which places `make words` counts, in texts written for it."""

from pathlib import Path

from scripts import words

PAGE = """# Title

The old index stands beside the new one. `beside` in code is a name.

```
nobody reads this
```

A list of the names of the files of a folder.
The size of the file of a user, and of the page, is two links.
"""

CODE = '''"""What a module is for."""

LIMIT = 3
"""Whatever the caller asks for."""


def ask(name: str) -> str:
    """Return the answer to a question, with a first line that is longer than eighty characters."""
    # made anew for each call
    words = "whoever"
    return f"nobody answers {name!r}"
'''

VIEW = """/** Meanwhile, the rest is shown. */
export const url = "http://host/whatever";
export const View = () => <p title="beside it">Nobody is here</p>;
"""


def _repository(root: Path) -> Path:
    for name, text in (("README.md", PAGE), ("app/code.py", CODE), ("web/src/view.tsx", VIEW)):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_each_place_is_found_once_with_its_kind_and_line(tmp_path: Path) -> None:
    root = _repository(tmp_path)

    places = {
        (place.path.relative_to(root).as_posix(), place.line, place.kind, place.found)
        for place in words.count(root).places
    }

    assert places == {
        ("README.md", 3, "docs", "beside"),
        ("README.md", 9, "docs", "of the names of the files of"),
        ("app/code.py", 1, "openers", "What a module is for."),
        ("app/code.py", 4, "docstrings", "Whatever"),
        ("app/code.py", 9, "comments", "anew"),
        ("app/code.py", 11, "messages", "nobody"),
        ("web/src/view.tsx", 1, "web", "Meanwhile"),
        ("web/src/view.tsx", 3, "web", "beside"),
        ("web/src/view.tsx", 3, "web", "Nobody"),
    }


def test_rates_are_per_words_of_their_kind_and_a_limit_passed_is_a_failure(tmp_path: Path) -> None:
    tally = words.count(_repository(tmp_path))

    lines, passed = words.report(tally)

    assert not passed
    assert tally.docstrings == 2
    assert tally.percent("openers") == 50
    assert tally.per_10_000("comments") == 10_000 / len("made anew for each call".split())
    assert any("2 docstrings: 50.0 % begin with a question word" in line for line in lines)


def test_plain_words_pass(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(
        "Ask a question. The answer cites its sources.\n", encoding="utf-8"
    )

    assert words.report(words.count(tmp_path))[1]
