"""Votes of many small parties, from trained classifiers to counts, beside what the machine needs at least.

Run from the repository root: python -m benchmarks.voting [--data-dir DIR] [--parties COUNT]

First the vote phase (votes at the parties, packing, unpacking, counting at the aggregator) at the size of the largest
KDD-99 scenario, over a floor of plain products of the same precision and plain counts of bits that are already there,
both of all public rows, and over one of the different rows, as parties vote once on rows that are equal; beside it the
share of the statistic that the default asks for. Then what a party costs at the size of HAR, beside a loop over
scikit-learn; and what it costs outside training and votes, in the scenarios of many small parties. One thread,
processor time. Rows of the same shape are drawn where the data is not at hand.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from aggregator.ensembles.output import VoteTally
from aggregator.ensembles.votes import share_question
from aggregator.trial.feature_fitting import fit_rows
from aggregator.trial.public_rows import PublicRows
from benchmarks.common import bar, command_line, fastest
from federation.contract.plugins import Reference
from federation.engines.codec import decode_submission, encode_submission
from federation.engines.nodes import cohort_size, most_per_node
from federation.queries.votes import Training, VotesQuestion
from parties.party_data.cohort import Cohort, Holdings
from parties.responses import votes
from parties.responses import votes as statistic
from parties.training import linear
from parties.training.training import load, trained
from scenarios.data.generated_sets import DRAWN_SETS
from scenarios.runs.trial import split_of
from scenarios.settings.schema import resolve
from scenarios.simulated.simulation import split

REGULARISATION = 1e-4
WORKERS = 2  # that the automatic cohort size is chosen for
MANY = ("ten-million-parties", "million-parties")
FEW_NUMBERS = 100  # of a party: more of them cannot be read and transformed in 10 us
TILES = (256, 512, 1024, 4096)
DEFAULT_MAP = ["scale", {"whiten": 10}, "constant", "unit_norm"]


class Drawn:
    """A provider of Gaussian classes: `rows` rows of `columns` columns for every party, more for party -1."""

    def __init__(self, columns: int, classes: int, rows: int) -> None:
        self._rows = rows
        self._centres = np.random.default_rng(0).normal(size=(classes, columns))
        self._scales = np.exp2(-np.arange(columns) / 4)

    def holdings(self, party: int) -> Holdings:
        """The rows of one party."""
        return self.some(party, self._rows)

    def some(self, key: int, count: int) -> Holdings:
        """So many rows."""
        random = np.random.default_rng(key + 1)
        labels = random.integers(0, len(self._centres), count)
        noise = random.normal(size=(count, len(self._scales)))
        return Holdings(key, (self._centres[labels] + noise) * self._scales, labels)


@dataclass(frozen=True)
class World:
    """Parties and how many numbers each holds, where these come from, the public rows, and what is asked of them."""

    title: str
    numbers: int
    parties: int
    holdings: str
    public: PublicRows
    question: VotesQuestion

    def cohort(self, wanted: int | None) -> int:
        """Parties per cohort, the automatic size for None."""
        return cohort_size(self.parties, WORKERS, wanted, most_per_node(True, len(self.public.rows)))

    def cohorts(self, size: int) -> Iterator[Cohort]:
        """All parties in cohorts."""
        for first in range(0, self.parties, size):
            yield Cohort(self.holdings, first, min(size, self.parties - first), seed=0)


def world(
    name: str, parties: int, drawn: dict[str, int], public: int, stages: Sequence[Any], data: str | None
) -> World:
    """The first split of a library scenario, or rows drawn in its shape when its data is not in the folder `data`."""
    source = resolve(name).data.source
    if any(one.name == source for one in DRAWN_SETS) or (data is not None and (Path(data) / f"{source}.npz").exists()):
        spec = split_of(resolve(name, [f"parties.count={parties}"]), 0, data)
        holdings, table = spec.reference("SimulatedParties"), spec.reference("public_rows").call()
        rows, text, classes, title = table.rows, table.text_columns, len(split(spec).table.classes), source
    else:
        holdings, text, classes = Reference("benchmarks.voting:Drawn", drawn), (), drawn["classes"]
        rows, title = Drawn(**drawn).some(-1, public).rows, f"rows drawn in the shape of {source}"
    behind = PublicRows(*fit_rows(stages, rows, text), stages)
    feature_map = behind.feature_map
    training = Training(feature_map, classes, {"name": "logistic", "parameters": {"regularisation": REGULARISATION}}, 0)
    numbers = feature_map.columns * drawn["rows"]
    return World(title, numbers, parties, holdings.to_json(), behind, VotesQuestion(training, behind.different[0]))


class Clock:
    """Processor seconds by phase: other programs on the machine do not count."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = time.process_time()
        yield
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.process_time() - start

    def of(self, *phases: str) -> float:
        """Processor seconds of some phases together."""
        return sum(self.seconds[phase] for phase in phases)


