"""A bulk run survives kills of the real command, and a Ctrl-C."""

import signal
import subprocess
import threading
from pathlib import Path

from scripts.generate_production_corpus import SyntheticEncyclopedia, SyntheticOptions, write_xml
from tests.crash.bulk_runs import Command, campaign, stored


def test_killed_runs_end_with_what_an_uninterrupted_one_has(tmp_path: Path) -> None:
    result = campaign(tmp_path, articles=1500, kills=3, seed=3)
    assert result.interrupted == result.whole
    assert result.whole.documents > 1000
    assert result.whole.duplicates == 0
    assert result.whole.ledger["articles"] == 1500
    assert result.redone_documents_most <= 512
    assert result.wrong_words == 0


def test_an_interrupt_pauses_and_the_same_command_goes_on(tmp_path: Path) -> None:
    dump = tmp_path / "synthetic.xml"
    with dump.open("w", encoding="utf-8") as file:
        write_xml(
            SyntheticEncyclopedia(SyntheticOptions(articles=4000, vocabulary=500, mean_words=60)),
            file,
        )
    command = Command(dump, tmp_path / "data")
    lines: list[str] = []
    with command.start(stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if '"done": 0' not in line:
                process.send_signal(signal.SIGINT)
                break
        threading.Thread(target=process.stdout.read, daemon=True).start()
        assert process.wait() == 130
    assert 0 < stored(tmp_path / "data").documents < 3000
    command.finish()
    assert stored(tmp_path / "data").ledger["articles"] == 4000
