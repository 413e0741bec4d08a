"""Synthetic parties that are watched or come to harm; loadable by reference in any process."""

import os
import signal
import time
from pathlib import Path

from support.synthetic import Parties

from parties.party_data.cohort import Holdings


class Witnessed(Parties):
    """Notes which Ray node serves a party: one file per party in `folder`, holding the node's id.

    The first waits until another node serves a party, too: a busy machine may give one of them all the time.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder, self._end = Path(folder), time.monotonic() + 60

    def holdings(self, party: int) -> Holdings:
        import ray

        (self._folder / str(party)).write_text(ray.get_runtime_context().get_node_id())
        while len({path.read_text() for path in self._folder.iterdir()} - {""}) < 2 and time.monotonic() < self._end:
            time.sleep(0.02)
        return super().holdings(party)


class Killed(Parties):
    """The first process to serve `party` writes its id to `flag` and waits to be killed."""

    def __init__(self, party: int, flag: str) -> None:
        super().__init__()
        self._party, self._flag = party, Path(flag)

    def holdings(self, party: int) -> Holdings:
        if party == self._party and not self._flag.exists():
            partial = self._flag.with_suffix(".partial")
            partial.write_text(str(os.getpid()))
            partial.rename(self._flag)
            time.sleep(600)
        return super().holdings(party)


class Unplugged(Parties):
    """The Ray node `node` dies with all its workers when it first serves a party."""

    def __init__(self, node: str, flag: str) -> None:
        super().__init__()
        self._node, self._flag = node, Path(flag)

    def holdings(self, party: int) -> Holdings:
        import ray

        if not self._flag.exists() and ray.get_runtime_context().get_node_id() == self._node:
            self._flag.touch()
            os.kill(os.getppid(), signal.SIGKILL)  # the raylet
            time.sleep(600)
        time.sleep(0.02)
        return super().holdings(party)


class Announced(Parties):
    """Touches `flag` when it is loaded."""

    def __init__(self, flag: str) -> None:
        super().__init__()
        Path(flag).touch()


class Hanging(Parties):
    """Party 0 never ends."""

    def holdings(self, party: int) -> Holdings:
        if party == 0:
            time.sleep(600)
        return super().holdings(party)


class Uncaught(BaseException):
    """What no handler of a party's errors catches, without a text."""


class Unstoppable(Parties):
    """Party 3 raises `Uncaught`."""

    def holdings(self, party: int) -> Holdings:
        if party == 3:
            raise Uncaught
        return super().holdings(party)