def vote(cohort: Cohort, question: VotesQuestion, tally: VoteTally, clock: Clock) -> None:
    """One message of the vote phase, there and back; the classifiers are trained already."""
    fields = question.fields()
    with clock("votes"):
        submission = votes.respond_votes(cohort, question)
    with clock("packing"):
        records = encode_submission(submission, fields)
    with clock("unpacking"):
        received = decode_submission(records, fields)
    with clock("counting"):
        refused = tally.add(received)
    assert not refused | dict(received.failures)


class Floor:
    """What cannot be avoided: one float32 product per vote, and the addition of bits that are there already."""

    def __init__(self, rows: np.ndarray, together: int) -> None:
        self._columns = np.ascontiguousarray(rows.T, dtype=np.float32)
        self._bits = np.random.default_rng(0).integers(0, 2, (together, len(rows)), dtype=np.uint8)
        some = np.random.default_rng(1).normal(size=(together, len(self._columns))).astype(np.float32)
        clock = Clock()
        for tile in 2 * TILES:
            with clock(str(tile)):
                self._multiply(some, tile)
        self.tile = min(TILES, key=lambda tile: clock.of(str(tile)))

    def _multiply(self, weights: np.ndarray, tile: int) -> None:
        scores = np.empty(len(weights) * tile, dtype=np.float32)
        for start in range(0, self._columns.shape[1], tile):
            columns = self._columns[:, start : start + tile]
            shape = len(weights), columns.shape[1]
            np.matmul(weights, columns, out=scores[: shape[0] * shape[1]].reshape(shape))

    def serve(self, weights: np.ndarray, counts: np.ndarray, clock: Clock) -> None:
        """The products of weights (P, d) and all rows, and P bits per row added to counts (N,)."""
        with clock("products"):
            self._multiply(weights.astype(np.float32), self.tile)
        with clock("bits"):
            counts += np.add.reduce(self._bits[: len(weights)], axis=0, dtype=np.uint8)


def vote_phase(world: World, size: int) -> None:
    """Prints the vote phase of a world of two classes over its floor, measured cohort by cohort, side by side."""
    question = world.question
    clock, tally = Clock(), VoteTally(question, world.parties)
    whole, fewer = (Floor(rows, size) for rows in (world.public.rows, question.rows))
    counts, few = (np.zeros(len(rows), dtype=np.int64) for rows in (world.public.rows, question.rows))
    of_different = Clock()
    for cohort in world.cohorts(size):
        with clock("training"):
            outcome = trained(cohort, question.training)
        vote(cohort, question, tally, clock)
        weights = [group.weights for group in outcome.groups if isinstance(group, linear.LinearGroup)]
        whole.serve(np.concatenate(weights), counts, clock)
        fewer.serve(np.concatenate(weights), few, of_different)
    cohort = next(world.cohorts(size))
    trained(cohort, question.training)
    tracemalloc.start()
    vote(cohort, question, VoteTally(question, world.parties), Clock())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    phase, least = clock.of("votes", "packing", "unpacking", "counting"), clock.of("products", "bits")
    cast, (rows, columns) = tally.answered * len(world.public.rows), world.public.rows.shape
    print(f"{world.title}: {world.parties} parties in cohorts of {size}, {rows} auxiliary rows, of which")
    print(f"  {len(question.rows)} differ, {columns} dimensions")
    print(f"  vote phase {phase:.3f} s, {cast / phase:.3g} votes/s; floor {least:.3f} s; ratio {phase / least:.2f}")
    smaller = of_different.of("products", "bits")
    print(f"  floor of the different rows {smaller:.3f} s; ratio {phase / smaller:.2f}")
    bar("vote phase over its floor", phase / least, 2.0)
    nanoseconds = {name: f"{name} {1e9 * seconds / cast:.3f}" for name, seconds in clock.seconds.items()}
    print(f"  ns per vote: {', '.join(nanoseconds[name] for name in ('votes', 'packing', 'unpacking', 'counting'))}")
    print(f"  ns per vote of the floor: {nanoseconds['products']} (tiles of {whole.tile} rows), {nanoseconds['bits']}")
    print(f"  loading and training {1e6 * clock.of('training') / world.parties:.1f} us per party")
    print(
        f"  the default share of the same cohort: {1e9 * _share(world, cohort) / (len(cohort.parties) * rows):.3f} ns"
    )
    print(f"  memory allocated at the peak of one cohort, from its votes to the counts: {peak / 2**20:.1f} MiB")


