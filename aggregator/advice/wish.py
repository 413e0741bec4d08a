"""What somebody wants of a protocol, in public numbers and in whom they trust."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from aggregator.contract.protocol import Trust
from aggregator.learners.inputs.validation import require_one_of
from aggregator.world.public_numbers import QUORUM, PublicNumbers
from federation.contract.errors import InputError
from federation.contract.guarantee import require_delta, require_epsilon
from federation.contract.trust import COLLUDING

Task = Literal["binary", "multiclass", "regression", "ratio"]
Protect = Literal["party", "person", "row", "label"]

TASKS: Mapping[Task, str] = {  # as protocols name what they are for
    "binary": "classification",
    "multiclass": "classification",
    "regression": "regression",
    "ratio": "class_ratio",
}


@dataclass(frozen=True)
class Wish:
    """What is to be learned, what nobody may tell from it, who is trusted, and the public numbers of the data.

    task: two classes, several, real numbers in `label_range`, or the class ratios of unlabelled sets.
    protect: what a guarantee is to hide: all that a `party` holds, all rows of a `person`, one `row`, or one `label`.
    trust: the least trust that may be asked of parties.
    public_features: whether rows without their labels may be seen by everybody.
    rows: private rows of all parties together; None where nobody says.
    features: of a row, without a constant.
    public_rows: unlabelled rows that are public; 0 where there are none, None where that is not known.
    bags, bag_rows: of a party, for `ratio`.
    rows_per_person: the most that one person has; 1 makes a person a row.
    person_is_party: whether every person is a party, so that to hide a party is to hide a person.
    majority, attainable, residual, traces, spectrum: as of `PublicNumbers`.

    Raises `InputError` for numbers out of range and such as contradict each other.

    Examples:
        >>> Wish("binary", "label", Trust.NONE, rows=1000, features=8, parties=10, epsilon=1.0).classes
        2
    """

    task: Task
    protect: Protect
    trust: Trust
    public_features: bool = True
    rows: int | None = None
    features: int | None = None
    parties: int | None = None
    epsilon: float = 1.0
    delta: float = 1e-6
    classes: int | None = None
    label_range: tuple[float, float] | None = None
    public_rows: int | None = None
    bags: int | None = None
    bag_rows: int | None = None
    rows_per_person: int = 1
    person_is_party: bool = False
    quorum: float = QUORUM
    colluding: float = COLLUDING
    majority: float | None = None
    attainable: float | None = None
    residual: float | None = None
    traces: Mapping[str, float] = field(default_factory=dict)
    spectrum: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        require_one_of("task", self.task, get_args(Task))
        require_one_of("protect", self.protect, get_args(Protect))
        require_epsilon(self.epsilon)
        require_delta(self.delta)
        for name in ("rows", "features", "parties", "bags", "bag_rows", "rows_per_person"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(f"{name} must be a whole number from 1, got {value!r}")
        if self.rows is not None and self.parties is not None and self.parties > self.rows:
            raise InputError(
                f"parties must be at most rows, one row each, got {self.parties} parties and {self.rows} rows"
            )
        if self.task == "binary":
            if self.classes not in (None, 2):
                raise InputError(f"task binary has two classes, got {self.classes}; use multiclass")
            object.__setattr__(self, "classes", 2)
        if self.classes is not None and self.classes < 2:
            raise InputError(f"classes must be a whole number from 2, got {self.classes}")
        for name in ("majority", "attainable"):
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                raise InputError(f"{name} must be a share above 0 and at most 1, got {share}")
        if self.label_range is not None and not -math.inf < self.label_range[0] < self.label_range[1] < math.inf:
            raise InputError(f"label_range must be two numbers, the lower first, got {self.label_range}")
        if self.residual is not None and not 0 <= self.residual < math.inf:
            raise InputError(f"residual must be a variance of at least 0, got {self.residual}")

    @property
    def needed(self) -> Protect:
        """What a guarantee has to hide: with private features a label is protected by hiding its row."""
        return "row" if self.protect == "label" and not self.public_features else self.protect

    def numbers(self, constant: bool) -> PublicNumbers:
        """The public numbers for a protocol; `constant` says whether its feature map appends a constant."""
        width = None if self.features is None else self.features + constant
        return PublicNumbers(
            self.delta,
            parties=self.parties,
            classes=self.classes,
            features=width,
            public_rows=self.public_rows,
            bags=self.bags,
            largest_bag=self.bag_rows or self._rows_of_a_party,
            common_bags=False,  # as nobody is asked about them
            rows_per_person=self.rows_per_person if self.protect == "person" and not self.person_is_party else 0,
            label_range=self.label_range,
            rows=self.rows,
            quorum=self.quorum,
            colluding=self.colluding,
            attainable=self.attainable,
            majority=self.majority,
            residual=self.residual,
            traces=self.traces,
            spectrum=self.spectrum,
        )

    @property
    def _rows_of_a_party(self) -> int | None:
        if self.rows is None or self.parties is None:
            return None
        return -(-self.rows // self.parties)
