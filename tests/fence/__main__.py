"""Write the golden files anew: `python -m tests.fence`; CHANGELOG says why the outside changed."""

import json

from tests.fence import bundles
from tests.fence.answers import answers
from tests.fence.outside import GOLDEN, PARTS
from tests.fence.server import StoredVectors, stored_embedder

if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, part in PARTS.items():
        (GOLDEN / name).write_text(part() + "\n", "utf-8")
    if not (GOLDEN / "papers.documind").exists():
        bundles.write(GOLDEN / "papers.documind")
    vectors = StoredVectors.read(GOLDEN / "vectors.npz")  # another machine's would break ties
    vectors.writing = True
    with stored_embedder(vectors):
        rows = answers()
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (GOLDEN / "answers.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    vectors.write()
    print(f"{len(rows)} answers, {len(vectors.used)} vectors")
