"""Define what the program knows of a language."""

from __future__ import annotations

from dataclasses import dataclass

LATIN = "A-Za-z\u00aa-\u024f\u1e00-\u1eff"
"""Letters of the Latin script, for an expression's class."""


@dataclass(frozen=True, slots=True)
class Language:
    """One language; each step that depends on the language reads it from here."""

    code: str
    """ISO 639-1."""
    name: str
    """In English."""
    function_words: str
    """Words that shape a question, not its topic, separated by spaces; by them texts of one script
    are told apart."""
    refusal: str
    """Says that the documents do not answer the question."""
    greeting: str
    """Answers a greeting."""
    welcome: str
    """Answers thanks."""
    greetings: tuple[str, ...]
    """Expressions of greetings, in lower case without accents."""
    thanks: tuple[str, ...]
    """Expressions of thanks, the same."""
    what_is: str = ""
    """Asks for a definition, with `{}` for what is defined; empty: no question is suggested."""
    is_a: str = ""
    """Expression of the words between a thing and its definition, as ` ist (?:ein|der)`."""
    stemmer: str = ""
    """Snowball algorithm; empty: words are not stemmed."""
    letters: str = LATIN
    """Letters of its script, for an expression's class."""
    abbreviations: str = ""
    """After these words a full stop does not end a sentence: in lower case, without the stop."""
    nouns_are_capitalised: bool = False
    """Whether a capital inside a sentence does not mean a name."""
    connectives: str = ""
    """Words that join claims or shade them: they tell in a question, not in a statement."""
