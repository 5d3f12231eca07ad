"""The short form of `make bench-bulk-kill`: a few kills of the real command."""

from pathlib import Path

import pytest

from evaluation.bulk_kill import campaign


@pytest.mark.timeout(300)
def test_killed_runs_end_with_what_an_uninterrupted_one_has(tmp_path: Path) -> None:
    result = campaign(tmp_path, articles=1500, kills=3, seed=3)
    assert result.interrupted == result.whole
    assert result.whole.documents > 1000
    assert result.whole.duplicates == 0
    assert result.whole.ledger["articles"] == 1500
    assert result.redone_documents_most <= 512
