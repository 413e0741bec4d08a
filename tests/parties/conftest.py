"""What a site's own log tells is listened to here as if no other test had listened to it in ways of its own."""

import logging

import pytest


@pytest.fixture(autouse=True)
def _logs_as_they_are():
    logging.disable(logging.NOTSET)
    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "parties"]:
        logger = logging.getLogger(name)
        logger.disabled, logger.propagate = False, True
        logger.setLevel(logging.NOTSET)
