"""A process that is ended from within says why, if what it needs is gone; and nothing otherwise."""

import socket
import subprocess
import sys

import pytest

ENDED = """
import os, sys
from federation.engines.last_words import LastWords
words = LastWords("the head is lost", sys.argv[1:])
{then}
os._exit(7)
"""


@pytest.mark.parametrize(
    ("there", "then", "said"),
    [
        (False, "", "error: the head is lost\n"),
        (True, "", ""),  # somebody else has ended it
        (False, "words.release()", ""),  # it has said so itself
    ],
)
def test_only_an_end_for_want_of_the_head_is_told(there, then, said):
    with socket.socket() as head:
        head.bind(("127.0.0.1", 0))
        if there:
            head.listen()
        command = [sys.executable, "-c", ENDED.format(then=then), f"127.0.0.1:{head.getsockname()[1]}"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (7, said)
