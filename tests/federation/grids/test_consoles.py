"""Only terminals are hushed."""

import io
import logging
import sys

import pytest

from federation.engines.ray_cluster import hush


@pytest.fixture
def loud(tmp_path, monkeypatch):
    """A logger with a terminal, a file and a listener, and what they have heard."""
    logger, terminal, listener = logging.getLogger("loud"), io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "__stderr__", terminal)  # pytest puts `stderr` back
    logger.propagate = False
    handlers = (
        logging.StreamHandler(terminal),
        logging.FileHandler(tmp_path / "log"),
        logging.StreamHandler(listener),
    )
    for handler in handlers:
        handler.setLevel(logging.WARNING)
        logger.addHandler(handler)
    yield (
        logger,
        lambda: (terminal.getvalue().split(), (tmp_path / "log").read_text().split(), listener.getvalue().split()),
    )
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
    all_of_it = ["hidden", "shown", "again"]
    assert heard() == (["shown", "again"], all_of_it, all_of_it)


def test_by_default_nothing_is_shown(loud):
    logger, heard = loud
    hush("loud")()
    hush("loud")
    logger.critical("hidden")
    assert heard() == ([], ["hidden"], ["hidden"])
