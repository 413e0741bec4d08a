"""What the ten protocols require and promise, by public numbers alone, against tables written by hand."""

import math
from typing import Any

import pytest

from aggregator.contract.protocol import Place, Refused, Requires
from aggregator.contract.registry import protocol, protocol_names
from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Guarantee, NoGuarantee
from scenarios.settings.protocol_options import BASELINES, promise, requires, spending, task, without_noise

EPSILON, DELTA = 2.0, 1e-5
VOTES = Requires(classifier=True, public_rows=True)
LINES = Requires(labels="real", single_rows=True, features=("impute", "scale", "standardise", "constant"))
OF_TWO = {"two_classes": True, "single_rows": True}
# kind: (what it requires, its task, its kind of models)
KNOWN: dict[str, tuple[Requires, str, str]] = {
    "class_ratio": (Requires(bags=True, features=("impute", "scale")), "class_ratio", "class_ratio"),
    "error_marginals": (
        Requires(**OF_TWO, public_rows=True, features=("impute", "standardise")),
        "classification",
        "classifier",
    ),
    "label_sums": (LINES, "regression", "regression"),
    "majority_vote": (VOTES, "classification", "linear"),
    "mean_operator": (Requires(**OF_TWO, features=("impute", "standardise", "constant")), "classification", "linear"),
    "noisy_weighted_llp": (LINES, "regression", "regression"),
    "parameter_average": (VOTES, "classification", "linear"),
    "private_labels": (LINES, "regression", "regression"),
    "soft_vote": (VOTES, "classification", "linear"),
    "weighted_lba": (LINES, "regression", "regression"),
}

PUBLIC = PublicNumbers(DELTA, classes=3, features=9, public_rows=50, bags=2, largest_bag=8)
# A promise (epsilon, delta, unit, adjacency), or why there is none; then (numbers, private) of all that is sent.
SUMS: list[tuple[int | None, bool]] = [(81, False), (9, True), (9, False), (81, False)]  # X'X, X'y, X'1, its noise
PROMISED: list[tuple[str, dict[str, Any], Any, list[tuple[int | None, bool]]]] = [
    ("soft_vote", {}, (2.0, 0.0, "party", "replace"), [(18, False)]),
    ("soft_vote", {"noise": "gaussian"}, (2.0, DELTA, "party", "replace"), [(18, False)]),
    ("soft_vote", {"submit": "votes"}, (2.0, 0.0, "party", "replace"), [(50, False)]),
    ("soft_vote", {"share": "raw"}, (2.0, 0.0, "party", "replace"), [(18, False)]),
    ("soft_vote", {"submit": "votes", "ballot": "probabilities"}, (2.0, 0.0, "party", "replace"), [(100, False)]),
    ("soft_vote", {"perturb": "output", "protect": "party_and_auxiliary_row"},
     (2.0, 0.0, "party_and_auxiliary_row", "replace"), [(50, False)]),
    ("majority_vote", {}, (2.0, 0.0, "party", "replace"), [(50, False)]),
    ("majority_vote", {"noise": "gaussian"}, (2.0, DELTA, "party", "replace"), [(50, False)]),
    ("parameter_average", {}, (2.0, 0.0, "party", "replace"), [(18, False)]),
    ("parameter_average", {"noise": "gaussian"}, (2.0, DELTA, "party", "replace"), [(18, False)]),
    ("class_ratio", {}, (2.0, DELTA, "label", "replace"), [(6, True), (144, False)]),
    ("class_ratio", {"noise": "pure"}, (2.0, 0.0, "label", "replace"), [(6, True), (144, False)]),
    ("class_ratio", {"estimator": "whitened", "submit": "embedding", "dimensions": 32},
     (2.0, DELTA, "label", "replace"), [(6, True), (64, False)]),
    ("class_ratio", {"estimator": "whitened", "submit": "embedding", "protect": "row", "noise": "gaussian"},
     (2.0, DELTA, "row", "replace"), [(6, True), (1024, True)]),
    ("class_ratio", {"noise": "published_dirichlet"}, "claims", [(6, True), (144, False)]),
    ("private_labels", {}, (2.0, 0.0, "label", "replace"), [(72, False), (8, True)]),
    ("private_labels", {"noise": "gaussian"}, (2.0, DELTA, "label", "replace"), [(72, False), (8, True)]),
    ("label_sums", {}, (2.0, DELTA, "label", "replace"), SUMS),
    ("label_sums", {"noise": "pure"}, (2.0, 0.0, "label", "replace"), SUMS),
    ("label_sums", {"trust": "secure"}, (2.0, DELTA, "label", "replace"), SUMS[:3]),
    ("label_sums", {"protect": "row"}, (2.0, DELTA, "row", "replace"), [(66, True)]),
    ("label_sums", {"protect": "row", "trust": "secure"}, (2.0, DELTA, "row", "replace"), [(66, True)]),
    ("noisy_weighted_llp", {"size": 4}, (2.0, DELTA, "label", "replace"), [(72, False), (2, True)]),
    ("noisy_weighted_llp", {"size": 4, "noise": "laplace"}, (2.0, 0.0, "label", "replace"), [(72, False), (2, True)]),
    ("weighted_lba", {"size": 4}, (2.0, DELTA, "label", "replace"), [(18, False), (2, True)]),
    ("weighted_lba", {"size": 4, "noise": "published"}, "nothing", [(18, False), (2, False)]),
    # Rows get a constant feature where the map does not bound their norms.
    ("mean_operator", {}, (2.0, DELTA, "label", "replace"), [(10, True), (80, False)]),
    ("mean_operator", {"noise": "pure", "protect": "row"}, (2.0, 0.0, "row", "replace"), [(10, True)]),
    ("mean_operator", {"trust": "secure"}, (2.0, DELTA, "label", "replace"), [(10, True), (80, False)]),
    ("mean_operator", {"noise": "randomised_response"}, (2.0, 0.0, "label", "replace"), [(10, True), (80, False)]),
    ("mean_operator", {"noise": "published_laplace"},
     (2.0 * math.sqrt(10), 0.0, "label", "replace"), [(10, True), (80, False)]),
    ("mean_operator", {"noise": "published_laplace", "l1_bound": 1.5},
     (3.0, 0.0, "label", "replace"), [(10, True), (80, False)]),
    ("mean_operator", {"noise": "pure", "expansion": "polynomial"},
     (2.0, 0.0, "label", "replace"), [(55, True), (440, False)]),
    ("error_marginals", {}, (2.0, DELTA, "row", "add_remove"), [(None, True)]),
    ("error_marginals", {"noise": "pure", "adjacency": "replace"}, (2.0, 0.0, "row", "replace"), [(None, True)]),
    ("error_marginals", {"trust": "secure"}, (2.0, DELTA, "row", "add_remove"), [(None, True)]),
    ("error_marginals", {"noise": "published", "protect": "label"}, (2.0, 0.0, "label", "replace"), [(None, True)]),
]  # fmt: skip


