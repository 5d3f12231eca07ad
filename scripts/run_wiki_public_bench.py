"""Ask a running server the 20 grounded probes of the encyclopedia and write wiki_public_bench.{md,csv,json}.

python -m scripts.run_wiki_public_bench [--base-url URL]
"""

from __future__ import annotations

import sys

from scripts import run_retrieval_ablation as ablation


def main() -> None:
    """Run the ablation over the other file of probes, under its own report names; options given win."""
    own = ["--bench", str(ablation.ROOT / "evaluation" / "wiki_public_bench.json")]
    for option, name in (("--report-md", ".md"), ("--csv", ".csv"), ("--json-out", ".json")):
        own += [option, str(ablation.REPORTS / f"wiki_public_bench{name}")]
    sys.argv[1:1] = own
    ablation.main()


if __name__ == "__main__":
    main()
