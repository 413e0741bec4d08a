"""What a site's own log tells is listened to here."""

import logging

import pytest


@pytest.fixture(autouse=True)
def _listening(caplog):
    """The one handler of all tests hears everything: tests that lend it to Flower or Ray leave it hushed."""
    caplog.handler.setLevel(logging.NOTSET)
