"""The logger `hpcgym`: lines on standard error, unless a program takes its records."""

import logging

import pytest

from hpcgym.base.log import LOG


class Kept(logging.Handler):
    """Keeps what it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(f"{record.name} {record.levelname}: {record.getMessage()}")


def test_records_are_lines_on_standard_error_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    LOG.info("compiling %d kernels", 3)
    LOG.debug("not said")
    assert capsys.readouterr() == ("", "hpcgym: compiling 3 kernels\n")


@pytest.mark.parametrize("name", ["hpcgym", None])
def test_a_program_that_sets_up_logging_gets_the_records(
    capsys: pytest.CaptureFixture[str], name: str | None
) -> None:
    kept, logger = Kept(), logging.getLogger(name)
    logger.addHandler(kept)
    try:
        LOG.warning("cannot be kept")
    finally:
        logger.removeHandler(kept)
    assert kept.said == ["hpcgym WARNING: cannot be kept"]
    assert capsys.readouterr() == ("", "")


def test_a_level_silences_what_is_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    LOG.setLevel(logging.WARNING)
    try:
        LOG.info("compiling")
    finally:
        LOG.setLevel(logging.INFO)
    assert capsys.readouterr().err == ""
