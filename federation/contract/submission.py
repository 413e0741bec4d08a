"""What parties answer with: arrays with a leading party axis, so that a million parties are not a million objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee
from federation.contract.question import Question


@dataclass(frozen=True)
class Submission:
    """The answers of some parties to one question.

    `parties` (P,) are the ids that answered, `arrays` the declared fields with a leading axis of length P, and
    `failures` names the parties that could not answer and why. `guarantee` is None for a trusted-only submission:
    it may be used by the trusted aggregator and written nowhere.
    """

    kind: str
    parties: np.ndarray
    arrays: Mapping[str, np.ndarray]
    guarantee: Guarantee | None = None
    failures: Mapping[int, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        shapes = {name: array.shape for name, array in self.arrays.items()}
        return f"Submission({self.kind}, {len(self.parties)} parties, {shapes}, {len(self.failures)} failures)"


def check_submission(question: Question, submission: Submission) -> None:
    """Refuse a submission whose form is not the declared one; values are checked per party by `Field.invalid`.

    Raises `InputError` when the kind differs, a field is missing or undeclared, a type or shape differs, an id is
    negative or occurs twice.
    """
    fields = question.fields()
    if submission.kind != question.kind:
        raise InputError(f"expected an answer to '{question.kind}', got one to '{submission.kind}'")
    if set(submission.arrays) != set(fields):
        raise InputError(f"an answer to '{question.kind}' carries {sorted(fields)}, got {sorted(submission.arrays)}")
    parties = submission.parties
    if parties.ndim != 1 or parties.dtype.kind not in "iu" or (parties < 0).any():
        raise InputError(f"party ids must be a list of integers >= 0, got {parties.dtype} of shape {parties.shape}")
    if len(np.unique(parties)) != len(parties):
        raise InputError("a submission names a party twice")
    for name, declared in fields.items():
        array, shape = submission.arrays[name], (len(parties), *declared.shape)
        if array.dtype != declared.dtype or array.shape != shape:
            raise InputError(
                f"field '{name}' must be {declared.dtype} of shape {shape}, got {array.dtype} of shape {array.shape}"
            )
