"""Compute features of sentences for a question.

Rows are compared within one question only, so signals whose scale depends on a model or a library
are used relative to the other candidates; that lets one set of weights serve any embedder.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from app.core.languages import DEFAULT, LANGUAGES, language_of
from app.core.ports import PassageEncoder
from app.core.text import CLAIMLESS_WORDS, tokenise, word_count, words
from app.core.types import Evidence, Passage
from app.core.vectors import max_sim
from app.generation.language.claims import (
    ReadPassage,
    WeightedTokens,
    content_tokens,
    is_named,
    opposites,
    read_passage,
    specifics,
    spelt_figures,
    term_weights,
)
from app.generation.quote.candidates import Candidate

# Find which kind of answer a question asks for, and whether a sentence brings one.

_KINDS = {
    "time": re.compile(
        r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|century|decade|period|era|time)\b|\bhow"
        r" (?:long|recent)",
        re.IGNORECASE,
    ),
    "number": re.compile(
        r"\bhow (?:many|much|often|old|far|large|big|tall|high|deep|fast|wide)\b"
        r"|\b(?:what|which) (?:percentage|percent|number|amount|fraction|proportion|share)\b",
        re.IGNORECASE,
    ),
    "name": re.compile(
        r"\bwho(?:m|se)?\b|\bwhere\b|\bname of\b"
        r"|\b(?:what|which)"
        r" (?:person|king|queen|president|author|leader|scientist|country|city|state|place|region"
        r"|continent|county)\b",
        re.IGNORECASE,
    ),
    "reason": re.compile(
        r"\bwhy\b|\bwhat (?:causes?|caused|led|made)\b|\breasons?\b", re.IGNORECASE
    ),
}
KINDS = ("time", "number", "name", "reason")
"""In the order of their columns among the features of a sentence."""
TIME = re.compile(
    r"\b(?:(?:in|by|until|since|from|around|circa) \d{3,4}|1\d{3}s?|20\d{2}s?|\d+ ?(?:bc|ad|bce"
    r"|ce)|\d{1,2}(?:st|nd|rd|th)"
    r"|centur(?:y|ies)|decades?|january|february|march|april|june|july|august|september|october"
    r"|november|december"
    r"|years?|months?|days?|weeks?|hours?)\b",
    re.IGNORECASE,
)
FIGURE = re.compile(
    r"\d[\d,.]*|\b(?:two|three|four|five|six|seven|eight|nine|ten|dozens?|hundreds?|thousands?"
    r"|millions?|billions?|half|percent)\b",
    re.IGNORECASE,
)
CAUSE = re.compile(
    r"\b(?:because|due to|since|so that|in order to|as a result|caus(?:e|es|ed)|reasons?|therefore"
    r"|thus|owing|led to)\b",
    re.IGNORECASE,
)


def question_kinds(question: str) -> frozenset[str]:
    """Return a question's answer kinds: some of time, number, name, reason."""
    return frozenset(kind for kind, pattern in _KINDS.items() if pattern.search(question))


_DATE = re.compile(
    r"\b(?:1\d{3}|20\d{2}|\d{1,4} ?(?:bc|ad|bce|ce)|(?:january|february|march|april|may|june|july"
    r"|august|september|october|november|december) \d|\d{1,2}(?:st|nd|rd|th) centur(?:y|ies))\b",
    re.IGNORECASE,
)
_LASTED = re.compile(r"(?:years?|months?|weeks?|days?|hours?|minutes?|seconds?)\b", re.IGNORECASE)
_PLACED = re.compile(
    r"\b(?:in|at|near|from|to|on|of|outside|around|between) (?:the )?(?=[^\W\d_a-z])[\w'-]+"
)
_ASKS_PLACE = re.compile(
    r"\bwhere\b|\b(?:what|which) (?:country|city|state|place|region|continent|county|town|river)\b",
    re.IGNORECASE,
)
_UNITS = {
    r"\bhow (?:tall|high|deep|far|wide|large|big|long)\b": (
        r"(?:k?m|cm|mm|(?:kilo|centi|milli)?met(?:er|re)s?|feet|foot|ft|miles?|inch(?:es)?|yards?"
        r"|hectares?|acres?|square|sq|light-years?)\b"
    ),
    r"\bhow old\b": r"years?\b",
    r"\bhow fast\b": r"(?:km/h|mph|m/s|knots?|\w+ (?:an?|per) (?:hour|second))\b",
    r"\b(?:percent(?:age)?|proportion|share)\b": r"(?:%|per ?cent|percent)",
    r"\bhow long (?:did|does|do|was|were|is|are|has|have|had|will|would)\b": _LASTED.pattern,
}
"""What a question asks, and the unit that then stands behind the figure."""
_HOW_MANY = re.compile(r"\bhow (?:many|much) ((?:[\w'-]+ ?){1,4})", re.IGNORECASE)
_VERB = re.compile(
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might|must)\Z",
    re.IGNORECASE,
)
_BEHIND = 40
"""Characters behind a figure in which its noun stands."""