def test_the_tables_have_all_protocols() -> None:
    assert protocol_names() == sorted(KNOWN) == sorted({kind for kind, *_ in PROMISED})


@pytest.mark.parametrize("kind", KNOWN)
def test_what_a_protocol_requires_and_is_for_and_with_noise_off_it_promises_nothing(kind: str) -> None:
    needs, known_task, model = KNOWN[kind]
    assert requires(kind) == needs
    assert task([kind]).name == known_task
    assert protocol(kind).model == model
    assert task([kind]).labels == needs.labels
    assert without_noise(kind, {"noise": "off"})
    assert not without_noise(kind, {})
    found = promise(kind, {"noise": "off"}, EPSILON, PUBLIC)
    assert found is not None
    assert found.spends == NoGuarantee("noise is off")
    assert not any(one.private for one in found.sends)
    assert spending(kind, {"noise": "off"}, EPSILON, DELTA) is None


@pytest.mark.parametrize(("kind", "options", "promised", "sent"), PROMISED)
def test_what_a_release_promises_and_what_leaves_a_party(
    kind: str, options: dict[str, Any], promised: Any, sent: list[tuple[int | None, bool]]
) -> None:
    found = promise(kind, options, EPSILON, PUBLIC)
    assert found is not None
    assert [(one.numbers, one.private) for one in found.sends] == sent
    spends = found.spends
    if isinstance(promised, str):
        assert isinstance(spends, NoGuarantee)
        assert spends.claimed == ((EPSILON, DELTA) if promised == "claims" else None)
        assert spending(kind, options, EPSILON, DELTA) is None
    else:
        assert isinstance(spends, Guarantee)
        epsilon, *others = promised
        assert (spends.delta, str(spends.unit), str(spends.adjacency)) == tuple(others)
        assert spends.epsilon == pytest.approx(epsilon, rel=1e-15)
    assert without_noise(kind, options) is False  # also where noise keeps no promise, or weights are secret


def test_numbers_that_are_not_known_yet_are_none() -> None:
    for kind, options, *_ in PROMISED:
        found = promise(kind, options, EPSILON, PublicNumbers(DELTA))
        assert found is not None
        known = options.get("dimensions") if kind == "class_ratio" else None
        assert all(one.numbers in (None, known) for one in found.sends)


def test_a_persons_rows_are_promised_together() -> None:
    found = promise("class_ratio", {}, EPSILON, PublicNumbers(DELTA, rows_per_person=3))
    assert found is not None
    assert isinstance(found.spends, Guarantee)
    assert str(found.spends.unit) == "person"


@pytest.mark.parametrize("kind", BASELINES)
def test_baselines_require_and_promise_nothing(kind: str) -> None:
    assert requires(kind) == Requires()
    assert promise(kind, {}, EPSILON, PUBLIC) is None
    assert spending(kind, {}, EPSILON, DELTA) is None
    assert not without_noise(kind, {})


# Where noise is made if parties trust a secure summation only; else a word of why it cannot be.
SHARED: dict[str, Place | str] = {
    "class_ratio": Place.SHARES,  # of common bags
    "error_marginals": Place.SHARES,
    "label_sums": Place.SHARES,
    "mean_operator": Place.SHARES,
    "noisy_weighted_llp": "adding those of several parties under one noise tells less",
    "private_labels": Place.PARTY,  # every label hides itself, and needs no summation
    "weighted_lba": "adding those of several parties under one noise tells less",
}


@pytest.mark.parametrize("kind", SHARED)
def test_under_a_secure_summation_noise_is_shared_or_every_answer_hides_itself_or_it_is_refused(kind):
    chosen, expected = protocol(kind)(trust="secure"), SHARED[kind]
    if isinstance(expected, Place):
        assert chosen.place is expected
    else:
        assert isinstance(chosen.place, Refused)
        assert expected in chosen.place.reason
        assert "use trust: none" in chosen.place.reason
    assert protocol(kind)(trust="none").place is Place.PARTY
    assert protocol(kind)(trust="secure", noise="off").place is Place.NOWHERE


def test_noise_without_shares_is_refused_in_a_sum_and_randomised_response_needs_none():
    for noise in ("laplace", "independent_laplace", "published_gaussian", "laplace_prior", "published_dirichlet"):
        place = protocol("class_ratio")(noise=noise, trust="secure").place
        assert isinstance(place, Refused)
        assert "use noise: auto, gaussian or pure, or trust: none" in place.reason
    assert protocol("mean_operator")(noise="randomised_response", trust="secure").place is Place.PARTY
