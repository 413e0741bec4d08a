"""What a scenario promises in words, by what it says alone: no data is read, and no party is asked."""

import pytest

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from scenarios.settings.guarantees import _told, promises
from scenarios.settings.schema import resolve

LEVELS = [(1.0, 0.0), (2.0, 1e-6), (3.0, 0.0)]  # epsilon and delta


def promised(*protocols, data=None, parties=None, privacy=None, **top):
    """By variant what is promised and what is sent."""
    found = promises(
        resolve(
            {
                "data": {"source": "digits", "auxiliary": 100, **(data or {})},
                "parties": {"count": 4, **(parties or {})},
                "protocols": [*protocols],
                "privacy": {"epsilon": [0.5, 2], "delta": 1e-5, **(privacy or {})},
                **top,
            }
        )
    )
    assert all(set(one) == {"variant", "promise", "sends"} for one in found)
    return {one["variant"]: (one["promise"], one["sends"]) for one in found}


def test_every_variant_is_told_at_all_epsilons_and_baselines_are_left_out():
    found = promised({"kind": "soft_vote", "noise": ["pure", "gaussian"]}, {"kind": "pooled"}, {"kind": "individual"})
    aggregator = "for one party (replace); the aggregator adds the noise and must be trusted"
    share = "a party sends a summary of what its classifier says of the public rows without noise"
    assert found == {
        "soft_vote": (f"epsilon 0.5 or 2, delta 0 {aggregator}", share),
        "soft_vote-gaussian": (f"epsilon 0.5 or 2, delta 1e-05 {aggregator}", share),
    }


def test_an_epsilon_that_a_variant_cannot_work_with_is_refused_wherever_it_stands():
    real = {"source": "diabetes"}
    with pytest.raises(InputError, match=r"from 0\.01 to 12, got 20; choose noise laplace or auto"):
        promised({"kind": "private_labels", "noise": "unbiased"}, data=real, privacy={"epsilon": [1, 20]})
    [(promise, _)] = promised({"kind": "private_labels"}, data=real, privacy={"epsilon": [20, 1]}).values()
    assert promise == "epsilon 12 or 1, delta 0 for one label (replace); every party adds the noise itself"


def test_epsilons_stand_together_where_nothing_else_differs_and_one_that_is_kept_twice_stands_once():
    bags = {"kind": "class_ratio", "noise": "published_dirichlet"}
    real = {"source": "diabetes"}
    [(promise, _)] = promised({"kind": "private_labels"}, data=real, privacy={"epsilon": [1, 20, 30]}).values()
    assert promise.startswith("epsilon 1 or 12, delta 0 for one label (replace); every")
    [(promise, _)] = promised(bags, parties={"bags": 2}, privacy={"epsilon": [0.05, 1]}).values()
    assert promise.count("NON-PRIVATE") == 1


def test_nothing_is_promised_without_noise():
    [(promise, sends)] = promised({"kind": "soft_vote", "noise": "off"}).values()
    assert promise == "NON-PRIVATE (noise is off); nobody adds noise"
    assert sends.endswith("without noise")


def test_parties_that_make_the_noise_themselves_send_it():
    two = {"source": "breast_cancer", "auxiliary": 60}
    [(promise, sends)] = promised({"kind": "mean_operator"}, data=two).values()
    assert promise == "epsilon 0.5 or 2, delta 1e-05 for one label (replace); every party adds the noise itself"
    assert " with noise and " in sends
    [(promise, _)] = promised({"kind": "mean_operator", "trust": "secure"}, data=two).values()
    assert promise.endswith("of which one server that may do what it likes can read the sum alone")
    shared = {"kind": "mean_operator", "trust": "secure"}
    [(promise, _)] = promised(shared, data=two, servers="two").values()
    assert promise.endswith("of which two servers that do not collude can read the sum alone")


def test_numbers_that_only_data_could_tell_are_left_out():
    vote = {"kind": "soft_vote", "submit": "votes"}
    [(_, counted)] = promised(vote).values()
    [(_, unknown)] = promised(vote, data={"auxiliary": 0.25}).values()
    assert counted == "a party sends one vote on every public row (100 numbers) without noise"
    assert unknown == "a party sends one vote on every public row without noise"


def test_classes_and_bags_are_counted_where_the_scenario_names_them():
    ratio, bags = {"kind": "class_ratio", "noise": "pure"}, {"bags": 2}
    [(_, unknown)] = promised(ratio, parties=bags).values()
    [(_, two)] = promised(ratio, data={"positive": ["1", "3"]}, parties=bags).values()
    assert "(4 numbers)" not in unknown
    assert "(4 numbers) with noise" in two  # two counts of each bag


def test_counts_are_added_of_common_bags_only_and_all_else_is_told_apart():
    ratio, bags = {"kind": "class_ratio", "trust": "secure"}, {"bags": 3, "common_bags": True}
    [(promise, sends)] = promised(ratio, parties=bags).values()
    assert promise.endswith("of which one server that may do what it likes can read the sum alone")
    assert "label counts of every bag with noise and how many rows it has of each bag (3 numbers) without" in sends
    assert "the rows of its bags without labels without noise" in sends
    embedded = {**ratio, "submit": "embedding", "estimator": "whitened", "dimensions": 10}
    [(_, sends)] = promised(embedded, parties=bags).values()
    assert "sums of its rows in all bags (30 numbers) without noise" in sends
    [(promise, sends)] = promised({**embedded, "protect": "row", "noise": "gaussian"}, parties=bags).values()
    assert "for one row (replace)" in promise
    assert sends.endswith(
        "label counts of every bag with noise and sums of its rows in all bags (30 numbers) with noise"
    )
    with pytest.raises(
        InputError, match=r"every party numbers .* set parties\.common_bags: true, else use trust: none"
    ):
        promised(ratio, parties={"bags": 3})


def test_of_a_sweep_the_first_world_is_told():
    vote = {"kind": "soft_vote", "submit": "votes"}
    assert promised(vote, data={"auxiliary": [50, 100]}) == promised(vote, data={"auxiliary": 50})


@pytest.mark.parametrize(("rows", "unit"), [(None, "label"), (3, "person")])
def test_whose_labels_are_protected_follows_from_the_column_of_persons(rows, unit):
    data = {"source": "own.csv", "label": "y"} | ({} if rows is None else {"person": "who", "rows_per_person": rows})
    [(promise, _)] = promised({"kind": "class_ratio", "noise": "pure"}, data=data).values()
    assert f"for one {unit} (replace)" in promise


def test_guarantees_of_another_kind_stand_apart():
    spends = [Guarantee(epsilon, delta, Unit.ROW, Adjacency.REPLACE, "noise") for epsilon, delta in LEVELS]
    assert _told([*spends, NoGuarantee("too loud"), NoGuarantee("louder")]) == (
        "epsilon 1 or 3, delta 0 for one row (replace); epsilon 2, delta 1e-06 for one row (replace); "
        "NON-PRIVATE (too loud)"
    )