def _share(world: World, cohort: Cohort) -> float:
    """Processor seconds of a cohort's default shares of the statistic, which take the place of its votes."""
    asked = share_question(world.question.training, world.public, world.public.whitening, "probabilities", "both")
    trained(cohort, asked.training)
    return fastest(lambda: statistic.respond_statistic(cohort, asked), 2, time.process_time)[0]


def outside(world: World, size: int) -> None:
    """Prints what a party costs outside training and votes: its rows, the feature map, packing, unpacking, counting."""
    question, clock, tally = world.question, Clock(), VoteTally(world.question, world.parties)
    for cohort in world.cohorts(size):
        with clock("loading"):
            load(cohort, question.training)
        with clock("training"):
            trained(cohort, question.training)  # of rows that are read already
        vote(cohort, question, tally, clock)
    costs = {name: 1e6 * seconds / world.parties for name, seconds in clock.seconds.items()}
    print(f"{world.title}: {world.parties} parties in cohorts of {size}, {len(question.rows)} auxiliary rows")
    print(f"  us per party: {', '.join(f'{name} {cost:.1f}' for name, cost in costs.items())}")
    beside = sum(costs.values()) - costs["training"] - costs["votes"]
    if world.numbers <= FEW_NUMBERS:
        bar("us per party outside training and votes", beside, 10.0)
    else:
        print(
            f"  outside training and votes {beside:.1f}, {1e3 * beside / world.numbers:.1f} ns for each number it holds"
        )


def per_party(world: World, size: int) -> None:
    """Prints what a party costs, and what a scikit-learn classifier of the same loss costs in a loop."""
    question, clock = world.question, Clock()
    training = question.training
    tally = VoteTally(question, world.parties)
    for cohort in world.cohorts(size):
        with clock("rows"):
            for party in cohort.parties:
                cohort.provider.holdings(party)
        with clock("load"):
            loaded, _ = load(cohort, training)
        with clock("train"):
            linear.train(cohort, loaded, training.classes, REGULARISATION)
        trained(cohort, training)
        vote(cohort, question, tally, clock)
        for rows, labels in loaded.each():
            with clock("fit"):
                model = LogisticRegression(C=1 / (len(rows) * REGULARISATION), fit_intercept=False)
                one = (labels == labels[0]).all()
                predict = (lambda _: None) if one else model.fit(rows, labels).predict
            with clock("predict"):
                predict(question.rows)
    costs = {name: 1e6 * seconds / world.parties for name, seconds in clock.seconds.items()}
    rows, columns = question.rows.shape
    print(f"{world.title}: {world.parties} parties in cohorts of {size}, {rows} auxiliary rows, {columns} dimensions")
    print(
        f"  us per party: provider {costs['rows']:.1f}, loading and transform {costs['load']:.1f} (provider included), "
        f"training {costs['train']:.1f}, votes {costs['votes']:.1f}, packing {costs['packing']:.1f}, "
        f"unpacking {costs['unpacking']:.1f}, counting {costs['counting']:.1f}"
    )
    print(f"  us per party in a loop over scikit-learn: fit {costs['fit']:.1f}, predict {costs['predict']:.1f}")


def main() -> None:
    """Prints the vote phase in 11 and in 119 dimensions, then the costs of a party."""
    parser = command_line(__doc__)
    parser.add_argument("--parties", type=int, default=20_000, help="of the vote phase; a tenth in 119 dimensions")
    parser.add_argument("--cohort", type=int, default=None, help="parties per cohort; by default the automatic size")
    chosen = parser.parse_args()
    with threadpool_limits(1):
        for parties, stages in ((chosen.parties, DEFAULT_MAP), (max(1, chosen.parties // 10), ["scale", "unit_norm"])):
            shape = {"columns": 119, "classes": 2, "rows": 22}
            large = world("kdd-large", parties, shape, 54_021, stages, chosen.data_dir)
            vote_phase(large, large.cohort(chosen.cohort))
        shape = {"columns": 561, "classes": 6, "rows": 6}
        small = world("har-soft-vote", 1000, shape, 1352, [{"whiten": 10}, "unit_norm"], chosen.data_dir)
        per_party(small, small.cohort(chosen.cohort))
        for name in MANY:
            scenario = resolve(name)
            held = {"rows": scenario.parties.rows or 0}  # its rows are drawn wherever it runs
            many = world(name, chosen.parties, held, 0, scenario.data.stages, chosen.data_dir)
            outside(many, many.cohort(chosen.cohort))


if __name__ == "__main__":
    main()
