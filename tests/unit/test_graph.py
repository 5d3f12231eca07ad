from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from app.core.errors import Unreadable
from app.models.bert import BertSession, feed, open_session
from scripts.graph import BertShape, build_graph, read_float_tensors
from tests.fakes.bert import TinyBert, write_safetensors

TINY = TinyBert()
SHAPE = BertShape(TINY.layers, TINY.heads, TINY.epsilon)


def test_graph_equals_the_numpy_forward_pass() -> None:
    weights = TINY.weights(seed=1)
    rng = np.random.default_rng(2)
    texts = [
        rng.integers(0, TINY.vocabulary, length).tolist()
        for length in (1, 3, 20, 7, 40, 2, 11, 5, 13, 64)
    ]
    inputs = [feed(ids) for ids in texts]
    expected = [TINY.embedding(weights, ids) for ids in texts]
    for threads in (1, 3):
        session = BertSession(build_graph(weights, SHAPE), threads)
        np.testing.assert_allclose(session.many(inputs, TINY.hidden), expected, atol=2e-5)
        np.testing.assert_allclose([session.one(each) for each in inputs], expected, atol=2e-5)
        assert session.many([], TINY.hidden).shape == (0, TINY.hidden)


def test_padding_changes_nothing() -> None:
    weights = TINY.weights(seed=1)
    session = open_session(build_graph(weights, SHAPE))
    alone = feed([3, 1, 4, 1, 5])
    padded = {name: np.pad(value, ((0, 0), (0, 7))) for name, value in alone.items()}
    np.testing.assert_allclose(
        session.run(["output"], padded)[0], session.run(["output"], alone)[0], atol=1e-6
    )


def test_outlier_channels_in_a_product_of_their_own_change_nothing() -> None:
    weights = TINY.weights(seed=1)
    ids = [3, 1, 4, 1, 5, 9, 2, 6]
    session = BertSession(build_graph(weights, SHAPE, outliers={0: (31,), 1: (4, 17)}), threads=1)
    np.testing.assert_allclose(session.one(feed(ids)), TINY.embedding(weights, ids), atol=2e-5)


def test_int8_is_nearer_to_float32_when_an_outlier_is_named() -> None:
    deep = TinyBert(layers=3)
    shape = BertShape(deep.layers, deep.heads, deep.epsilon)
    weights = deep.weights(seed=1)
    # one channel has hundreds of times the activation of others; the down-projection of its layer
    # is not among the float32 ones
    weights["encoder.layer.2.intermediate.dense.bias"][7] = 400.0
    weights["encoder.layer.2.output.dense.weight"][:, 7] /= 200.0
    inputs = feed(list(range(1, 40)))
    exact = BertSession(build_graph(weights, shape), threads=1).one(inputs)
    far, near = (
        1
        - exact
        @ BertSession(build_graph(weights, shape, "mean", "int8", outliers), threads=1).one(inputs)
        for outliers in ({}, {2: (7,)})
    )
    assert near < far / 3


def test_int8_takes_one_text_a_run() -> None:
    session = open_session(build_graph(TINY.weights(seed=1), SHAPE, "mean", "int8"))
    two = {name: np.repeat(value, 2, axis=0) for name, value in feed([3, 1, 4]).items()}
    with pytest.raises(ort_errors.InvalidArgument):
        session.run(["output"], two)


def test_the_readers_graph_equals_the_numpy_forward_pass() -> None:
    weights = TINY.weights(seed=3, reader=True)
    ids, types = [1, 5, 9, 2, 30, 31, 2], [0, 0, 0, 0, 1, 1, 1]
    session = BertSession(build_graph(weights, SHAPE, "reader"), threads=1)
    assert session.one(feed(ids, types)) == pytest.approx(
        TINY.logits(weights, ids, types), abs=2e-5
    )


def test_a_missing_tensor_is_named() -> None:
    weights = TINY.weights(seed=1)
    del weights["encoder.layer.1.output.dense.weight"]
    with pytest.raises(Unreadable, match=r"encoder\.layer\.1\.output\.dense\.weight"):
        build_graph(weights, SHAPE)


@pytest.mark.parametrize("config", ["{", "{}", '{"model_type": "roberta", "hidden_act": "gelu"}'])
def test_configs_of_other_models_are_refused(tmp_path: Path, config: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(config)
    with pytest.raises(Unreadable, match=r"config\.json"):
        BertShape.from_config(path)


def test_safetensors_round_trip_leaves_integers_out(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(
        path,
        {
            "a": np.arange(6, dtype=np.float32).reshape(2, 3),
            "ids": np.arange(3),
            "s": np.array(4, dtype=np.float32),
        },
    )
    tensors = read_float_tensors(path)
    assert sorted(tensors) == ["a", "s"]
    assert tensors["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tensors["s"].shape == ()


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 20, b"\x02\0\0\0\0\0\0\0{}"[:-1], b"\x05\0\0\0\0\0\0\0[1,2]"]
)
def test_damaged_safetensors_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(Unreadable, match=r"model\.safetensors"):
        read_float_tensors(path)


def test_truncated_safetensors_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, TINY.weights(seed=1))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(Unreadable):
        read_float_tensors(path)
