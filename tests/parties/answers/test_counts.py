import numpy as np
import pytest
from support.bagged import counts_of

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId, check_submission
from federation.queries.bags import Bags, CountsNoise, CountsQuestion
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort
from parties.site.worker import cost_of

BAGGED = Reference("support.bagged:Parties").to_json()


def question(noise="gaussian", epsilon=1.0, delta=1e-3, draws=4, seeded=True, name="a world", persons=0, **known):
    asked = CountsNoise(noise, epsilon, delta, **known)
    return CountsQuestion(asked, Bags(3, 3, persons), release=ReleaseId(name), draws=draws, seeded=seeded)


def cohort(first=0, count=3, **config):
    return Cohort(BAGGED, first, count, **{"seed": 5, **config})


def test_answers_are_noisy_counts_that_sum_to_the_public_sizes():
    asked = question(draws=3000)
    found = answered(cohort(count=2), asked)
    check_submission(asked, found)
    assert found.arrays["sizes"].tolist() == [[60, 60, 0]] * 2
    counts = found.arrays["counts"]
    np.testing.assert_allclose(counts.sum(axis=3)[:, :, :2], 60, atol=1e-9)
    assert not counts[:, :, 2].any()
    deviation = counts[:, :, :2].std(axis=1)
    assert deviation.min() > 1
    for party in (0, 1):
        error = counts[party].mean(axis=0)[:2] - counts_of(party)
        assert (np.abs(error) < 5 * deviation[party] / np.sqrt(3000)).all()


def test_an_answer_promises_what_was_asked_for():
    promised = answered(cohort(), question(epsilon=0.7, delta=1e-4)).guarantee
    assert (promised.epsilon, promised.delta, promised.unit) == (0.7, 1e-4, Unit.LABEL)
    assert answered(cohort(), question("pure", delta=1e-4)).guarantee.delta == 0


@pytest.mark.parametrize("noise", ["off", "published_dirichlet"])
def test_answers_without_a_guarantee_carry_none(noise):
    found = answered(cohort(count=1), question(noise, epsilon=0.05, delta=0.05))
    assert found.guarantee is None
    exact = found.arrays["counts"][0, :, :2]
    assert (exact == counts_of(0)).all() == (noise == "off")


def test_noise_depends_on_party_and_release_and_not_on_company():
    asked = question()
    alone = [answered(cohort(first, 1), asked).arrays["counts"][0] for first in range(3)]
    np.testing.assert_array_equal(answered(cohort(), asked).arrays["counts"], alone)
    assert not np.array_equal(alone[0], alone[2])
    other = answered(cohort(0, 1), question(name="another world")).arrays["counts"][0]
    assert not np.array_equal(alone[0], other)


def test_the_operating_system_makes_noise_that_does_not_repeat():
    asked = question(seeded=False)
    first, second = (answered(cohort(), asked).arrays["counts"] for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_party_with_broken_labels_costs_no_other_party():
    broken = Reference("support.bagged:Parties", {"broken": [1]}).to_json()
    found = answered(Cohort(broken, 0, 3, seed=5), question())
    assert found.parties.tolist() == [0, 2]
    assert "class code" in found.failures[1]


def test_a_person_in_several_bags_pays_for_each_of_them():
    once, thrice = (question("pure", persons=persons) for persons in (1, 3))
    assert thrice.noise == once.noise
    assert once.mechanism().epsilon == pytest.approx(1.0)
    assert thrice.mechanism().epsilon == pytest.approx(1 / 3)
    promised = thrice.promise()
    assert (promised.unit, promised.epsilon) == (Unit.PERSON, pytest.approx(1.0))


class TestDeployed:
    """Without a seed the node is a deployed one."""

    def asked(self, **changes):
        return question(**{"draws": 1, "seeded": False, **changes})

    def test_it_answers_what_has_been_paid_for(self):
        node = cohort(count=1, seed=None, paid=True)
        assert cost_of(self.asked(), node).guarantee.epsilon == 1.0
        assert answered(node, self.asked()).parties.tolist() == [0]

    @pytest.mark.parametrize(
        ("changes", "text"),
        [
            ({"seeded": True}, "no seed"),
            ({"draws": 2}, "given once"),
            ({"noise": "off"}, "guarantee"),
            ({"noise": "dirichlet_floor", "floor": 20}, "a floor protects only where it is true"),
            ({"noise": "published_dirichlet", "epsilon": 0.05, "delta": 0.05}, "guarantee"),
        ],
    )
    def test_what_only_a_simulation_may_ask_is_refused(self, changes, text):
        with pytest.raises(InputError, match=text):
            answered(cohort(seed=None, paid=True), self.asked(**changes))
