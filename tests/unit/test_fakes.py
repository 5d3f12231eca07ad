from __future__ import annotations

import numpy as np
import pytest

from app.core.errors import PassageTooLong
from app.core.ports import Embedder
from tests.fakes.embedders import HashEmbedder


def test_hash_embedder_is_an_embedder_with_unit_rows_near_for_shared_words() -> None:
    embedder: Embedder = HashEmbedder()
    rows = embedder.embed_passages(
        ["cats chase mice", "a cat chases a mouse", "tax law of 1911", "", "!!"]
    )
    assert rows.shape == (5, embedder.identity.dimension)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0)
    assert rows[0] @ rows[1] > rows[0] @ rows[2]
    assert np.array_equal(embedder.embed_query("cats chase mice"), rows[0])


def test_hash_embedder_refuses_what_does_not_fit() -> None:
    with pytest.raises(PassageTooLong, match="tokens"):
        HashEmbedder(max_tokens=8).embed_passages(["one two three four five six seven"])
