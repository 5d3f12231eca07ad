"""The recipes of docs/extending.md, followed on a copy of the package; what they add is used."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text("utf-8")
RECIPES = dict(re.findall(r"^## (A [a-z ]+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
STEP = re.compile(r"^\d\. `([^`]+)`(.*?)(?=^\d\. |\Z)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```(python|diff)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

USES = """
import tempfile
from pathlib import Path

from app.api.app import create_app
from app.answer.strategies import STRATEGIES
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.parsers.formats import accepted, type_of
from app.retrieval.request import Retrieval
from app.core.types import Library
from app.storage.vectors.memory import MemoryStore
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.settings import Settings

with tempfile.TemporaryDirectory() as folder:
    data = Path(folder)
    with IndexStore(IndexOptions(data, data / "chroma")) as store:
        assert isinstance(store.vector_stores[Library.PAPERS], MemoryStore)

content = b"[00:01.00]Copper melts.\\r\\n[00:03.00]At 1085 degrees.\\r\\n"
parsed = DirectParser(IngestOptions()).parse(content, "song.lrc")
assert parsed.text == "Copper melts.\\n\\nAt 1085 degrees.", parsed.text
assert type_of(parsed.media_type) == "lyrics"
assert "LRC" in accepted()


from app.core.languages import language_of
from app.core.text import tokenise
from app.answer.intent import detect

assert language_of("Hvornår blev broen bygget, og hvem har tegnet den?") == "da"
assert tokenise("bilerne", "da") == tokenise("biler", "da")
assert detect("Mange tak!").kind == "thanks"


from app.bootstrap.models import EmbeddedModels
from app.models.options import ProviderOptions

reader = EmbeddedModels(ProviderOptions(model_threads=1)).reader
text = "The rent is due on the first day of each month."
stated, quoted = reader.stances([(text, text), ('The rent is "free" of tax.', text)])
assert stated.supported > 0.5
assert quoted.not_stated == 1


class Search:
    places = 3
    asked = []

    def __call__(self, text):
        self.asked.append(text)
        return Retrieval((), (), 0.0)


class Context:
    search = Search()


found = STRATEGIES["longest_word"]("what melts copperware", Context())
assert (found.hits, Search.asked) == ((), ["what melts copperware", "copperware"])

routes = create_app(Settings(_env_file=None)).openapi()["paths"]
assert routes["/api/v1/words"]["get"]["operationId"] == "count_words"
assert "longest_word" in str(create_app(Settings(_env_file=None)).openapi()["components"]["schemas"]["QueryRequest"])
"""


def follow(recipe: str, copy: Path) -> list[str]:
    """Write and edit what a recipe says; return the files that it names."""
    touched = []
    for path, text in STEP.findall(recipe):
        touched.append(path)
        target = copy / path
        for kind, block in BLOCK.findall(text):
            if kind == "python":
                assert not target.exists(), path
                target.write_text(block, "utf-8")
                continue
            lines = block.splitlines()
            old = "\n".join(line[1:] for line in lines if line.startswith("-"))
            new = "\n".join(line[1:] for line in lines if line.startswith("+"))
            before = target.read_text("utf-8")
            assert before.count(old) == 1, f"{path} has {before.count(old)} places like {old!r}"
            target.write_text(before.replace(old, new), "utf-8")
    return touched


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__", "static", "node_modules")
    shutil.copytree(ROOT / "app", folder / "app", ignore=ignored)
    shutil.copytree(ROOT / "web" / "src" / "lib", folder / "web" / "src" / "lib")
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=ignored)
    return folder


def test_the_recipes_add_what_they_say(copy: Path) -> None:
    assert set(RECIPES) == {
        "A parser",
        "A strategy",
        "A judge",
        "A route",
        "A language",
        "A vector store",
    }
    for name, recipe in RECIPES.items():
        touched = follow(recipe, copy)
        assert 1 <= len(set(touched)) <= 3, name
    done = subprocess.run(
        [sys.executable, "-c", USES], cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    suite = "tests/contract/test_vector_store_contract.py"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "example",
        suite,
    ]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert " passed" in done.stdout
