"""Tags and own metadata in the catalog: what is kept, what filters find, what a deletion takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.errors import InvalidInput
from app.core.labels import Condition, Labels, Value
from app.core.types import Document, Filters, Library
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft
from tests.unit.storage.test_writer import embed_all

PAPERS = Library.PAPERS
KEYS = ["a.txt", "b.txt", "c.txt"]


def write(store: IndexStore, key: str, text: str, labels: Labels) -> Document:
    """Write a revision and return its document."""
    (result,) = store.writer.write([make_draft(key, text, chunks=1, labels=labels)])
    return store.catalog.document(PAPERS, result.doc_id)


def found(store: IndexStore, filters: Filters, text: str = "words") -> set[str]:
    """Return the file names of what a search for words finds."""
    hits = store.lexical.search(PAPERS, text, 10, filters)
    passages = store.catalog.passages(PAPERS, [hit.chunk_id for hit in hits])
    return {passage.document.filename for passage in passages.values()}


def held(document: Document) -> tuple[tuple[str, ...], Mapping[str, Value]]:
    return document.tags, document.metadata


def rows(store: IndexStore) -> int:
    with store.database.read_raw() as cursor:
        return int(cursor.execute("SELECT count(*) FROM labels").fetchone()[0])


def test_a_new_revision_keeps_what_it_is_not_given(store: IndexStore) -> None:
    labels = Labels(("Sea", "deep"), {"rating": 5, "due": "2026-02-01"})
    assert held(write(store, "a.txt", "first words", labels)) == (labels.tags, labels.metadata)
    again = write(store, "a.txt", "second words", Labels())
    assert (again.revision, *held(again)) == (2, labels.tags, labels.metadata)
    given = Labels(("Sky",), {"rating": 3, "due": None})
    assert held(write(store, "a.txt", "third words", given)) == (("Sky",), {"rating": 3})
    same = write(store, "a.txt", "third words", Labels((), {}))
    assert (same.revision, *held(same)) == (3, (), {"rating": 3})
    assert found(store, Filters(tags=("sky",))) == set()
    assert found(store, Filters(metadata=(Condition.equal("rating", 3),))) == {"a.txt"}


def test_a_deletion_takes_labels_too(store: IndexStore) -> None:
    document = write(store, "a.txt", "some words", Labels(("sea",), {"rating": 5}))
    store.writer.delete(PAPERS, document.doc_id, grace_s=60)
    assert found(store, Filters(tags=("sea",))) == set()
    assert held(store.writer.restore(PAPERS, document.doc_id)) == (("sea",), {"rating": 5})
    assert found(store, Filters(tags=("sea",))) == {"a.txt"}
    store.writer.delete(PAPERS, document.doc_id, grace_s=60)
    assert held(write(store, "a.txt", "some words", Labels())) == ((), {})
    store.writer.delete(PAPERS, document.doc_id)
    assert rows(store) == 0


def test_a_key_keeps_its_first_kind_while_it_is_used(store: IndexStore) -> None:
    first = write(store, "a.txt", "some words", Labels(None, {"rating": 5}))
    second = write(store, "b.txt", "more words", Labels(None, {"rating": "five", "place": "Rome"}))
    assert second.metadata == {"place": "Rome"}
    with pytest.raises(InvalidInput, match="must be a number"):
        store.writer.label(PAPERS, second.doc_id, Labels(None, {"rating": "2026-01-01"}))
    store.writer.label(PAPERS, first.doc_id, Labels(None, {"rating": None}))
    changed = store.writer.label(PAPERS, second.doc_id, Labels(None, {"rating": "five"}))
    assert changed.metadata == {"place": "Rome", "rating": "five"}


def test_two_drafts_of_a_batch_agree_on_a_kind(store: IndexStore) -> None:
    values: list[Value] = [5, "five", 6]
    drafts = [
        make_draft(key, f"words of {key}", labels=Labels(None, {"n": value}))
        for key, value in zip(KEYS, values, strict=True)
    ]
    assert [result.left_out for result in store.writer.write(drafts)] == [(), ("n",), ()]


def test_a_change_of_labels_indexes_nothing_again(store: IndexStore) -> None:
    document = write(store, "a.txt", "some words", Labels())
    embed_all(store)
    before = store.catalog.document(PAPERS, document.doc_id)
    with store.database.read() as sql:
        last = store.database.dialect.last_change(sql)
    after = store.writer.label(PAPERS, document.doc_id, Labels(("new",), {"x": 1}))
    with store.database.read() as sql:
        assert store.database.dialect.last_change(sql) == last
    assert (after.revision, after.embedded) == (before.revision, before.embedded) == (1, 2 // 2)
    assert found(store, Filters(tags=("new",))) == {"a.txt"}


def test_many_documents_with_a_tag_are_found_as_few_are(options: IndexOptions) -> None:
    """Over 500 are not named one by one: the search looks further instead."""
    with IndexStore(options, vector_store="off") as store:
        drafts = [
            make_draft(
                f"{n}.txt",
                " ".join(["word"] * (1 + n % 7)) + f" and {n}",
                chunks=1,
                labels=Labels(("common", "rare") if n % 100 == 7 else ("common",)[: n % 8]),
            )
            for n in range(1300)
        ]
        store.writer.write(drafts)
        ranked = [hit.chunk_id for hit in store.lexical.search(PAPERS, "word", 2000)]
        tags = {
            chunk_id: passage.document.tags
            for chunk_id, passage in store.catalog.passages(PAPERS, ranked).items()
        }
        for tag in ("common", "rare"):
            expected = [chunk_id for chunk_id in ranked if tag in tags[chunk_id]]
            for k in (1, 10, 1250):
                hits = store.lexical.search(PAPERS, "word", k, Filters(tags=(tag,)))
                assert [hit.chunk_id for hit in hits] == expected[:k]


TAGS = st.lists(st.sampled_from(["Sea", "sky", "deep sea", "Élan", "日本"]), max_size=3)
VALUES = st.dictionaries(
    st.sampled_from(["n", "day"]), st.one_of(st.none(), st.integers(-3, 3)), max_size=2
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), TAGS), VALUES), max_size=6))
def test_filters_find_what_documents_have(
    store: IndexStore, steps: list[tuple[str, list[str] | None, dict[str, int | None]]]
) -> None:
    for n, (key, tags, values) in enumerate(steps):
        given = Labels.of(tags, values)
        if n % 2:
            write(store, key, "the same words", given)
        else:
            write(store, key, f"words {n}", given)
    documents, _ = store.catalog.documents(PAPERS)
    for tag in ("SEA", "Deep  sea", "élan", "日本"):
        expected = {
            document.filename
            for document in documents
            if " ".join(tag.casefold().split()) in map(str.casefold, document.tags)
        }
        assert found(store, Filters(tags=(tag,))) == expected
    for low in (-3, 0, 2):
        expected = {
            document.filename
            for document in documents
            if int(document.metadata.get("n", -9)) >= low
        }
        assert found(store, Filters(metadata=(Condition.between("n", low, None),))) == expected


def test_given_facts_outlive_what_the_text_shows(store: IndexStore) -> None:
    facts = Labels(title="Rivers and silt", authors=("Ann Baker",), year=2021)
    draft = make_draft("a.txt", "first words", chunks=1, labels=facts)
    draft = replace(draft, metadata=replace(draft.metadata, **facts.facts))
    (result,) = store.writer.write([draft])
    again = write(store, "a.txt", "second words", Labels())
    assert (again.title, again.authors, again.year) == ("Rivers and silt", ("Ann Baker",), 2021)
    newer = write(store, "a.txt", "third words", Labels(title="Rivers, silt and sand"))
    assert (newer.title, newer.year) == ("Rivers, silt and sand", 2021)
    labelled = store.writer.label(PAPERS, result.doc_id, Labels(year=2022))
    assert (labelled.title, labelled.year, labelled.revision) == ("Rivers, silt and sand", 2022, 3)
    assert write(store, "a.txt", "fourth words", Labels()).year == 2022
