"""Questions about bags: they survive the wire whole, and say what an answer may look like."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.world.fitting import fit
from federation.contract.declared import Declared
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.contract.question import ReleaseId
from federation.contract.submission import Submission, check_submission
from federation.features.feature_map import with_fourier
from federation.grids.codec import (
    bytes_per_party,
    decode_question,
    decode_submission,
    encode_question,
    encode_submission,
    question_digest,
)
from federation.questions.bags import (
    LARGEST_COUNT,
    LARGEST_FEATURE,
    Bags,
    CountsNoise,
    CountsQuestion,
    EmbeddingsQuestion,
    JointNoise,
    NoisyEmbeddingsQuestion,
    RowsQuestion,
)
from parties.guard.registry import question_type

ROWS = np.random.default_rng(3).normal(size=(40, 3))
UNIT = fit(["standardise", "unit_norm"], ROWS)
WAVES = with_fourier(UNIT, 0.7, 6, seed=2)
BAGS = Bags(2, 3, 4)
NOISE = CountsNoise("dirichlet_floor", 0.1, 1e-6, floor=7)
JOINT = JointNoise("gaussian", 0.1, 1e-6)
RELEASE = ReleaseId("a|b")
ASKED = {
    "counts": CountsQuestion(NOISE, BAGS, release=RELEASE, draws=5),
    "embeddings": EmbeddingsQuestion(BAGS, WAVES),
    "noisy_embeddings": NoisyEmbeddingsQuestion(JOINT, BAGS, WAVES, 1 / 3, release=RELEASE, draws=5),
    "rows": RowsQuestion(BAGS, UNIT, 9),
}
SHAPES = {
    "counts": {"sizes": (2,), "counts": (5, 2, 3)},
    "embeddings": {"sizes": (2,), "means": (2, 6)},
    "noisy_embeddings": {"sizes": (2,), "counts": (5, 2, 3), "means": (5, 2, 6)},
    "rows": {"sizes": (2,), "rows": (2, 9, 3)},
}


def plain(question):
    """All parts of a question but its map, whose rows are compared."""
    return {part.name: getattr(question, part.name) for part in fields(question) if part.name != "feature_map"}


@pytest.mark.parametrize("kind", ASKED)
def test_a_question_survives_the_wire(kind):
    question = ASKED[kind]
    restored = decode_question(encode_question(question), type(question))
    assert restored.kind == kind
    assert plain(restored) == plain(question)
    assert restored.fields() == question.fields()
    assert question_digest(restored) == question_digest(question)
    if kind != "counts":
        np.testing.assert_array_equal(restored.feature_map.transform(ROWS), question.feature_map.transform(ROWS))


@given(
    st.floats(1e-300, 1e100),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 1000),
    st.text(min_size=1, max_size=20),
    st.booleans(),
    st.integers(0, 50),
)
def test_every_number_arrives_as_it_was(epsilon, delta, draws, name, seeded, most):
    noise, release = CountsNoise("pure", epsilon, delta), ReleaseId(name)
    question = CountsQuestion(noise, Bags(1, 2, most), release=release, draws=draws, seeded=seeded)
    assert decode_question(encode_question(question), CountsQuestion) == question


def test_every_part_of_a_question_is_in_its_digest():
    bags, counts, joint = replace(BAGS, rows_per_person=5), ASKED["counts"], ASKED["noisy_embeddings"]
    others = [
        *ASKED.values(),
        replace(counts, bags=bags),
        replace(counts, release=ReleaseId("c")),
        replace(counts, seeded=True),
        replace(counts, draws=6),
        *(
            replace(counts, noise=replace(NOISE, **changed))
            for changed in ({"floor": 8}, {"pseudo_count": 7}, {"epsilon": 0.2}, {"delta": 1e-7}, {"kind": "gaussian"})
        ),
        replace(joint, label_weight=0.5),
        replace(joint, noise=replace(JOINT, epsilon=0.2)),
        replace(ASKED["embeddings"], feature_map=with_fourier(UNIT, 0.7, 6, seed=3)),
        replace(ASKED["embeddings"], bags=bags),
        replace(ASKED["rows"], largest=10),
    ]
    assert len({question_digest(question) for question in others}) == len(others)


@pytest.mark.parametrize("kind", ASKED)
def test_parties_answer_it_by_its_name(kind):
    assert question_type(kind) is type(ASKED[kind])


def answer(kind, parties=3):
    question = ASKED[kind]
    arrays = {name: np.zeros((parties, *declared.shape)) for name, declared in question.fields().items()}
    promise = Guarantee(0.1, 1e-6, Unit.PERSON, Adjacency.REPLACE, "dirichlet_floor")
    return Submission(kind, np.arange(parties), arrays, promise, {7: "dropped out"})


@pytest.mark.parametrize("kind", ASKED)
def test_an_answer_has_the_declared_form_and_survives_the_wire(kind):
    question, sent = ASKED[kind], answer(kind)
    assert {name: declared.shape for name, declared in question.fields().items()} == SHAPES[kind]
    check_submission(question, sent)
    entries = sum(int(np.prod(shape)) for shape in SHAPES[kind].values())
    assert bytes_per_party(question.fields()) == 8 * (1 + entries)
    found = decode_submission(encode_submission(sent, question.fields()), question.fields())
    assert (found.kind, found.guarantee, found.failures) == (kind, sent.guarantee, sent.failures)
    for name, array in sent.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        cut = {**sent.arrays, name: array[:, :-1]}
        with pytest.raises(InputError, match="shape"):
            check_submission(question, replace(sent, arrays=cut))


@pytest.mark.parametrize(
    ("kind", "name", "value", "valid"),
    [
        ("counts", "sizes", 0.0, True),
        ("counts", "sizes", -1.0, False),
        ("counts", "sizes", LARGEST_COUNT, True),
        ("counts", "counts", -LARGEST_COUNT, True),
        ("counts", "counts", 1.01 * LARGEST_COUNT, False),
        ("counts", "counts", np.nan, False),
        ("embeddings", "means", -1.0, True),
        ("embeddings", "means", 1.01, False),
        ("noisy_embeddings", "means", 1.01, True),  # noise
        ("noisy_embeddings", "means", np.inf, False),
        ("noisy_embeddings", "counts", np.nan, False),
        ("rows", "rows", -LARGEST_FEATURE, True),
        ("rows", "rows", 1.01 * LARGEST_FEATURE, False),
        ("rows", "rows", np.nan, False),
    ],
)
def test_values_out_of_range_are_those_of_one_party(kind, name, value, valid):
    array = answer(kind).arrays[name]
    array.reshape(3, -1)[1, -1] = value
    assert ASKED[kind].fields()[name].invalid(array).tolist() == [False, not valid, False]


@pytest.mark.parametrize(
    "wrong",
    [{"rows_per_person": 1.5}, {"rows_per_person": -1}, {"rows_per_person": True}, {"count": 0}, {"classes": 2.0}],
)
def test_bags_are_counted_in_whole_numbers(wrong):
    """Of 1.5 bags a person would be in two, for the noise of 1.5: more would be spent than is claimed."""
    with pytest.raises(InputError, match=f"{next(iter(wrong))} of bags must be a whole number"):
        Bags(**{"count": 1, "classes": 2, **wrong})


@pytest.mark.parametrize(("count", "classes"), [(2**20 + 1, 1), (1, 2**16 + 1), (2**12, 2**9)])
def test_bags_beyond_what_any_party_holds_are_refused(count, classes):
    """Cells of classes in bags are counted, and whoever asks could else ask for more than there is memory."""
    with pytest.raises(InputError, match=r"must be (a whole number from 1 to|at most 1048576, got 4096 bags of 512)"):
        Bags(count, classes)
    assert Bags(2**12, 2**8).fields()["sizes"].numbers == 2**12


@pytest.mark.parametrize("largest", [-1, 2.0, True, 10**9 + 1])
def test_the_rows_of_a_bag_are_a_whole_number(largest):
    with pytest.raises(InputError, match="largest, the rows of a bag, must be a whole number from 0 to 1000000000"):
        RowsQuestion(BAGS, UNIT, largest)


def test_questions_about_bags_take_their_numbers_for_granted():
    for kind in ("counts", "noisy_embeddings"):
        assert ASKED[kind].assumes() == Declared(classes=3, bags=2, rows_per_person=4)


def test_a_floor_is_for_simulations():
    assert "a floor protects only where it is true" in ASKED["counts"].simulated_only()
    assert replace(ASKED["counts"], noise=CountsNoise("pure", 1.0)).simulated_only() is None
    assert ASKED["noisy_embeddings"].simulated_only() is None
