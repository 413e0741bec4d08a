"""Ranks of mechanisms by public numbers: the order that real data has shown, and refusals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.advice.ranking import rank
from federation.contract.errors import InputError

HOUSING = {"label_range": (0.15, 5.0), "residual": 0.49}
CENSUS = {"label_range": (0.0, 52.0), "residual": 124.1, "trust": "none"}


def key(advice):
    options = advice.options
    if advice.mechanism == "label_sums":
        return f"{options['shape']} {options['noise']} sums"
    if advice.mechanism == "private_labels":
        return f"{options['noise']} labels"
    return f"{advice.mechanism} {options.get('weights', '')} {options.get('noise', '')}".strip()


def excesses(found):
    return {key(advice): advice.predicted_excess for advice in found if not advice.options.get("debiased")}


def test_housing_is_in_the_measured_order():
    """Test errors at (1, 1e-6), non-private .490: .492, .504, .522, then .76 to .80, 2.00 and 4.47."""
    found = excesses(rank(16_512, 9, 1, 1.0, 1e-6, **HOUSING))
    order = ["optimal gaussian sums", "whitened gaussian sums", "laplace labels", "gaussian labels"]
    order += ["noisy_weighted_llp gaussian gaussian", "weighted_lba"]
    values = [found[name] for name in order]
    assert values == sorted(values)
    assert found["noisy_weighted_llp signs gaussian"] == pytest.approx(found["gaussian labels"], rel=0.1)
    assert found["optimal gaussian sums"] < 0.01
    assert 0.02 < found["laplace labels"] < 0.04
    assert 0.2 < found["gaussian labels"] < 0.35


def test_a_hundred_parties_without_trust_send_private_labels_and_one_party_sends_sums():
    """Census weeks, 79809 rows of rank 113: 127.8 by one bit and 190.8 by sums of 100 parties; 124.8 by one's sum."""
    many, one = rank(79_809, 113, 100, 1.0, 1e-6, **CENSUS), rank(79_809, 113, 1, 1.0, 1e-6, **CENSUS)
    assert [key(advice) for advice in many[:2]] == ["auto labels", "one_bit labels"]
    assert key(one[0]) == "optimal gaussian sums"
    assert excesses(many)["one_bit labels"] == pytest.approx(127.8 - 124.1, abs=1.5)
    assert 30 < excesses(many)["optimal gaussian sums"] < 300


def test_trust_in_the_aggregator_saves_the_noise_of_all_parties_but_one():
    trusted, one = (rank(79_809, 113, k, 1.0, 1e-6, **(CENSUS | {"trust": "aggregator"})) for k in (100, 1))
    assert key(trusted[0]) == key(one[0]) == "optimal gaussian sums"
    assert trusted[0].predicted_excess == one[0].predicted_excess


def test_known_traces_take_the_place_of_assumed_ones():
    found = excesses(rank(16_512, 9, 1, 1.0, 1e-6, traces={"optimal": 0.1, "whitened": 9.0}, **HOUSING))
    assert found["whitened gaussian sums"] == pytest.approx(90 * found["optimal gaussian sums"], rel=0.1)


def test_without_delta_all_mechanisms_are_pure():
    found = rank(5000, 5, 3, 0.5, 0.0)
    assert {advice.delta for advice in found} == {0.0}
    assert not any(advice.mechanism == "weighted_lba" for advice in found)


def test_classification_is_about_two_classes_whatever_the_range():
    one, other = (rank(5000, 5, 3, 0.5, 1e-6, task="classification", label_range=ends) for ends in ((0, 1), (3, 90)))
    assert one == other


def test_hopeless_settings_say_so():
    found = rank(100, 20, 100, 0.1, 1e-9, trust="none")
    assert "WORSE than predicting the middle" in found[-1].why
    assert not any(advice.mechanism == "weighted_lba" for advice in found)  # parties of one row have no bags


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(200, 10**6),
    dimension=st.integers(1, 60),
    parties=st.integers(1, 100),
    epsilon=st.floats(0.05, 8),
    trust=st.sampled_from(["aggregator", "none"]),
)
def test_ranks_are_sorted_and_more_privacy_never_costs_less(n, dimension, parties, epsilon, trust):
    found = rank(n, dimension, parties, epsilon, 1e-6, trust=trust)
    values = [advice.predicted_excess for advice in found]
    assert values == sorted(values)
    assert values[0] > 0
    looser = excesses(rank(n, dimension, parties, 2 * epsilon, 1e-6, trust=trust))
    for name, value in excesses(found).items():
        if "bins" not in name:
            assert looser[name] <= value * (1 + 1e-9)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": 0}, "n must be an integer"),
        ({"dimension": 2.5}, "dimension must be an integer"),
        ({"parties": 101}, "parties must be at most n"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"label_range": (1.0, 0.0)}, "label_range"),
        ({"trust": "everybody"}, "trust"),
        ({"task": "ranking"}, "task"),
        ({"residual": 1.0}, "residual"),
        ({"bag_size": 0}, "bag_size"),
        ({"traces": {"round": 1.0}}, "traces must be positive numbers"),
        ({"traces": {"optimal": 0.0}}, "traces must be positive numbers"),
    ],
)
def test_numbers_out_of_range_are_refused(changed, message):
    arguments = {"n": 100, "dimension": 5, "parties": 2, "epsilon": 1.0, "delta": 1e-6} | changed
    with pytest.raises(InputError, match=message):
        rank(**arguments)
