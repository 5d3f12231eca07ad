from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest

from app.core.errors import ModelNotInstalled, PassageTooLong
from app.models.bert import BertTokenizer, CountedTokens, feed, open_session
from app.models.minilm import MiniLmEmbedder
from scripts import build_model

TEXTS = [
    "The mitochondrion makes most of the cell's supply of ATP.",
    "Cells get their chemical energy from an organelle with its own DNA.",
    "The treaty was signed in Vienna in 1815.",
    "A short text.",
    "日本語の文章もある。 naïve café — “quotes”",
    " ".join(["Rivers carry sediment to the sea, where deltas form."] * 18),
]


def test_int8_stays_close_to_float32_and_to_the_meaning(
    minilm: MiniLmEmbedder, exact_minilm: MiniLmEmbedder
) -> None:
    exact = exact_minilm.embed_passages(TEXTS)
    rows = minilm.embed_passages([*TEXTS, ""])[:-1]
    assert (rows * exact).sum(axis=1).min() > 0.985
    assert exact[0] @ exact[1] > 0.4 > 0.2 > exact[0] @ exact[2]
    assert exact.shape == (len(TEXTS), 384)
    for made in (rows, exact, minilm.embed_query(TEXTS[0])[None]):
        np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    assert np.argmax(rows[1:3] @ minilm.embed_query("What do mitochondria make?")) == 0


def test_outliers_are_the_channels_whose_activations_stand_out(tmp_path: Path) -> None:
    build_model.build(tmp_path, "fp32")
    model = onnx.load(tmp_path / "fp32.graph")
    names = [f"encoder.layer.{number}.active" for number in range(6)]
    model.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names
    )
    session = open_session(model.SerializeToString())
    tokens = BertTokenizer(tmp_path / "tokenizer.json").encode(TEXTS)
    peaks = [
        np.max([session.run([name], feed(ids))[0][0].max(axis=0) for ids in tokens], axis=0)
        for name in names
    ]
    found = {
        number: tuple(np.flatnonzero(peak > 10).tolist())
        for number, peak in enumerate(peaks)
        if (peak > 10).any()
    }
    assert found == dict(build_model.OUTLIERS)


def test_texts_are_refused_not_cut_and_questions_cut_not_refused(minilm: MiniLmEmbedder) -> None:
    words = ["sea"] * 254
    fits, over = " ".join(words), " ".join([*words, "river"])
    assert minilm.count_tokens([fits, over, ""]) == [256, 257, 2]
    assert minilm.embed_passages([fits]).shape == (1, 384)
    with pytest.raises(PassageTooLong, match=r"passage 1 .*257 tokens.*256; split it"):
        minilm.embed_passages([fits, over])
    np.testing.assert_allclose(minilm.embed_query(over), minilm.embed_query(fits), atol=1e-5)


def test_threads_get_their_own_rows(minilm: MiniLmEmbedder) -> None:
    alone = [minilm.embed_query(text) for text in TEXTS]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(minilm.embed_query, TEXTS * 5))
    for position, row in enumerate(together):
        np.testing.assert_allclose(row, alone[position % len(TEXTS)], atol=1e-6)


def test_a_missing_graph_names_the_cure(tmp_path: Path) -> None:
    with pytest.raises(ModelNotInstalled, match="run: make setup"):
        MiniLmEmbedder(tmp_path)


def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.setattr(build_model, "weights_folder", lambda: tmp_path)
    with pytest.raises(SystemExit, match=r"SHA-256.*expected 53aa51"):
        build_model.build(tmp_path / "built")
    monkeypatch.undo()
    monkeypatch.setattr(build_model, "PACKAGE", "no_such_package_of_weights")
    with pytest.raises(SystemExit, match="run: make setup"):
        build_model.build(tmp_path / "built")
    assert not (tmp_path / "built").exists()


def test_a_question_has_the_vector_of_the_same_passage() -> None:
    embedder = MiniLmEmbedder(threads=2)
    rows = embedder.embed_passages(TEXTS)
    for text, row in zip(TEXTS, rows, strict=True):
        np.testing.assert_allclose(embedder.embed_query(text), row, atol=1e-5)


def test_what_was_counted_is_embedded_alike(minilm: MiniLmEmbedder) -> None:
    plain = minilm.embed_passages(TEXTS)
    counts = minilm.count_tokens([*TEXTS, TEXTS[0]])
    assert counts[0] == counts[-1]
    np.testing.assert_array_equal(
        minilm.embed_passages([TEXTS[1], *TEXTS, TEXTS[1]]), plain[[1, *range(len(TEXTS)), 1]]
    )
    np.testing.assert_array_equal(minilm.embed_passages(TEXTS), plain)
    over = " ".join(["river"] * 300)
    minilm.count_tokens([over])
    with pytest.raises(PassageTooLong):
        minilm.embed_passages([over])


def test_counted_tokens_are_bounded_and_given_once() -> None:
    counted = CountedTokens(3)
    counted.keep(list("abcde"), [[number] for number in range(5)])
    assert counted.take(["a", "b"]) == {}
    taken = counted.take(["d", "d", "e"])
    assert {text: ids.tolist() for text, ids in taken.items()} == {"d": [3], "e": [4]}
    assert list(counted.take(["c", "d"])) == ["c"]
