import io
import json
import math
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from hypothesis import given, settings
from hypothesis import strategies as st
from support.questions import QUESTIONS, ROWS, TRAINING
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Unit
from federation.contract.query import Question, ReleaseId, Submission
from federation.engines import codec
from federation.features.feature_map import FeatureMap
from federation.queries.bags import Bags, CountsNoise, CountsQuestion
from federation.queries.votes import IndividualQuestion, VotesQuestion

QUESTION = replace(QUESTIONS["votes"], training=replace(TRAINING, trial=7))


def submission(parties=4):
    votes = np.random.default_rng(0).integers(0, 3, (parties, len(QUESTION.rows))).astype(np.uint8)
    return Submission("votes", np.arange(parties), {"votes": votes}, None, {9: "holds no rows"})


def test_a_question_survives_the_wire():
    restored = codec.decode_question(codec.encode_question(QUESTION), VotesQuestion)
    np.testing.assert_array_equal(restored.rows, QUESTION.rows)
    np.testing.assert_array_equal(restored.training.feature_map.transform(ROWS), QUESTION.rows)
    assert (restored.training.classes, restored.training.trial) == (3, 7)
    assert restored.training.classifier == QUESTION.training.classifier
    individual = IndividualQuestion(QUESTION.training, 11)
    assert codec.decode_question(codec.encode_question(individual), IndividualQuestion).first == 11


@pytest.mark.parametrize("guarantee", [None, Guarantee(1.0, 0.0, Unit.PARTY, Adjacency.REPLACE, "l2_gamma",
                                                       {"scale": 2.0}, (Assumption("a", Check.CHECKED),))])  # fmt: skip
def test_a_submission_survives_the_wire(guarantee):
    sent = replace(submission(parties=5), guarantee=guarantee)
    records = codec.encode_submission(sent, QUESTION.fields())
    received = codec.decode_submission(records, QUESTION.fields())
    np.testing.assert_array_equal(received.arrays["votes"], sent.arrays["votes"])
    np.testing.assert_array_equal(received.parties, sent.parties)
    assert (received.failures, received.guarantee) == ({9: "holds no rows"}, guarantee)
    occupied = sum(array.numpy().nbytes for array in records["arrays"].values())
    assert codec.bytes_per_party(QUESTION.fields()) == occupied / 5


def test_a_submission_carries_its_declared_fields_and_nothing_else():
    hiding = submission()
    hiding.arrays["rows"] = QUESTION.rows  # a party's rows must not slip through
    records = codec.encode_submission(hiding, QUESTION.fields())
    assert set(records["arrays"]) == {"votes", "parties"}
    assert set(json.loads(records["settings"]["json"])) == {"kind", "failures", "guarantee"}


@pytest.mark.parametrize(
    ("name", "array", "told"),
    [
        ("rows", np.zeros((4, 3)), "rows"),
        ("votes", lambda packed: packed[:, :-1].copy(), "packed"),
        ("votes", np.array(3, dtype=np.uint8), None),  # without a party axis
    ],
)
def test_undeclared_and_short_fields_are_refused_on_arrival(name, array, told):
    records = codec.encode_submission(submission(), QUESTION.fields())
    array = array(records["arrays"]["votes"].numpy()) if callable(array) else array
    records["arrays"] = ArrayRecord({**records["arrays"], name: Array(array)})
    with pytest.raises(InputError, match=told):
        codec.decode_submission(records, QUESTION.fields())


@pytest.mark.parametrize("failures", [{"": "cause"}, {"1" * 5000: "cause"}, ["cause"], "cause"])
def test_failures_of_an_answer_are_causes_by_party(failures):
    records = codec.encode_submission(submission(), QUESTION.fields())
    settings = json.loads(records["settings"]["json"])
    records["settings"] = ConfigRecord({"json": json.dumps({**settings, "failures": failures})})
    with pytest.raises(InputError):
        codec.decode_submission(records, QUESTION.fields())


@pytest.mark.parametrize("text", ["not json", "[]", "{}", "[" * 100_000])
def test_garbage_is_an_input_error(text):
    for records in (codec.encode_question(QUESTION), codec.encode_submission(submission(), QUESTION.fields())):
        records["settings"] = ConfigRecord({"json": text})
        refused(None, codec.decode_submission, records, QUESTION.fields())
        refused(None, codec.decode_question, records, VotesQuestion)


@dataclass(frozen=True)
class Inner:
    """A part of a question with parts of its own."""

    whole: int
    number: float | None