def matches_answer_type(question: str, sentences: Sequence[str], kind: str) -> list[bool]:
    """Return of each sentence whether it brings what a kind of question asks for.

    A number counts with its noun or unit, a time as a date or a span, a name as a place where one
    is asked. Where no sentence has it so, any number, time or name that the question does not
    have counts.

    Args:
        question: It asks for this kind.
        sentences: The candidates.
        kind: `time`, `number`, `name` or `reason`.
    """
    if kind == "reason":
        return [CAUSE.search(sentence) is not None for sentence in sentences]
    exact = [_EXACT[kind](question, sentence) for sentence in sentences]
    if any(exact):
        return exact
    if kind == "name":
        known = set(tokenise(question))
        return [bool(specifics(sentence).names - known) for sentence in sentences]
    pattern = TIME if kind == "time" else FIGURE
    return [brings(pattern, sentence, question) for sentence in sentences]


def brings(pattern: re.Pattern[str], sentence: str, question: str) -> bool:
    """Return whether a sentence has a match that the question does not name."""
    named = question.lower()
    return any(match.group().lower() not in named for match in pattern.finditer(sentence))


def _dated(question: str, sentence: str) -> bool:
    if re.search(r"\bhow long\b", question, re.IGNORECASE):
        return _counts(question, sentence)
    return brings(_DATE, sentence, question)


def _placed(question: str, sentence: str) -> bool:
    return bool(_ASKS_PLACE.search(question)) and brings(_PLACED, sentence, question)


def _counts(question: str, sentence: str) -> bool:
    """Return whether a figure stands before the noun or the unit that is asked for."""
    noun = _noun(question)
    units = [unit for asked, unit in _UNITS.items() if re.search(asked, question, re.IGNORECASE)]
    named = question.lower()
    for figure in FIGURE.finditer(sentence):
        if figure.group().lower() in named:
            continue
        behind = sentence[figure.end() : figure.end() + _BEHIND]
        if noun and noun in tokenise(behind):
            return True
        if any(re.match(rf"[\s-]*{unit}", behind, re.IGNORECASE) for unit in units):
            return True
    return False


def _noun(question: str) -> str | None:
    """Return the stem of what "how many" counts."""
    stems = tokenise(_counted(question))
    return stems[0] if stems else None


def _counted(question: str) -> str:
    """Return the word for what "how many" counts; empty where it asks for a measure."""
    match = _HOW_MANY.search(question)
    if match is None:
        return ""
    behind = match[1].split()
    at = next((at for at, word in enumerate(behind) if _VERB.match(word)), None)
    if at == 0:  # "how much does it cost"
        return ""
    return behind[0] if at is None else behind[at - 1]


_EXACT: dict[str, Callable[[str, str], bool]] = {"time": _dated, "number": _counts, "name": _placed}


Floats = npt.NDArray[np.float64]

