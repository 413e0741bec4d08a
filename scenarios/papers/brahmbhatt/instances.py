"""First lines of Tables 1 to 6: what is learned from every label, without any protection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scenarios.papers.brahmbhatt import linear, networks
from scenarios.papers.brahmbhatt.substitutes import SOURCES, world
from scenarios.reproductions.paper import Observation


def instances(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Errors of least squares and of the network on the labels of every split; a quick run has one."""
    for setting in SOURCES:
        for split in range(1 if quick else linear.SPLITS):
            one = world(setting, split, data_dir)
            if one is not None:
                yield from linear.labelled(setting, one, split)
                yield from networks.labelled(setting, one, split)
