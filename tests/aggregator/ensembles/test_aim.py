import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.contract.session import USEFUL
from aggregator.ensembles.sessions import Aim
from aggregator.trial.trial import Spectrum, affordable
from federation.mechanisms.accounting.sensitivity import statistic
from federation.mechanisms.noise.additive import calibrate

SPECTRUM = Spectrum(5000, np.exp(-np.arange(60) / 12))


def rho(aim, classes, parties, spectrum):
    size = affordable(aim.noise, spectrum, classes=classes, parties=parties, epsilon=aim.epsilon, delta=aim.delta)
    return aim.signal_to_noise((classes - 1) * (size + 1), parties)


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_it_is_the_largest_share_over_the_expected_noise(noise):
    mechanism = calibrate(noise, sensitivity=2 / 500, dimension=300, epsilon=0.7, delta=1e-6)
    found = Aim(noise, 0.7, 1e-6).signal_to_noise(300, 500)
    assert found == pytest.approx(1 / mechanism.expected_noise_norm(), rel=0.01)
    assert statistic(500) < 2 / 500


@settings(max_examples=25)
@given(
    noise=st.sampled_from(["pure", "gaussian"]),
    epsilon=st.floats(0.2, 10),
    classes=st.integers(2, 10),
    parties=st.integers(2, 400),
)
def test_from_there_on_there_are_always_enough_and_one_less_was_not(noise, epsilon, classes, parties):
    aim = Aim(noise, epsilon, 1e-6)
    now = affordable(noise, SPECTRUM, classes=classes, parties=parties, epsilon=epsilon, delta=1e-6)
    needed = aim.parties_needed(classes, now + 1, parties, SPECTRUM)
    after = np.unique(np.geomspace(needed, 50 * needed, 60).astype(int))
    assert min(rho(aim, classes, int(more), SPECTRUM) for more in after) >= USEFUL * (1 - 1e-9)
    assert needed == 1 or rho(aim, classes, needed - 1, SPECTRUM) < USEFUL


def test_more_dimensions_can_make_more_parties_too_few():
    """The published example of a spectrum whose signal over noise is not monotone in the number of parties."""
    aim = Aim("pure", 1.0, 0.0)
    now = affordable("pure", SPECTRUM, classes=10, parties=20, epsilon=1.0, delta=0.0)
    needed = aim.parties_needed(10, now + 1, 20, SPECTRUM)
    below = [parties for parties in range(2, needed) if rho(aim, 10, parties, SPECTRUM) >= USEFUL]
    assert below
    assert max(below) < needed - 1


def test_without_a_choice_of_dimensions_it_is_a_quotient():
    assert Aim("pure", 2.0, 0.0).parties_needed(3, 10, 5, None) == 4 * 2 * 20 / 2


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-30])
@pytest.mark.parametrize("spectrum", [None, SPECTRUM])
def test_beyond_all_parties_there_is_no_counting(epsilon, spectrum):
    assert Aim("pure", epsilon, 0.0).parties_needed(3, 10, 5, spectrum) == pytest.approx(1e18)