FEATURES = (
    "coverage",  # idf-weighted share of the question's words in the sentence
    "coverage_around",  # the same with its neighbouring sentences
    # the same of the next sentence alone: the answer seldom stands before what it answers
    "coverage_next",
    "coverage_passage",  # the same of title and passage
    "coverage_rank",  # coverage less the best of all candidates
    # share of the question's character 4-grams, idf-weighted: other endings, typing errors
    "grams",
    "pairs",  # share of the question's neighbouring content words that are neighbours here
    "similarity",  # cosine to the question in standard deviations from the mean of the candidates
    "similarity_around",  # the better neighbour's
    "similarity_with_previous",  # of the mean of the sentence's vector and the one before it
    "similarity_of_words",  # MaxSim of the question's words, in standard deviations
    "passage",  # score of the passage relative to the best
    "time",  # asked for a time, and it names one that the question does not
    "number",  # asked for a number, likewise
    "name",  # asked for a person or place, and it has a name that the question does not
    "reason",  # asked why, and it has a word of cause
    "whole",  # begins and ends like a sentence
    "carried",  # opens with a pronoun, times the coverage of the sentence before it
    "length",  # logarithm of its words
)
"""Columns of `feature_rows`, in order."""

MAX_EMBEDDED = 24
"""Sentences embedded per question; with MiniLM int8 on two idle cores about 50 ms."""


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Sentence vectors of one question."""

    rows: npt.NDArray[np.float32]
    """`[n, dim]`, norm 1; zeros where a candidate was not embedded."""
    query: npt.NDArray[np.float32]
    """`[dim]`, norm 1."""
    cosines: Floats
    """float64 `[n]` in [-1, 1]; NaN where a candidate was not embedded."""
    of_words: Floats
    """MaxSim of the question's content words, likewise."""

    def stands_out(self, row: int) -> float:
        """Return how far a candidate's cosine is above the median, as a share of the highest.

        A difference of cosines over a cosine: free of the scale that an embedder gives them.
        0 where the candidate was not embedded or none is like the question.
        """
        highest = float(np.nanmax(self.cosines))
        if math.isnan(self.cosines[row]) or highest <= 0:
            return 0.0
        return (float(self.cosines[row]) - float(np.nanmedian(self.cosines))) / highest


def sentence_vectors(
    question: str,
    found: Sequence[Candidate],
    weights: Mapping[str, float],
    encoder: PassageEncoder | None,
) -> Vectors | None:
    """Return vectors of the lexically best candidates.

    A sentence is embedded behind its document's title, so that "it" has something to mean; one that
    the encoder would have to cut is not embedded. None without an encoder or candidates.
    """
    if encoder is None or not found:
        return None
    tokens = content_tokens(question)
    asked = WeightedTokens(tokens, weights)
    by_key = {candidate.key: candidate for candidate in found}
    promise = [
        asked.share(around(candidate, by_key)) + 1.0 / (1 + candidate.item.n) for candidate in found
    ]
    chosen = [int(row) for row in np.argsort(-np.asarray(promise), kind="stable")[:MAX_EMBEDDED]]
    texts = [in_place(found[row]) for row in chosen]
    fits = [count <= encoder.identity.max_tokens for count in encoder.count_tokens(texts)]
    rows = [row for row, fit in zip(chosen, fits, strict=True) if fit]
    if not rows:
        return None
    code = encoder.encode_question(question)
    vectors = np.zeros((len(found), len(code.vector)), dtype=np.float32)
    vectors[rows], codes = encoder.embed_and_encode(
        [text for text, fit in zip(texts, fits, strict=True) if fit]
    )
    cosines, of_words = np.full((2, len(found)), np.nan)
    cosines[rows] = vectors[rows] @ code.vector
    of_words[rows] = max_sim(code, {token: weights.get(token, 1.0) for token in tokens}, codes)
    return Vectors(vectors, code.vector, cosines, of_words)


def in_place(candidate: Candidate) -> str:
    """Return a sentence behind what it belongs to."""
    title = candidate.item.hit.passage.document.title
    return " ".join(filter(None, (f"{title}:", candidate.above, candidate.spelt)))


