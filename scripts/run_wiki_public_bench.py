"""Ask a server 64 questions about 32 articles; write wiki_public_bench.{md,csv,json}.

python -m scripts.run_wiki_public_bench [--base-url URL]

Half of the questions name their article, half tell of it in other words. Articles that are not
indexed are skipped and listed; exit code 4 when none is indexed.
"""

from __future__ import annotations

from app.cli.main import run_at_edge
from scripts import run_retrieval_ablation as ablation


def main() -> None:
    ablation.main(
        ablation.server_options(ablation.arguments(__doc__ or "", "wiki_public_bench")).parse_args()
    )


if __name__ == "__main__":
    run_at_edge(main)
