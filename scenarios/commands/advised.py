"""What `federation advise` is asked: its flags, what they leave open, and the subject that follows from both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from federation.contract.errors import InputError
from scenarios.commands import questions
from scenarios.commands.options import parsed_range

if TYPE_CHECKING:
    from aggregator.advice import Wish
    from scenarios.advice.subject import Subject

Task = Literal["binary", "multiclass", "regression", "ratio", "classification"]
_LABEL = "y"  # of a scenario for data that is not at hand


@dataclass(frozen=True)
class Asked:
    """The flags of `federation advise` as they were given; None, or an empty tuple, for what was not."""

    about: str | None
    rows: int | None
    columns: int | None
    parties: int | None
    epsilon: float
    delta: float
    task: Task | None
    protect: questions.Protect | None
    trust: questions.Trusted | None
    features: questions.Features | None
    classes: int | None
    bags: int | None
    bag_rows: int | None
    label_range: tuple[float, float] | None
    public_rows: Path | None
    public_count: int | None
    per_person: int
    majority: float | None
    attainable: float | None
    residual: float | None
    source: str
    label: str | None
    group: str | None
    person: str | None
    positive: tuple[str, ...]
    write: Path | None
    data_dir: Path | None

    def settled(self, asking: bool) -> tuple[Subject, list[str]]:
        """The subject, once what is missing has been asked for, and the flags that were taken to be said elsewhere.

        Raises `InputError` for flags that do not go together and data that cannot be used.
        """
        protect = self.protect or questions.choice(questions.PROTECT, ("label", "row", "person", "party"), asking)
        trust = self.trust or questions.choice(questions.TRUST, ("none", "secure", "aggregator"), asking)
        usual = ("public", "private") if protect == "label" else ("private", "public")
        features = self.features or questions.choice(questions.FEATURES, usual, asking)
        whole = replace(self, protect=protect, trust=trust, features=features)
        left_open: dict[str, tuple[Any, Any]] = {
            "protect": (self.protect, protect),
            "trust": (self.trust, trust),
            "features": (self.features, features),
        }
        if self.about is None:
            whole = whole._with_numbers(asking)
            left_open |= {"task": (self.task, whole.task), "parties": (self.parties, whole.parties)}
        assumed = [] if asking else [f"--{flag} {now}" for flag, (said, now) in left_open.items() if said is None]
        return whole._subject(asking), assumed

    def _with_numbers(self, asking: bool) -> Asked:
        """With the task, and the numbers that it needs: asked for, or as far as there are defaults."""
        tasks: tuple[Task, ...] = ("regression", "binary", "multiclass", "ratio")
        task: Task = self.task or ("ratio" if self.bags else questions.choice(questions.TASK, tasks, asking))
        known = replace(self, task=task, parties=1 if self._together else self.parties)
        if not asking:
            return replace(known, parties=known.parties or 1)
        wanted = ["bags", "bag_rows", "classes"] if task == "ratio" else ["rows", "columns"]
        wanted += ["classes"] if task == "multiclass" else []
        numbers: dict[str, Any] = {name: getattr(known, name) or questions.number(name) for name in wanted}
        return replace(known, parties=known.parties or questions.number("parties", default=1), **numbers)

    def _subject(self, asking: bool) -> Subject:
        from scenarios.advice.subject import of_scenario

        if self.about is None:
            return self._of_numbers()
        if self._is_file:
            return self._of_file(Path(self.about), asking)
        return of_scenario(self.about, self._wish(), self.data_dir)

    @property
    def _is_file(self) -> bool:
        from scenarios.data.files import SUFFIXES

        return self.about is not None and Path(self.about).suffix.lower() in SUFFIXES

    @property
    def _together(self) -> bool:
        """Whether somebody may hold all rows, who is one party then."""
        return self.trust == "aggregator" and self.protect in ("row", "label")

    def _wish(self, **counted: Any) -> Wish:
        """The wish by flags alone."""
        from aggregator.advice import Wish
        from aggregator.contract.protocol import Trust

        assert self.protect is not None, "it is settled"
        assert self.trust is not None, "it is settled"
        task = "binary" if self.task == "classification" else self.task or ("ratio" if self.bags else "regression")
        return Wish(
            task,
            self.protect,
            Trust(self.trust),
            self.features == "public",
            epsilon=self.epsilon,
            delta=self.delta,
            rows_per_person=self.per_person,
            majority=self.majority,
            attainable=self.attainable,
            residual=self.residual,
            **counted,
        )

    def _of_numbers(self) -> Subject:
        from scenarios.advice.subject import of_numbers
        from scenarios.data.catalogue import entry
        from scenarios.data.profile import profile

        wish = self._wish()
        known = entry(self.source)
        documented = None if known is None else known.label_range
        public = self.public_count
        if public is None and self.public_rows is not None:
            public = profile(self.public_rows).rows
        wish = replace(
            wish,
            rows=self.rows,
            features=self.columns,
            parties=1 if self._together else self.parties or 1,
            classes=2 if wish.task == "binary" else self.classes,
            label_range=(self.label_range or documented or (0.0, 1.0)) if wish.task == "regression" else None,
            public_rows=public,
            bags=self.bags,
            bag_rows=self.bag_rows,
        )
        needed: dict[str, Any] = {"--n": self.rows, "--d": self.columns}
        if wish.task == "ratio":
            needed = {"--bags": self.bags, "--bag-rows": self.bag_rows, "--classes": self.classes}
        elif wish.task == "multiclass":
            needed["--classes"] = self.classes
        return of_numbers(wish, self.source, self.label or _LABEL, needed)

    def _of_file(self, file: Path, asking: bool) -> Subject:
        from scenarios.advice.subject import of_file
        from scenarios.data.profile import profile
        from scenarios.settings.draft import Wish

        for flag, value in (("--n", self.rows), ("--d", self.columns), ("--classes", self.classes)):
            if value is not None:
                raise InputError(f"{flag} is for advice without data, and {file} has rows to count; leave it out")
        found = profile(file, self.label)
        label = self.label or questions.column_of_labels(found, asking)
        bounds, person = self.label_range, self.person
        if bounds is None and asking and found.is_real(found.column(label, "--label")):
            bounds = parsed_range(typer.prompt(questions.RANGE_ASKED, err=True))
        if self.protect == "person" and person is None and asking:
            person = questions.column_of_persons(found)
        assert self.protect is not None, "it is settled"
        assert self.trust is not None, "it is settled"
        out = self.write or Path("advised.yaml")
        drafted = Wish(
            label,
            self.protect,
            self.trust,
            source=questions.as_seen(out, file),
            public=None if self.public_rows is None else questions.as_seen(out, self.public_rows),
            group=None if self._together else self.group,
            person=person,
            parties=None if self._together else self.parties,
            epsilon=(self.epsilon,),
            delta=self.delta or None,
            label_range=bounds,
            positive=self.positive,
        )
        bags = self.bags or (2 if self.task == "ratio" else None)
        public = None if self.public_rows is None else profile(self.public_rows)
        return of_file(found, drafted, self._wish(), public, bags, here=(file, self.public_rows))