def feature_rows(
    question: str, found: Sequence[Candidate], weights: Mapping[str, float], vectors: Vectors | None
) -> Floats:
    """Return one row of FEATURES per candidate, float64 `[n, len(FEATURES)]`.

    Args:
        question: What was asked.
        found: Candidates of one question.
        weights: Weight per stemmed token, from `term_weights` over the candidates.
        vectors: From `sentence_vectors`.
    """
    asked = content_tokens(question)
    pairs = set(pairwise(asked))
    kinds = question_kinds(question)
    by_key = {candidate.key: row for row, candidate in enumerate(found)}
    wanted = WeightedTokens(asked, weights)
    own = [wanted.share(candidate.read) for candidate in found]
    best_own = max(own, default=0.0)
    best_score = max((candidate.item.hit.score for candidate in found), default=1.0) or 1.0
    passages = {
        n: wanted.share(read_passage(item.hit.passage).with_title)
        for n, item in {candidate.item.n: candidate.item for candidate in found}.items()
    }
    grams = _gram_shares(question, found)
    similar = _similarities(found, by_key, vectors)
    lookup = {candidate.key: candidate for candidate in found}
    texts = [candidate.text for candidate in found]
    brought = {kind: matches_answer_type(question, texts, kind) for kind in kinds}
    nothing = [False] * len(found)
    rows = []
    for row, candidate in enumerate(found):
        before = by_key.get((candidate.item.n, candidate.ordinal - 1))
        after = by_key.get((candidate.item.n, candidate.ordinal + 1))
        ordered = content_tokens(f"{candidate.above} {candidate.text}")
        rows.append(
            [
                own[row],
                wanted.share(around(candidate, lookup)),
                own[after] if after is not None else 0.0,
                passages[candidate.item.n],
                own[row] - best_own,
                grams[row],
                len(pairs & set(pairwise(ordered))) / len(pairs) if pairs else 0.0,
                *similar[row],
                candidate.item.hit.score / best_score,
                *(float(brought.get(kind, nothing)[row]) for kind in KINDS),
                float(candidate.whole),
                own[before] if before is not None and candidate.points_back else 0.0,
                math.log(1 + word_count(candidate.text)),
            ]
        )
    return np.asarray(rows, dtype=np.float64).reshape(len(found), len(FEATURES))


def candidate_weights(found: Sequence[Candidate]) -> dict[str, float]:
    """Return a weight per stemmed token: rarer among the candidates is heavier."""
    return term_weights(candidate.text for candidate in found)


def around(candidate: Candidate, lookup: Mapping[tuple[int, int], Candidate]) -> set[str]:
    """Return the stemmed tokens of a candidate and its neighbours."""
    n, ordinal = candidate.key
    near = (lookup.get((n, place)) for place in (ordinal - 1, ordinal, ordinal + 1))
    return {token for one in near if one is not None for token in one.read}


def _similarities(
    found: Sequence[Candidate], by_key: Mapping[tuple[int, int], int], vectors: Vectors | None
) -> list[tuple[float, float, float, float]]:
    """Return each candidate's own, neighbour's, with-previous and words' similarity.

    In standard deviations; of two neighbours the better one.
    """
    if vectors is None:
        return [(0.0, 0.0, 0.0, 0.0)] * len(found)
    matrix = vectors.rows
    values, scaled = _scaled(vectors.cosines)
    words, scaled_words = _scaled(vectors.of_words)
    lowest = float(values.min())
    result = []
    for row, candidate in enumerate(found):
        before = by_key.get((candidate.item.n, candidate.ordinal - 1))
        after = by_key.get((candidate.item.n, candidate.ordinal + 1))
        beside = [values[near] for near in (before, after) if near is not None] or [values[row]]
        joint = matrix[row] + (matrix[before] if before is not None else 0.0)
        norm = float(np.linalg.norm(joint))
        mixed = float(joint @ vectors.query) / norm if norm else lowest
        own, near = scaled(values[row]), scaled(float(max(beside)))
        result.append((own, near, scaled(mixed), scaled_words(words[row])))
    return result


