"""Which round of a world is being answered shows on the terminal."""

from scenarios.runs.progress import TerminalProgress
from scenarios.runs.runner import run

EXCHANGE = {
    "data": {"source": "breast_cancer", "auxiliary": 0.3},
    "parties": {"count": 3},
    "protocols": [{"kind": "error_marginals", "rounds": 3, "learner": "linear"}, {"kind": "mean_operator"}],
    "baselines": False,
    "privacy": {"epsilon": [1, 3]},
    "trials": {"splits": 2, "noise": 2},
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


def test_each_world_counts_the_answers_of_every_round_from_one(tmp_path, undrawn):
    noted = Noted()
    run(EXCHANGE, out=tmp_path / "out", progress=noted)
    # 3 nodes; for each of 2 epsilons and 2 draws a query, and the mean operator asks for rows, and sums by epsilon
    sent = {"answers": 3 * (4 + 3), "answers, round 2": 3 * 4, "answers, round 3": 3 * 4}
    world = [(name, count, total) for name, total in sent.items() for count in range(1, total + 1)]
    assert noted.worlds == [world, world]
