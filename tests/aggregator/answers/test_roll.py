import numpy as np

from aggregator.answers.roll import Roll


def test_declared_parties_count_once_and_the_first_cause_is_told():
    roll = Roll(4)
    counted, refused = roll.admit(np.array([0, 3, 9]), {"bad": np.array([False, True, True])})
    assert counted.tolist() == [True, False, False]
    assert refused == {3: "bad", 9: "not one of the 4 declared parties"}
    counted, refused = roll.admit(np.array([3, 0]), {"bad": np.array([False, True])})
    assert counted.tolist() == [True, False]  # a refused party may still answer well, a counted one not again
    assert "twice" in refused[0]
    assert (roll.answered, roll.parties) == (2, 4)


def test_nobody_may_answer():
    counted, refused = Roll(2).admit(np.empty(0, np.int64), {})
    assert (counted.size, refused) == (0, {})
