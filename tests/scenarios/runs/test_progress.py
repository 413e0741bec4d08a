"""Terminals show the round that is answered, costs add up by phase, and the time left is told by whose pace."""

import resource

import pytest

from scenarios.runs.progress import Costs, Left, Remaining, TerminalProgress
from scenarios.runs.runner import run

EXCHANGE = {
    "data": {"source": "breast_cancer", "auxiliary": 0.3},
    "parties": {"count": 3},
    "protocols": [{"kind": "error_marginals", "rounds": 3, "learner": "linear"}, {"kind": "mean_operator"}],
    "baselines": False,
    "privacy": {"epsilon": [1, 3]},
    "trials": {"splits": 2, "noise": 1},
    "engine": {"parties_per_node": 1},
    "seed": 0,  # with others an exchange may end a round early
}


class Noted(TerminalProgress):
    """Notes what the bar of answers says after every answer, world by world, and draws nothing."""

    def __init__(self):
        super().__init__()
        self.worlds = []

    def begin(self, worlds, done):
        pass

    def world(self, label):
        super().world(label)
        self.worlds.append([])

    def answers(self, answered, sent):
        super().answers(answered, sent)
        task = self._bars.tasks[self._answers]
        self.worlds[-1].append((task.description, task.completed, task.total))


@pytest.mark.slow
def test_each_world_counts_the_answers_of_every_round_from_one(tmp_path, undrawn):
    noted = Noted()
    run(EXCHANGE, out=tmp_path / "out", progress=noted)
    # 3 nodes; for each of 2 epsilons a query, and the mean operator asks for rows, and sums by epsilon
    sent = {"answers": 3 * (2 + 3), "answers, round 2": 3 * 2, "answers, round 3": 3 * 2}
    world = [(name, count, total) for name, total in sent.items() for count in range(1, total + 1)]
    assert noted.worlds == [world, world]


def test_seconds_of_a_phase_add_up_and_memory_never_falls(monkeypatch):
    times = iter([0.0, 2.0, 10.0, 13.5])
    monkeypatch.setattr(Costs, "clock", staticmethod(lambda: next(times)))
    costs = Costs({"scoring": 1.0})
    with costs.phase("data"):
        pass
    first = costs.peak_mebibytes["data"]
    with pytest.raises(KeyError), costs.phase("data"):
        raise KeyError
    costs.add("scoring", 0.25)
    costs.add("report", 3.0)
    assert costs.seconds == {"data": 5.5, "scoring": 1.25, "report": 3.0}
    assert costs.peak_mebibytes["data"] >= first > 10
    assert first <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10 + 1


class Told:
    """A run whose clock stands where a test puts it."""

    def __init__(self, *parties):
        self.now = 0.0
        self.left = Left(lambda: self.now)
        self.left.begin(parties)

    def heard(self, now, answered, sent):
        self.now = now
        self.left.answers(answered, sent)
        return self.left.remaining()

    def world(self, answering, after, sent=10):
        """One whole world, from now on."""
        self.left.world()
        self.heard(self.now + answering, sent, sent)
        self.now += after
        self.left.world_done()


def test_nothing_is_said_before_anything_can_be_and_the_first_world_gives_a_bound_that_counts_down():
    told = Told(100)
    assert told.left.remaining() is None
    told.left.world()
    assert told.left.remaining() is None
    assert told.heard(0.5, 1, 10) is None  # too short
    assert told.heard(2.0, 1, 1000) is None  # too few
    told = Told(100)
    told.left.world()
    assert told.heard(4.0, 4, 10) == Remaining(pytest.approx(6.0), bound=True)
    told.now = 5.0
    assert told.left.remaining() == Remaining(pytest.approx(5.0), bound=True)
    assert told.heard(10.0, 10, 10) == Remaining(0.0, bound=True)  # releasing and scoring are still to come
    assert told.heard(12.0, 11, 15) == Remaining(pytest.approx(8.0), bound=True)


def test_later_worlds_take_what_earlier_ones_took_with_releases_and_scores_unless_they_are_slower():
    told = Told(100, 100, 100)
    told.world(answering=8.0, after=2.0)
    assert told.left.remaining() == Remaining(pytest.approx(20.0), bound=False)
    told.left.world()
    told.now += 3.0
    assert told.left.remaining() == Remaining(pytest.approx(17.0), bound=False)
    told = Told(100, 100)
    told.world(answering=2.0, after=1.0)
    told.left.world()
    assert told.heard(told.now + 10.0, 5, 10).seconds == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("parties", "answering", "after", "left"),
    [((100, 1000), 1.0, 5.0, 15.0), ((100,), 2.0, 1.0, 0.0)],
    ids=["answers are counted by parties and what follows by worlds", "a run that is over has nothing left"],
)
def test_what_is_left_after_a_world(parties, answering, after, left):
    told = Told(*parties)
    told.world(answering=answering, after=after)
    assert told.left.remaining() == Remaining(pytest.approx(left), bound=False)