def _scaled(values: Floats) -> tuple[Floats, Callable[[float], float]]:
    """Return values without gaps, and what puts one into standard deviations from their mean.

    What was not embedded is lexically the weakest and counts as the lowest.
    """
    known = values[~np.isnan(values)]
    mean, deviation = float(known.mean()), max(float(known.std()), 1e-3)
    filled = np.nan_to_num(values, nan=float(known.min()))
    return filled, lambda value: min(3.0, max(-3.0, (value - mean) / deviation))


def character_grams(text: str) -> frozenset[str]:
    """Return the 4-grams of a text's words with single blanks between and around them."""
    line = f" {' '.join(words(text))} "
    return frozenset([line[at : at + 4] for at in range(len(line) - 3)])


def _gram_shares(question: str, found: Sequence[Candidate]) -> list[float]:
    asked = character_grams(question)
    held = [character_grams(f"{one.above} {one.text}") & asked for one in found]
    weight = {
        gram: math.log(1 + len(held) / (1 + sum(gram in one for one in held))) for gram in asked
    }
    whole = sum(weight.values())
    return [sum(weight[gram] for gram in one) / whole if whole else 0.0 for one in held]


# Find the names and numbers of a question that no passage holds.

LISTS = frozenset({"references", "contents"})
"""Sections that name what can be read elsewhere."""
_WORD = re.compile(r"[^\W_]+(?:[.'\u2019-][^\W_]+)*")
_POSSESSIVE = re.compile(r"['\u2019]s\Z")
_FUNCTION_WORDS = CLAIMLESS_WORDS["en"]
_ORDINALS = dict(
    zip(
        ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th"),
        tokenise("first second third fourth fifth sixth seventh eighth ninth tenth"),
        strict=True,
    )
)
_FEWEST = 3
"""Words from which a question that capitalises each of them is set as a title, and tells no
names."""


def named_things(question: str) -> tuple[str, ...]:
    """Return a question's names and numbers, each once; neighbours are one name.

    A capital counts inside a word and behind the first word. A question in lower case, one set as a
    title, or one in a language that capitalises every noun names its numbers alone.
    """
    words = [(match.start(), match.end()) for match in _WORD.finditer(question)]
    shown = [_is_name(question[start:end], first=at == 0) for at, (start, end) in enumerate(words)]
    language = LANGUAGES.get(language_of(question))
    nouns = language is not None and language.nouns_are_capitalised
    if nouns or (len(words) >= _FEWEST and all(question[start].isupper() for start, _ in words)):
        shown = [any(char.isdigit() for char in question[start:end]) for start, end in words]
    names: list[str] = []
    for at, (start, end) in enumerate(words):
        if not shown[at]:
            continue
        if at and shown[at - 1] and question[words[at - 1][1] : start] == " ":
            names[-1] += question[start - 1 : end]
        else:
            names.append(question[start:end])
    return tuple(dict.fromkeys(_POSSESSIVE.sub("", name) for name in names))


