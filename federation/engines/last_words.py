"""Messages about the end of a process that cannot report it itself: Ray ends every process whose cluster lost its head.

Ray does so from any step of that process and at once, so that no code of the process runs any more. Another process
runs this module as a file. The module therefore needs nothing but Python.
"""

import socket
import subprocess
import sys
from collections.abc import Sequence

_REACHABLE = 5.0  # seconds for a port to answer
_RELEASED = b"."


def answers(address: str) -> bool:
    """Whether somebody listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_REACHABLE).close()
    except OSError:
        return False
    return True


class LastWords:
    """A process that waits for the end of this one, and then says the sentence where an address answers no more.

    It says nothing once it is released, and where this process ends while all addresses answer.
    """

    def __init__(self, sentence: str, addresses: Sequence[str]) -> None:
        command = [sys.executable, "-I", "-S", __file__, sentence, *addresses]
        # In a session of its own: what interrupts this process is nothing to it.
        self._waiting = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )

    def release(self) -> None:
        """End it: this process can speak for itself."""
        if self._waiting.poll() is None:
            self._waiting.communicate(_RELEASED)


if __name__ == "__main__":
    sentence, *addresses = sys.argv[1:]
    if not sys.stdin.buffer.read() and not all(map(answers, addresses)):
        print(f"error: {sentence}", file=sys.stderr)
