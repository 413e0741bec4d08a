"""What a first run costs beside its libraries alone: python -m benchmarks.startup [--rounds R]

Side by side, each in processes of their own and in turn, after one of each that is not counted and leaves compiled
modules behind, the medians over several rounds of processor seconds (of the process and its children) and of seconds on
the clock:
(a) `python -c "import flwr, ray, sklearn, matplotlib.pyplot"`, what anybody waits for who uses these libraries;
(b) `federation run quickstart`, with all that it writes;
(c) `federation --help`.
The bar is for (b) over (a), in processor seconds, which other work on the machine changes least.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.common import bar, command_line

LIBRARIES = "import flwr, ray, sklearn, matplotlib.pyplot"
COMMAND = "import sys; from scenarios.cli import main; sys.exit(main())"
MOST = 2.5  # times the processor seconds of the libraries


def taken(arguments: Sequence[str]) -> tuple[float, float]:
    """Processor seconds of a fresh Python process with these arguments, and seconds on the clock.

    Raises `subprocess.CalledProcessError` where it fails.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=environment, check=True, capture_output=True)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, seconds


def main() -> None:
    """Print the medians, and what a run takes over what its libraries take."""
    rounds = command_line(__doc__, rounds=5).parse_args().rounds
    found: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds + 1):
            commands = {
                "libraries alone": ["-c", LIBRARIES],
                "run quickstart": ["-c", COMMAND, "run", "quickstart", "--out", str(Path(folder) / str(number))],
                "--help": ["-c", COMMAND, "--help"],
            }
            for name, arguments in commands.items():
                found.setdefault(name, []).append(taken(arguments))
    costs = {name: [median(both) for both in zip(*each[1:], strict=True)] for name, each in found.items()}
    for name, (processor, clock) in costs.items():
        print(f"{name:16} {processor:6.2f} s of the processor, {clock:6.2f} s on the clock")
    run, libraries = costs["run quickstart"], costs["libraries alone"]
    print(f"on the clock a run takes {run[1] / libraries[1]:.2f} times what its libraries take")
    bar("processor seconds of a run over those of its libraries", run[0] / libraries[0], MOST)


if __name__ == "__main__":
    main()
