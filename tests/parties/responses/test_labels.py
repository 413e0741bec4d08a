"""Weighted sums of bags: against sums in exact arithmetic, term by term in the order of the rows, and from files."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.linear_labels import RANGE, draw

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId, check_submission
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import FeatureMap
from federation.mechanisms.labels.unbiased_response import table
from federation.numerics.bag_weights import disjoint_bags, gaussian_weights
from federation.queries.labels import (
    BagSums,
    BagSumsNoise,
    BagSumsQuestion,
    LabelledRows,
    LabelsNoise,
    LabelSumsNoise,
    LabelSumsQuestion,
    PrivateLabelsQuestion,
    WeightedSumsNoise,
    WeightedSumsQuestion,
)
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort
from parties.responses import labels as module
from parties.responses.labels import label_sums, sketch, sketches

LINEAR = Reference("support.linear_labels:Parties")
ROWS = LabelledRows(FeatureMap(3, ()), *RANGE, 90)
STRATIFIED = BagSums(80, 10, 8, "signs", 4, 0)


SECRET = BagSums(80, 10, 8, "gaussian", 0, 0)


def bags(design=STRATIFIED, noise="gaussian", draws=3, seeded=True, name="a world", **known):
    asked = BagSumsNoise(noise, **{"epsilon": 1.0, "delta": 1e-3, **known})
    return BagSumsQuestion(asked, ROWS, design, release=ReleaseId(name), draws=draws, seeded=seeded)


def secret_sums(design=SECRET, noise="gaussian", draws=3, seeded=True):
    asked = WeightedSumsNoise(noise, 1.0, 1e-3)
    return WeightedSumsQuestion(asked, ROWS, design, release=ReleaseId("a world"), draws=draws, seeded=seeded)


@pytest.mark.parametrize(
    "asked",
    [bags(), bags(noise="laplace"), bags(noise="off"), secret_sums()],
    ids=["gaussian", "laplace", "off", "secret"],
)
def test_draws_have_the_same_bits_however_many_are_made_at_a_time(asked, monkeypatch):
    found = answered(cohort(), asked).arrays
    monkeypatch.setattr(module, "_AT_A_TIME", 1)
    for name, one_by_one in answered(cohort(), asked).arrays.items():
        np.testing.assert_array_equal(found[name], one_by_one)


def cohort(count=2, **config):
    return Cohort(LINEAR.to_json(), 0, count, **{"seed": 5, **config})


@pytest.mark.parametrize("weights", ["signs", "gaussian"])
def test_sums_without_noise_are_those_of_the_published_rows_and_weights(weights):
    asked = bags(BagSums(80, 10, 8, weights, 4, 0), noise="off")
    found = answered(cohort(), asked)
    check_submission(asked, found)
    features, labels = draw(0, 80)
    sent = found.arrays["rows"][0].reshape(-1, 3)
    place = [int(np.flatnonzero((features == row).all(axis=1))[0]) for row in sent]
    assert sorted(place) == list(range(80))
    expected = np.einsum("tmk,mk->tm", found.arrays["weights"][0], labels[place].reshape(10, 8))
    np.testing.assert_allclose(found.arrays["sums"][0], expected, atol=1e-12)
    assert (np.abs(found.arrays["weights"]) == 1).all() == (weights == "signs")


@pytest.mark.parametrize(
    ("design", "known"),
    [
        (STRATIFIED, {}),
        (STRATIFIED, {"noise": "laplace"}),
        (BagSums(80, 10, 8, "gaussian", 8, 0), {}),
        (BagSums(80, 10, 8, "gaussian", 0, 60), {"sigma": 2.0, "delta": 0.999}),
    ],
)
def test_noise_has_the_scale_of_the_mechanism(design, known):
    asked = bags(design, draws=2000, **known)
    found = answered(cohort(count=1), asked)
    mechanism = asked.mechanism()
    assert found.guarantee.unit is Unit.LABEL
    assert found.guarantee.epsilon == 1.0
    labels = dict(zip(map(tuple, draw(0, 80)[0]), draw(0, 80)[1], strict=True))
    held = np.array([[labels[tuple(row)] for row in bag] for bag in found.arrays["rows"][0]])
    noise = found.arrays["sums"][0] - np.einsum("tmk,mk->tm", found.arrays["weights"][0], held)
    assert abs(noise.mean()) < 5 * noise.std() / noise.size**0.5
    if known.get("noise") == "laplace":
        assert noise.std() == pytest.approx(2**0.5 * mechanism.scale, rel=0.05)
    elif design.per_bag and design.weights == "signs":
        assert noise.std() == pytest.approx(mechanism.sigma * design.per_bag**0.5, rel=0.05)
    else:
        assert noise.std() == pytest.approx(mechanism.sigma * (design.per_bag or 6) ** 0.5, rel=0.15)


def test_weights_and_noise_come_from_different_streams_and_depend_on_party_and_release():
    asked = bags()
    both = answered(cohort(), asked)
    alone = [answered(Cohort(LINEAR.to_json(), first, 1, seed=5), asked) for first in (0, 1)]
    for name in ("rows", "weights", "sums"):
        np.testing.assert_array_equal(both.arrays[name], np.concatenate([one.arrays[name] for one in alone]))
    assert not np.array_equal(both.arrays["weights"][0], both.arrays["weights"][1])
    other = answered(cohort(), replace(asked, release=ReleaseId("another world")))
    for name in ("rows", "weights", "sums"):
        assert not np.array_equal(other.arrays[name], both.arrays[name])


def test_labels_outside_the_range_are_moved_to_it_and_tell_nothing():
    loud = Cohort(Reference("support.linear_labels:Parties", {"loud": [0]}).to_json(), 0, 1, seed=5)
    found = answered(loud, bags(noise="off"))
    assert found.failures == {}
    assert np.abs(found.arrays["sums"]).max() <= 8 * 10.0
    found = answered(cohort(count=1), bags(BagSums(0, 12, 80, "signs", 7, 0), noise="off"))  # all rows in one bag
    assert (found.failures, found.arrays["formed"].tolist()) == ({}, [1])


def test_secret_sums_have_the_moments_of_the_rows():
    asked = secret_sums(noise="off", draws=400)
    found = answered(cohort(count=1), asked)
    check_submission(asked, found)
    assert set(found.arrays) == {"formed", "row_sums", "label_sums"}
    features, labels = draw(0, 80)
    table = np.column_stack([features, labels])
    sums = np.concatenate([found.arrays["row_sums"], found.arrays["label_sums"][..., None]], axis=-1).reshape(-1, 4)
    np.testing.assert_allclose(sums.T @ sums / len(sums), 8 * table.T @ table / 80, rtol=0.15, atol=1.0)


def test_repaired_sums_carry_noise_on_labels_only():
    noisy, exact = (
        answered(cohort(count=1), secret_sums(noise=noise, draws=500)) for noise in ("gaussian", "published")
    )
    np.testing.assert_array_equal(noisy.arrays["row_sums"], exact.arrays["row_sums"])
    assert exact.guarantee is None
    added = noisy.arrays["label_sums"] - exact.arrays["label_sums"]
    tau = secret_sums().mechanism().tau
    assert added.std() == pytest.approx(tau, rel=0.05)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "off"])
def test_parties_form_as_many_bags_as_they_can_with_equal_noise(noise):
    asked = bags(BagSums(0, 12, 7, "signs", 7, 0), noise=noise)
    found = answered(cohort(), asked)
    check_submission(asked, found)
    assert found.arrays["formed"].tolist() == [11, 12]  # of 80 and 87 rows
    for party, formed in enumerate((11, 12)):
        assert (np.abs(found.arrays["weights"][party, :, :formed]) == 1).all()
        for name in ("weights", "sums"):
            assert not found.arrays[name][party, :, formed:].any()
    if noise != "off":
        scales = {asked.mechanism(formed).parameters.get("sigma") for formed in (None, 11, 12)}
        assert len(scales) == 1
        claims = [asked.mechanism(formed).delta_at(1.0) for formed in (None, 11, 12)]
        assert claims == pytest.approx([claims[0]] * 3)
    secret = secret_sums(BagSums(0, 12, 7, "gaussian", 0, 0))
    sums = answered(cohort(), secret).arrays["label_sums"]
    assert not sums[0, :, 11:].any()
    assert sums[1, :, 11].all()
    assert len({secret.mechanism(formed).tau for formed in (None, 1, 11)}) == 1


def test_a_party_with_too_few_or_many_rows_or_labels_of_another_kind_costs_no_other_party():
    most = LabelledRows(FeatureMap(3, ()), *RANGE, 80)
    for asked, party, why in (
        (bags(BagSums(85, 10, 8, "signs", 4, 0)), 0, "85 rows"),
        (single("unbiased", most), 1, "87 rows"),
        (summed("gaussian", most), 1, "87 rows"),
    ):
        found = answered(cohort(), asked)
        assert found.parties.tolist() == [1 - party]
        assert why in found.failures[party]
    broken = Cohort(Reference("support.linear_labels:Parties", {"broken": [1]}).to_json(), 0, 2, seed=5)
    assert answered(broken, bags()).parties.tolist() == [0]


class TestDeployed:
    """Without a seed the node is a deployed one."""

    def node(self):
        return cohort(count=1, seed=None, paid=True, public_features=True)

    def asked(self, **known):
        return bags(**{"draws": 1, "seeded": False, **known})

    def test_half_of_the_rows_that_take_part_must_be_in_bags(self):
        """Of fewer rows each is drawn so seldom that hardly any noise is asked for."""
        assert answered(self.node(), self.asked(design=BagSums(80, 5, 8, "signs", 4, 0))).failures == {}
        with pytest.raises(InputError, match=r"4.*8.*80"):
            answered(self.node(), self.asked(design=BagSums(80, 4, 8, "signs", 4, 0)))

    def test_a_bag_without_a_noisy_label_does_not_leave_it(self):
        """Though the promise counts that as a failure: it would be one label or its sum in clear, and known to be."""
        known = {"design": BagSums(80, 10, 8, "signs", 0, 1), "delta": 0.95}
        assert answered(self.node(), self.asked(**known)).failures == {0: "the party could not answer"}
        assert answered(cohort(count=1), bags(**known)).failures == {}

    def test_published_noise_has_no_guarantee_and_is_refused(self):
        with pytest.raises(InputError, match="guarantee"):
            answered(self.node(), secret_sums(noise="published", draws=1, seeded=False))


def single(noise, rows=ROWS, draws=3, seeded=True, name="a world"):
    asked = LabelsNoise(noise, 1.0, 1e-3, False, *(table(1.0) if noise == "unbiased" else ()))
    return PrivateLabelsQuestion(asked, rows, release=ReleaseId(name), draws=draws, seeded=seeded)


def summed(noise, rows=ROWS, shape="optimal", draws=3, seeded=True, name="a world"):
    asked = LabelSumsNoise(noise, 1.0, 1e-3)
    return LabelSumsQuestion(asked, rows, shape, release=ReleaseId(name), draws=draws, seeded=seeded)


@pytest.mark.parametrize("noise", ["one_bit", "unbiased", "laplace", "gaussian"])
def test_private_labels_are_unbiased_with_the_variance_of_their_mechanism(noise):
    asked = single(noise, draws=2000)
    found = answered(cohort(count=1), asked)
    check_submission(asked, found)
    assert (found.guarantee.unit, found.guarantee.epsilon) == (Unit.LABEL, 1.0)
    labels = draw(0, 80)[1]
    released = found.arrays["labels"][0, :, :80]
    variance = asked.mechanism().variance(labels)
    np.testing.assert_allclose(released.mean(axis=0), labels, atol=6 * (np.max(variance) / 2000) ** 0.5)
    np.testing.assert_allclose(released.var(axis=0).mean(), np.mean(variance), rtol=0.05)
    assert not found.arrays["labels"][:, :, 80:].any()


def test_without_noise_labels_and_sums_are_exact_and_rows_are_filled_up():
    found = answered(cohort(), single("off"))
    assert found.arrays["size"].tolist() == [80, 87]
    rows, labels = draw(1, 87)
    np.testing.assert_array_equal(found.arrays["rows"][1, :87], rows)
    np.testing.assert_array_equal(found.arrays["labels"][1, 0, :87], labels)
    assert not found.arrays["rows"][:, 87:].any()
    sums = answered(cohort(), summed("off"))
    np.testing.assert_allclose(sums.arrays["moment"][1, 0], rows.T @ labels, rtol=1e-12)
    assert sums.guarantee is None


@pytest.mark.parametrize("shape", ["optimal", "whitened", "isotropic"])
@pytest.mark.parametrize("noise", ["gaussian", "pure"])
def test_noisy_sums_have_the_covariance_of_their_shape(shape, noise):
    asked = summed(noise, shape=shape, draws=4000)
    found = answered(cohort(count=1), asked)
    check_submission(asked, found)
    rows, labels = draw(0, 80)
    np.testing.assert_allclose(found.arrays["gram"][0], rows.T @ rows, rtol=1e-12)
    covariance = asked.mechanism(rows).covariance()
    np.testing.assert_array_equal(found.arrays["covariance"][0], covariance)
    np.testing.assert_allclose(found.arrays["row_sum"][0], rows.sum(axis=0))
    added = found.arrays["moment"][0] - rows.T @ labels
    np.testing.assert_allclose(added.T @ added / 4000, covariance, atol=0.15 * np.trace(covariance))
    assert found.guarantee.delta == (1e-3 if noise == "gaussian" else 0.0)


def problem(rows, columns, count, size, seed=0):
    bits, rng = NoiseBits(seed, "bags"), np.random.default_rng(seed)
    bags = disjoint_bags(rows, count, size, bits)
    return rng.normal(size=(rows, columns)), rng.normal(size=rows), bags, gaussian_weights(count, size, bits)


def one_by_one(rows, labels, bags, weights):
    """The documented order, in a loop."""
    sums = np.zeros((len(bags), rows.shape[1] + 1))
    for total, bag, own in zip(sums, bags, weights, strict=True):
        for row, weight in sorted(zip(bag.tolist(), own.tolist(), strict=True)):
            total += weight * np.append(rows[row], labels[row])
    return sums


def joined(found):
    return np.column_stack([found.rows, found.labels])


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 4), st.integers(0, 40), st.integers(0, 2**32))
def test_sums_have_the_bits_of_a_loop(count, size, columns, spare, seed):
    data = problem(count * size + spare, columns, count, size, seed)
    np.testing.assert_array_equal(joined(sketch(*data)), one_by_one(*data))


def test_sums_agree_with_exact_arithmetic_and_single_precision_is_summed_in_double():
    rows = np.full((10_000, 1), np.float32(0.1))
    found = sketch(rows, np.zeros(10_000), np.arange(10_000)[None], np.ones((1, 10_000)))
    assert found.rows[0, 0] == pytest.approx(10_000 * float(np.float32(0.1)), rel=1e-12)
    rows, labels, bags, weights = problem(40, 2, 3, 10)
    found = sketch(rows, labels, bags, weights)
    for j, (bag, own) in enumerate(zip(bags, weights, strict=True)):
        exact = sum(Fraction(w) * Fraction(labels[i]) for i, w in zip(bag.tolist(), own.tolist(), strict=True))
        assert found.labels[j] == pytest.approx(float(exact), abs=1e-14)
        np.testing.assert_allclose(found.rows[j], own @ rows[bag], atol=1e-13)


@pytest.mark.parametrize(("count", "size"), [(900, 1), (300, 3), (3, 300), (1, 900), (1, 1), (20, 7)])
def test_bits_do_not_depend_on_tiles(count, size, monkeypatch):
    data = problem(1000, 5, count, size)
    monkeypatch.setattr(module, "_LEAST_TILE", 1)
    found = []
    for entries in (6, 60, 1 << 18):
        monkeypatch.setattr(module, "_TILE_ENTRIES", entries)
        found.append(joined(sketch(*data)))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


LAYOUTS = {
    "memory map": lambda rows, path: np.memmap(path, rows.dtype, "r", shape=rows.shape),
    "columns": lambda rows, path: np.asfortranarray(rows),
    "every other": lambda rows, path: np.repeat(rows, 2, axis=0)[::2],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bits_do_not_depend_on_the_layout_of_rows(tmp_path, layout, dtype, monkeypatch):
    rows, labels, bags, weights = problem(3000, 4, 40, 50)
    rows = (100 * rows).astype(dtype)
    rows.tofile(tmp_path / "rows")
    monkeypatch.setattr(module, "_TILE_ENTRIES", 5 * 512)
    found = sketch(LAYOUTS[layout](rows, tmp_path / "rows"), labels, bags, weights)
    np.testing.assert_array_equal(joined(found), joined(sketch(rows, labels, bags, weights)))
    np.testing.assert_array_equal(label_sums(labels, bags, weights), found.labels)  # of labels alone, too


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("weight", [0.0, 1.0])
@pytest.mark.parametrize("place", ["row", "label"])
def test_values_that_are_not_finite_are_refused_by_row_and_outside_bags_not_looked_at(value, weight, place):
    rows, labels, bags, weights = problem(50, 2, 4, 5)
    expected = joined(sketch(rows, labels, bags, weights))
    outside = np.setdiff1d(np.arange(50), bags)
    rows[outside], labels[outside] = value, value
    np.testing.assert_array_equal(joined(sketch(rows, labels, bags, weights)), expected)
    row = bags[2, 3]
    weights[2, 3] = weight
    if place == "row":
        rows[row, 1] = value
    else:
        labels[row] = value
    with pytest.raises(InputError, match=f"{row}"):
        sketch(rows, labels, bags, weights)


@pytest.mark.parametrize(("change", "complaint"), [
    (lambda r, y, b, w: (r[:, 0], y, b, w), None),
    (lambda r, y, b, w: (r.astype(str), y, b, w), None),
    (lambda r, y, b, w: (r, y[:-1], b, w), "50"),
    (lambda r, y, b, w: (r, y, b.ravel(), w), "shape"),
    (lambda r, y, b, w: (r, y, b.astype(float), w), "float64"),
    (lambda r, y, b, w: (r, y, b[:, :0], w[:, :0]), "shape"),
    (lambda r, y, b, w: (r, y, b[:0], w[:0]), "shape"),
    (lambda r, y, b, w: (r, y, b - b.max() + 50, w), r"0.*49"),
    (lambda r, y, b, w: (r, y, b - 50, w), r"0.*49"),
    (lambda r, y, b, w: (r, y, b, w[:, :-1]), None),
    (lambda r, y, b, w: (r, y, b, np.where(w > 0, np.nan, w)), "weights"),
    (lambda r, y, b, w: (r, y, np.vstack([b[:3], b[:1]]), w), None),
    (lambda r, y, b, w: (r, y, np.column_stack([b[:, :4], b[:, :1]]), w), None),
    (lambda r, y, b, w: (r * 1e307, y * 1e307, b, 100 * np.abs(w)), None),  # beyond double precision
])  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(change, complaint):
    with pytest.raises(InputError, match=complaint):
        sketch(*change(*problem(50, 2, 4, 5)))


@pytest.mark.parametrize("entries", [1, 200, 1 << 18])  # a draw at a time, two, and all together
def test_several_draws_have_the_bits_of_each_alone(entries, monkeypatch):
    rows, labels, _, _ = problem(25, 3, 2, 5)
    drawn = [problem(25, 3, 2, 5, seed)[2:] for seed in range(5)]
    bags, weights = (np.stack(one) for one in zip(*drawn, strict=True))
    monkeypatch.setattr(module, "_TILE_ENTRIES", entries)
    found = sketches(rows, labels, bags, weights)
    alone = [sketch(rows, labels, *one) for one in drawn]
    np.testing.assert_array_equal(found.rows, [one.rows for one in alone])
    np.testing.assert_array_equal(found.labels, [one.labels for one in alone])
