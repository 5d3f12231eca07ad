"""What the operating system and other servers refuse, in our words."""

from __future__ import annotations

import errno
import os

import pytest

from app.client import error_from
from app.core.errors import Busy, StorageError, error_classes, refusal


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_too_many_open_files_are_busy_wherever_they_come_from(number: int) -> None:
    cause = OSError(number, os.strerror(number))
    wrapped = ValueError("the library failed")
    wrapped.__cause__ = cause
    for error in (cause, wrapped):
        ours = refusal(error)
        assert isinstance(ours, Busy)
        assert ours.retry_after_s is not None
        assert "ulimit -n" in ours.message


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR])
def test_what_may_not_be_written_is_named_with_the_cure(number: int) -> None:
    ours = refusal(OSError(number, os.strerror(number), "/data/x"))
    assert isinstance(ours, StorageError)
    assert "'/data/x'" in ours.message
    assert "DATA_DIR" in ours.message
    assert "\n" not in ours.message


@pytest.mark.parametrize("error", [OSError(errno.EIO, "input/output error"), ValueError("no")])
def test_anything_else_means_something_else(error: Exception) -> None:
    assert refusal(error) is None


def test_a_client_raises_an_error_of_every_code_again() -> None:
    for code in {cls.code for cls in error_classes().values()}:
        error = error_from({"code": code, "detail": "why"}, 2.0)
        assert (error.code, error.message, error.retry_after_s) == (code, "why", 2.0)