@dataclass(frozen=True)
class Every(Question):
    """A question with a part of each type that one may have."""

    kind: ClassVar[str] = "every"
    whole: int
    number: float
    flag: bool
    text: str
    choice: Literal["a", "b", 3]
    perhaps: int | None
    pair: tuple[float, int]
    many: tuple[float, ...]
    known: Mapping[str, Any]
    rows: np.ndarray
    inner: Inner

    def fields(self):
        return {}


EVERY = Every(3, 0.5, True, "x", "a", None, (1.0, 2), (1.0, 2.0, 3.0), {"a": [1]}, np.ones((2, 2)), Inner(5, 0.25))


def plain(question):
    """All parts but the array."""
    return {name: value for name, value in vars(question).items() if name != "rows"}


def changed(question, changes=None, dropped=(), arrays=None):
    """A question's records with other settings, as whoever asks may send them; JSON as Python writes it."""
    records = codec.encode_question(question)
    settings = json.loads(records["settings"]["json"]) | (changes or {})
    kept = {name: value for name, value in settings.items() if name not in dropped}
    given = {name: array for name, array in records["arrays"].items() if name not in dropped}
    given |= {name: Array(array) for name, array in (arrays or {}).items()}
    return RecordDict({"settings": ConfigRecord({"json": json.dumps(kept)}), "arrays": ArrayRecord(given)})


def test_parts_of_every_type_survive_the_wire():
    restored = codec.decode_question(codec.encode_question(EVERY), Every)
    assert plain(restored) == plain(EVERY)
    assert [type(value) for value in plain(restored).values()] == [type(value) for value in plain(EVERY).values()]
    np.testing.assert_array_equal(restored.rows, EVERY.rows)
    # Whole numbers are numbers: JSON of other libraries writes 2 for 2.0.
    whole = codec.decode_question(changed(EVERY, {"number": 2, "inner.number": 1}), Every)
    assert (type(whole.number), type(whole.inner.number)) == (float, float)


def test_every_part_of_a_question_is_in_its_digest():
    changes = {
        "whole": 4, "number": 0.25, "flag": False, "text": "y", "choice": "b", "perhaps": 1, "pair": (1.0, 3),
        "many": (1.0,), "known": {"a": [2]}, "rows": np.eye(2), "inner": Inner(5, None),
    }  # fmt: skip
    assert changes.keys() == vars(EVERY).keys()
    others = [replace(EVERY, **{name: value}) for name, value in changes.items()]
    training = replace(QUESTION.training, feature_map=FeatureMap(3, ()))
    others += [QUESTION, replace(QUESTION, training=training), *QUESTIONS.values()]
    assert len({codec.question_digest(other) for other in [EVERY, *others]}) == len(others) + 1


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        *(("whole", 3.5), ("number", 10**400), ("flag", 1), ("text", None), ("choice", True), ("perhaps", 1.0)),
        *(("pair", [1.0, 2.0]), ("many", [1.0, "2"]), ("known", []), ("inner.whole", 5.0), ("inner.number", math.inf)),
    ],
)
def test_a_part_of_another_type_is_refused(name, sent):
    """A number of another type would be found out, or not, far behind: bags of 1.5 persons, or a delta of infinity."""
    with pytest.raises(InputError, match=rf"TypeError.*{name}"):
        codec.decode_question(changed(EVERY, {name: sent}), Every)


PARTS = [*(name for name in plain(EVERY) if name != "inner"), "rows", "inner.whole", "inner.number"]


@pytest.mark.parametrize("name", PARTS)
def test_a_missing_part_is_refused(name):
    with pytest.raises(InputError, match=rf"KeyError.*{name}"):
        codec.decode_question(changed(EVERY, dropped=[name]), Every)


@pytest.mark.parametrize("name", ["more", "inner", "inner.more", "kind", "rows", "whole.", ""])
def test_an_undeclared_part_is_refused(name):
    """Whoever asks would else be answered another question than the one that it believes to ask."""
    with pytest.raises(InputError, match=f" {name}'"):
        codec.decode_question(changed(EVERY, {name: 1}), Every)


