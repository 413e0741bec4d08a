"""What one aggregator can take in: python -m benchmarks.gathering [--repeats R]

Answers of whole nodes are made once and taken in again and again, as of ever other parties, as a cluster with any
number of workers would deliver them: processor microseconds a party for reading, checking and counting, and what these
make of 1e8 and 1e9 parties whatever the number of workers.
"""

from __future__ import annotations

import time

import numpy as np

from aggregator.ensembles.output import VoteTally
from benchmarks.common import command_line, fastest
from federation.contract.query import Submission
from federation.engines.codec import bytes_per_party, decode_submission, encode_submission
from federation.features.feature_map import FeatureMap
from federation.queries.votes import Training, VotesQuestion

SHAPES = {"ten-million-parties": (2000, 4096), "million-parties": (10_000, 1677)}  # public rows, parties of a node


def gathered(rows: int, parties: int, repeats: int) -> tuple[float, int]:
    """Processor seconds a party at best, and bytes that it sends."""
    training = Training(FeatureMap(1, ()), 2, {"name": "logistic", "parameters": {}}, 0)
    question = VotesQuestion(training, np.zeros((rows, 1)))
    votes = np.random.default_rng(0).integers(0, 2, (parties, rows)).astype(np.uint8)
    sent = encode_submission(Submission("votes", np.arange(parties), {"votes": votes}), question.fields())

    def take() -> None:
        tally = VoteTally(question, parties)
        assert tally.add(decode_submission(sent, question.fields())) == {}

    seconds, _ = fastest(take, repeats, time.process_time)
    return seconds / parties, bytes_per_party(question.fields())


def main() -> None:
    """Print the rates."""
    arguments = command_line(__doc__, repeats=20).parse_args()
    for name, (rows, parties) in SHAPES.items():
        each, sent = gathered(rows, parties, arguments.repeats)
        print(f"{name}: {1e6 * each:.2f} us and {sent} bytes a party of {rows} votes")
        for many in (1e8, 1e9):
            print(f"    {many:.0e} parties: {many * each / 60:.1f} min, {many * sent / 1e9:.0f} GB", flush=True)


if __name__ == "__main__":
    main()
