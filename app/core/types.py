"""Value objects of the domain, all frozen, from one place.

Glossary
    library     `public` (encyclopedia) and `papers` (a person's own); queries may span `all`.
    document    one source (file, article, paper) under a stable `doc_id`; its text may have
                several revisions.
    revision    one text of a document, numbered from 1; the newest acknowledged one is live,
                older ones keep resolving citations.
    chunk       a half-open span of a revision's text, the unit that is indexed. Its text is
                always `document_text[start:end]`.
    passage     a chunk joined with its document: what retrieval hands on.
    hit         a passage with the signals that ranked it.
    evidence    a numbered hit that an answer may cite as `[n]`.
    finding     characters of a text that bear on a sentence which someone checks.
    citation    a claim that `document_text[start:end]` supports a sentence; the quote is exactly
                those characters.
    answer      Markdown text with `[n]` marks, its sentences, citations and how it came to be.
    strategy    how questions become searches: baseline, hyde, multi_query, flare.
    mode        what the answer is for: general, compare, methodology, datasets, reproduce.
    notice      something a user must know, with a fixed code; never text glued to an answer.

Offsets are Unicode code points, half-open, into the text of one revision. Distances are cosine
distances in [0, 2]; similarity is `1 - distance`. Times are UTC ISO 8601 strings.
"""

from app.core.answers import *  # noqa: F403
from app.core.documents import *  # noqa: F403
from app.core.labels import *  # noqa: F403
from app.core.serialization import *  # noqa: F403
from app.core.status import *  # noqa: F403
from app.core.vocabulary import *  # noqa: F403