@pytest.mark.parametrize(
    ("name", "array", "told"),
    [
        *((name, np.ones(2), name) for name in ("more", "inner.rows", "rows.more", "whole")),
        ("rows", np.array(["a"]), r"read.*rows"),
        ("rows", np.array([1 + 1j]), r"read.*rows"),
        ("rows", np.array(["2020-01-01"], dtype="datetime64[D]"), r"read.*rows"),
    ],
)
def test_undeclared_arrays_and_those_of_no_real_numbers_are_refused(name, array, told):
    refused(told, codec.decode_question, changed(EVERY, arrays={name: array}), Every)
    with pytest.raises(InputError, match=r"training\.feature_map\.more"):
        codec.decode_question(changed(QUESTION, arrays={"training.feature_map.more": np.ones(2)}), VotesQuestion)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"noise.epsilon": 0}, "epsilon"),
        ({"noise.epsilon": float("inf")}, r"noise\.epsilon"),
        ({"noise.kind": "exponential"}, r"noise\.kind"),
        ({"noise.floor": 2.5}, r"noise\.floor"),
        ({"draws": 2.0}, r"draws.*2\.0"),
        ({"draws": 0}, r"draws.*1"),
        ({"seeded": 0}, r"seeded.*0"),
        ({"bags.rows_per_person": 1.5}, r"bags\.rows_per_person.*1\.5"),
        ({"bags.count": 2**21}, r"1.*1048576"),
        ({"release.name": ""}, None),
        ({"release.query": 1}, None),
    ],
)
def test_a_question_that_refuses_its_own_numbers_says_so(changes, words):
    asked = CountsQuestion(CountsNoise("pure", 1.0), Bags(2, 3), release=ReleaseId("a"))
    assert codec.decode_question(codec.encode_question(asked), CountsQuestion) == asked
    with pytest.raises(InputError, match=words):
        codec.decode_question(changed(asked, changes), CountsQuestion)


def test_records_that_come_twice_are_read_once_and_others_anew():
    """Nodes of one process get the same records; what one of them was asked must not answer for another question."""
    first, second = codec.encode_question(EVERY), codec.encode_question(replace(EVERY, whole=4))
    read = codec.decode_question(first, Every)
    assert codec.decode_question(second, Every).whole == 4
    assert codec.decode_question(first, Every) is read
    others = [codec.encode_question(replace(EVERY, whole=whole)) for whole in range(5, 25)]
    assert [codec.decode_question(other, Every).whole for other in others] == list(range(5, 25))
    assert codec.decode_question(first, Every) is read  # however many questions a world has
    kept = len(codec._read_before)
    others.clear()
    assert len(codec._read_before) == kept - 20  # a long run's questions are let go of


def npy_promising(shape, descr="<f8", held=24):
    """The bytes of an array whose header promises more, or other things, than it holds."""
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(held)


def zipped():
    buffer = io.BytesIO()
    np.savez(buffer, a=np.zeros(3))
    return buffer.getvalue()


UNREADABLE = {
    "nothing": b"",
    "cut off": npy_promising((3,))[:70],
    "terabytes": npy_promising((2**40,)),
    "more than came": npy_promising((4,)),
    "less than came": npy_promising((2,)),
    "no shape": npy_promising("(3"),
    "objects": npy_promising((3,), "|O"),
    "an archive": zipped(),
    "another version": b"\x93NUMPY\x03\x00" + npy_promising((3,))[8:],
    "no array": b"\x80\x04]\x94.",
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_an_array_is_refused_before_anything_of_its_size_is_made(data):
    """A header of a few bytes may promise any size, and a file of arrays is none."""
    array = Array(dtype="float64", shape=(3,), stype="numpy.ndarray", data=data)
    asked, answered = codec.encode_question(QUESTION), codec.encode_submission(submission(), QUESTION.fields())
    for records, name in ((asked, "rows"), (answered, "votes")):
        records["arrays"] = ArrayRecord({**records["arrays"], name: array})
    tracemalloc.start()
    refused(None, codec.decode_question, asked, VotesQuestion)
    refused(None, codec.decode_submission, answered, QUESTION.fields())
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


@settings(derandomize=True)
@given(levels=st.integers(2, 700), parties=st.integers(0, 4), length=st.integers(1, 40), seed=st.integers(0, 99))
def test_unpacking_undoes_packing(levels, parties, length, seed):
    values = np.random.default_rng(seed).integers(0, levels, (parties, length)).astype(np.min_scalar_type(levels - 1))
    packed = codec.pack(values, levels)
    assert packed.shape == (parties, codec.packed_length(levels, length))
    np.testing.assert_array_equal(codec.unpack(packed, levels, length), values)


@pytest.mark.parametrize(("levels", "bits"), [(2, 1), (3, 2), (4, 2), (5, 4), (16, 4), (17, 8), (256, 8), (257, 16)])
def test_bits_are_the_fewest_that_divide_a_byte(levels, bits):
    assert codec.bits_per_entry(levels) == bits
    assert codec.pack(np.zeros((3, 1352), dtype=np.uint8), 6).nbytes == 3 * 676  # half a byte for each vote
