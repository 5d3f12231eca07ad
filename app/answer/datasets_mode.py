"""List data sets named in passages (`datasets` mode), without a model.

Three kinds of finding, each with the sentence that says it and its mark: a name that is well known,
a name in a phrase such as "the X corpus", and a place where data can be had (repository, DOI,
accession number).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.core.sentences import sentence_spans
from app.core.types import Evidence

_MAX_SENTENCE_CHARS = 320
_MAX_ROWS = 30

# Names that need no phrase around them; matched as written, so that "Adult" the data set is not
# "adult" the word.
_KNOWN = tuple(
    "ImageNet CIFAR-10 CIFAR-100 MNIST Fashion-MNIST SVHN CelebA LSUN MS-COCO COCO PASCAL-VOC"
    " Cityscapes KITTI nuScenes ADE20K"
    " OpenImages LAION-5B LAION-400M SQuAD GLUE SuperGLUE MultiNLI SNLI MNLI HotpotQA TriviaQA"
    " NaturalQuestions MS-MARCO BEIR CoQA"
    " QuAC DROP MMLU HellaSwag ARC-Challenge BIG-bench GSM8K HumanEval MBPP TruthfulQA WinoGrande"
    " CommonsenseQA BoolQ PubMedQA"
    " BioASQ SciFact NFCorpus FiQA FEVER Quora CNN/DailyMail XSum WikiText-103 WikiText-2"
    " BookCorpus OpenWebText C4"
    " RedPajama PubMed MIMIC-III MIMIC-IV CheXpert LibriSpeech VoxCeleb AudioSet CommonVoice TIMIT"
    " UCF101 HMDB51"
    " Kinetics-400 Kinetics-700 ShapeNet ModelNet40 ScanNet OGB Cora CiteSeer ZINC QM9 MoleculeNet"
    " MovieLens"
    " Netflix-Prize CoNLL-2003 OntoNotes Penn-Treebank WMT14 Europarl OPUS Multi30K Flickr30k"
    " VQAv2 GQA CLEVR OK-VQA TextVQA"
    " UniProt GenBank TCGA UKBiobank ADNI HAPNEST SDSS ERA5 Landsat".split()
)
_KNOWN_NAME = re.compile(
    r"(?<![\w-])(?:"
    + "|".join(
        re.escape(name).replace(r"\-", r"[-\s]?") for name in sorted(_KNOWN, key=len, reverse=True)
    )
    + r")(?![\w-])"
)
_NOUN = (
    r"(?:data\s?sets?|corpus|corpora|benchmarks?|test collections?|test sets?|testbeds?"
    r"|cohorts?|treebanks?)"
)
_NAME = r"(?:[A-Z][\w+/.'-]*[\w+]|[A-Z]{2,}\d*)"
_NAMED = re.compile(
    rf"\b(?P<name>{_NAME}(?:[ -](?:{_NAME}|\d[\w.]*|of|for|and)){{0,4}}) (?:[a-z]+ )?{_NOUN}\b"
)
_TITLED = re.compile(
    rf"\b(?P<name>{_NAME}(?:[ -](?:{_NAME}|of|for|and)){{0,5}} (?i:{_NOUN}|databases?|repository"
    r"|survey))\b"
)
_APPOSED = re.compile(
    rf"\b(?P<name>{_NAME}(?:[ -]{_NAME}){{0,3}})(?:,| is| are) (?:a|an|the) (?:[\w-]+"
    rf" ){{0,3}}{_NOUN}\b"
)
_CALLED = re.compile(
    rf"\b{_NOUN},? (?:called|named|known as|dubbed) [\"'\u201c]?(?P<name>{_NAME}(?:[ -](?:{_NAME}"
    rf"|\d[\w.]*)){{0,3}})"
)
_PLACE = re.compile(
    r"https?://(?:www\.)?(?:zenodo|figshare|kaggle|huggingface|dataverse|osf|github|gitlab|data"
    r"|datadryad|archive\.ics\.uci|openml|physionet)"
    r"[^\s)\]>\"']*[\w/]|\b10\.5281/zenodo\.\d+|\b(?:GSE|PRJNA|SRP|phs|EGAS)\d{4,}\b"
    r"|\bdoi:\s?10\.\d{4,9}/[^\s\])>,;]+[\w]",
    re.IGNORECASE,
)
_GENERIC = frozenset(
    "the this that these those our their its we in on for of a an all each both several many most"
    " some such new large public open"
    " training test validation evaluation benchmark data results table figure section appendix"
    " using all two three".split()
)


@dataclass(frozen=True, slots=True)
class DatasetMention:
    """A data set or place, its evidence (each number once) and first sentence."""

    name: str
    kind: str
    """`data set` or `source`."""
    numbers: tuple[int, ...]
    sentence: str


def scan(evidence: Sequence[Evidence]) -> tuple[DatasetMention, ...]:
    """Return the data sets and sources named in passages, in order."""
    found: dict[tuple[str, str], tuple[str, list[int], str]] = {}
    for item in evidence:
        text = item.hit.passage.chunk.text
        for start, end in sentence_spans(text):
            sentence = " ".join(text[start:end].split())
            for kind, name in _names(sentence):
                _, numbers, _ = found.setdefault((kind, _key(name)), (name, [], sentence))
                if item.n not in numbers:
                    numbers.append(item.n)
    return tuple(
        DatasetMention(name, kind, tuple(numbers), sentence)
        for (kind, _), (name, numbers, sentence) in found.items()
    )


def inventory(evidence: Sequence[Evidence]) -> str:
    """Return a Markdown inventory of `scan`'s findings, with sentences and marks.

    Empty for none.
    """
    findings = scan(evidence)
    blocks = []
    for kind, heading in (("data set", "### Data sets"), ("source", "### Where data can be had")):
        rows = [_row(finding) for finding in findings if finding.kind == kind][:_MAX_ROWS]
        if rows:
            blocks.append("\n".join([heading, "", *rows]))
    return "\n\n".join(blocks)


def _names(sentence: str) -> Iterable[tuple[str, str]]:
    """Yield (kind, name) of a sentence, longer names first, none inside another."""
    taken: list[tuple[int, int]] = []
    spans = [(match.span(), "source", match.group()) for match in _PLACE.finditer(sentence)]
    for pattern in (_CALLED, _NAMED, _APPOSED):
        spans += [
            (match.span("name"), "data set", match["name"]) for match in pattern.finditer(sentence)
        ]
    spans += [
        (m.span("name"), "data set", m["name"])
        for m in _TITLED.finditer(sentence)
        if m["name"].split()[-1][0].isupper()
    ]
    spans += [(match.span(), "data set", match.group()) for match in _KNOWN_NAME.finditer(sentence)]
    for (start, end), kind, raw in sorted(spans, key=lambda span: (span[0][0], -span[0][1])):
        name = raw if kind == "source" else _trimmed(raw)
        if name and not any(start < b and a < end for a, b in taken):
            taken.append((start, end))
            yield kind, name


def _trimmed(name: str) -> str:
    """Return a name without generic words at its ends; may be empty."""
    words = name.split()
    while words and words[0].lower() in _GENERIC:
        words = words[1:]
    while words and words[-1].lower() in _GENERIC | {"and", "of", "for"}:
        words = words[:-1]
    return " ".join(words) if any(char.isupper() for char in "".join(words)) else ""


def _key(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _row(finding: DatasetMention) -> str:
    """Return one entry; the quoted sentence loses marks of its own."""
    quote = re.sub(r"\s*\[\d[\d,;\s\u2013-]*\]", "", finding.sentence).strip().rstrip(".")
    if len(quote) > _MAX_SENTENCE_CHARS:
        quote = f"{quote[:_MAX_SENTENCE_CHARS].rsplit(maxsplit=1)[0]}\u2026"
    marks = "".join(f"[{n}]" for n in finding.numbers[:4])
    return f"- **{finding.name}**: {quote} {marks}."
