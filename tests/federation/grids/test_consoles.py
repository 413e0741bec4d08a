"""Only terminals are hushed."""

import io
import logging

import pytest

from federation.grids.consoles import hush


@pytest.fixture
def loud(tmp_path):
    """A logger with a terminal and a file, and what both have heard."""
    logger, terminal = logging.getLogger("loud"), io.StringIO()
    logger.propagate = False
    handlers = logging.StreamHandler(terminal), logging.FileHandler(tmp_path / "log")
    for handler in handlers:
        handler.setLevel(logging.WARNING)
        logger.addHandler(handler)
    yield logger, lambda: (terminal.getvalue().split(), (tmp_path / "log").read_text().split())
    for handler in handlers:
        logger.removeHandler(handler)
        handler.close()


def test_files_hear_what_terminals_do_not(loud):
    logger, heard = loud
    restore = hush("loud", logging.ERROR)
    logger.warning("hidden")
    logger.error("shown")
    restore()
    logger.warning("again")
    logger.info("never")
    assert heard() == (["shown", "again"], ["hidden", "shown", "again"])


def test_by_default_nothing_is_shown(loud):
    logger, heard = loud
    hush("loud")()
    hush("loud")
    logger.critical("hidden")
    assert heard() == ([], ["hidden"])