def missing_things(question: str, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Return a question's names with a word that no passage has in any spelling.

    Args:
        question: What was asked.
        evidence: What was found for it.
    """
    passages = [item.hit.passage for item in evidence]
    language = language_of(question) or DEFAULT
    if language != DEFAULT:
        return _missing_in(language, named_things(question), passages)
    return unnamed_in(
        question,
        [read_passage(passage) for passage in passages if passage.chunk.section not in LISTS],
    )


def unnamed_in(question: str, read: Sequence[ReadPassage]) -> tuple[str, ...]:
    """Return a question's names with a word that no text has in any spelling, joined or apart."""
    return tuple(name for name in named_things(question) if not _is_held(name, read))


def _is_held(name: str, read: Sequence[ReadPassage]) -> bool:
    tokens = _telling(name)
    joined = "".join(tokenise("".join(_WORD.findall(name))))
    return all(_holds(read, token) for token in tokens) or any(joined in one.known for one in read)


def _missing_in(
    language: str, named: Sequence[str], passages: Sequence[Passage]
) -> tuple[str, ...]:
    """Return the names that passages of a language lack; none where another spells them."""
    if any((passage.document.language or DEFAULT) != language for passage in passages):
        return ()
    held = {
        token
        for passage in passages
        for token in tokenise(f"{passage.document.names}\n{passage.chunk.text}", language)
    }
    return tuple(name for name in named if not held.issuperset(tokenise(name, language)))


def _telling(name: str) -> list[str]:
    tokens = (token for token in tokenise(name) if token not in _FUNCTION_WORDS)
    return [token for token in tokens if len(token) > 1 or token.isdigit()]


def _holds(read: Sequence[ReadPassage], token: str) -> bool:
    """Return whether a passage holds a word of a name, or a number in any form."""
    if token[0].isdigit():
        numbers = spelt_figures(token)
        spelt = _ORDINALS.get(token, token)
        return any({token, spelt} & one.known or numbers & one.figures for one in read)
    return any(token in one.known or is_named(token, one) for one in read)


def _is_name(word: str, *, first: bool) -> bool:
    if any(char.isdigit() for char in word) or any(char.isupper() for char in word[1:]):
        return True
    return not first and word[0].isupper() and not _is_function_word(word)


def _is_function_word(word: str) -> bool:
    return all(token in _FUNCTION_WORDS for token in tokenise(word))


# Compute what speaks for a quote being right.

SUFFICIENCY = (
    "lead",  # score of the best quoted sentence, log-odds
    "coverage_around",  # idf-weighted share of the question's words in it and its neighbours
    "coverage_passage",  # the same in the title and passage it stands in
    "closeness",  # of that passage, as retrieval saw it
    "absent",  # content words of the question that the best passage lacks
    "words",  # logarithm of the question's content words: the longer, the less of it is found
    "unnamed",  # a name or number of the question stands neither in the quote nor around it
    "undenied",  # the question denies, and the quote does not
    # the best sentence has the opposite of a word of the question that stands nowhere near
    "opposite",
    "time",  # asks for a time
    "stands_out",  # how much more the best sentence is like the question than the others are
)
"""Entries of `sufficiency_row`, in order."""

_DENIES = re.compile(
    r"\b(?:not|never|cannot|neither|nor|without|none|no|nothing)\b"
    r"|\b(?:is|are|was|were|do|does|did|has|have|had|ca|could|wo|would|should|must)n['\u2019]?t\b",
    re.IGNORECASE,
)
_DENIED = re.compile(rf"{_DENIES.pattern}|\w{{3}}less\b|\bnon-?\w{{3}}", re.IGNORECASE)


def sufficiency_row(
    question: str,
    found: Sequence[Candidate],
    rows: Floats,
    scores: Floats,
    chosen: Sequence[Candidate],
    vectors: Vectors | None,
) -> Floats:
    """Return SUFFICIENCY of a question and a quote, float64 `[len(SUFFICIENCY)]`.

    Args:
        question: What was asked.
        found: The candidates.
        rows: Their `feature_rows`.
        scores: Their ranks' log-odds, float64 `[n]`.
        chosen: What would be quoted, at least one of them.
        vectors: Their `sentence_vectors`.
    """
    lead = lead_of(found, scores, chosen)
    best, asked = found[lead], content_tokens(question)
    items: list[Evidence] = list({one.item.n: one.item for one in found}.values())
    absent = min(len(set(asked) - read_passage(item.hit.passage).with_title) for item in items)
    covered = {
        name: float(rows[lead, FEATURES.index(name)])
        for name in ("coverage_around", "coverage_passage")
    }
    close, said = best.item.hit.closeness, _said(best, found, chosen)
    quote = " ".join(one.text for one in chosen)
    return np.asarray(
        [
            float(scores[lead]),
            *covered.values(),
            covered["coverage_passage"] if close is None else close,
            float(absent),
            math.log(1 + len(asked)),
            float(bool(unnamed_in(question, [said]))),
            float(_DENIES.search(question) is not None and not _DENIED.search(quote)),
            float(_says_the_opposite(set(asked), best, said)),
            float("time" in question_kinds(question)),
            0.0 if vectors is None else vectors.stands_out(lead),
        ]
    )


def lead_of(found: Sequence[Candidate], scores: Floats, chosen: Sequence[Candidate]) -> int:
    """Return where in `found` the best of the chosen sentences is, by score."""
    quoted = {candidate.key for candidate in chosen}
    rows = (row for row, candidate in enumerate(found) if candidate.key in quoted)
    return max(rows, key=lambda row: scores[row])


def _says_the_opposite(asked: AbstractSet[str], best: Candidate, said: ReadPassage) -> bool:
    brought = best.tokens - asked
    return any(opposites(token) & brought for token in asked - said.known)


def _said(best: Candidate, found: Sequence[Candidate], chosen: Sequence[Candidate]) -> ReadPassage:
    """Return the quote with the neighbours of its best sentence, title and section."""
    passage = best.item.hit.passage
    near = [
        one.text
        for one in found
        if one.item.n == best.item.n and abs(one.ordinal - best.ordinal) <= 1
    ]
    above = (passage.document.names, passage.chunk.section)
    belongs = [one.above for one in (best, *chosen)]
    return ReadPassage.of_text("\n".join([*above, *belongs, *near, *(c.text for c in chosen)]))


# Tell whether a quote speaks of the very thing that is asked about.

_ASKS_WHETHER = re.compile(
    r"\A\W*(?:is|are|was|were)\s+(?:the\s+|an?\s+|any\s+)?(?P<subject>(?:[^\W\d_][\w-]*\s+){1,4}?)"
    r"(?:\w+ly )?(?:\w{2,}(?:ed|en|wn|ble|ght)|made|sold|kept|held|paid|open|free|safe|legal)\b",
    re.IGNORECASE,
)
"""Its subject stands in front of a participle, or of a word that is used like one."""
_ANYTHING = frozenset(tokenise("things others kinds types ways times people persons money more"))
"""Nouns that stand for others: what they count has a name of its own in the text."""
_LIKE = 0.58
"""Cosine of two words alone from which one may stand for the other: of pets and dogs .80, workers
and employees .84, swimming and bathing .59, but workers and work .56, fishing and boats .52."""
_ASKS_WHO = re.compile(r"\A\W*who (?P<verb>[^\W\d_]+)\b", re.IGNORECASE)
_PASSIVE = re.compile(
    r"\b(?:is|are|was|were|be|been|being) (?:\w+ly )?(?P<verb>[^\W\d_]+)\b", re.IGNORECASE
)


def mentions_target(
    question: str, best: Candidate, passages: Sequence[Passage], by: PassageEncoder
) -> bool:
    """Return whether a quote can answer a question that is about one thing.

    One that counts a thing, or asks whether something is so of it, needs a passage with its name,
    or a word in the best one that may stand for it. Who does something is not said by a passive
    without "by". True for all other questions.

    Args:
        question: What was asked.
        best: The sentence that leads the quote.
        passages: Everything that was found.
        by: Embeds single words.
    """
    if best.row or "|" in best.text:  # a cell's label may say it otherwise
        return True
    who = _ASKS_WHO.search(question)
    if who and not re.search(r"\bby\b", best.text, re.IGNORECASE):
        done = [tokenise(match["verb"]) for match in _PASSIVE.finditer(best.text)]
        if tokenise(who["verb"]) in done:
            return False
    word = _subject(question)
    stems = [stem for stem in tokenise(word) if stem not in _FUNCTION_WORDS | _ANYTHING]
    if not stems or any(stems[0] in read_passage(one).known for one in passages):
        return True
    context = read_passage(best.item.hit.passage).context
    known = sorted({one for one in words(context) if one.isalpha() and not _is_function_word(one)})
    vectors, _ = by.embed_and_encode([word.lower(), *known])
    return bool(known) and float(np.max(vectors[1:] @ vectors[0])) >= _LIKE


def _subject(question: str) -> str:
    asked = _ASKS_WHETHER.match(question)
    if asked and not _is_function_word(asked["subject"].split()[0]):
        return asked["subject"].split()[-1]
    return _counted(question)
