"""The target of advice: the user's own file, a scenario, or public numbers alone; and the scenario that follows."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.advice import Task, Wish
from aggregator.contract.protocol import Trust
from federation.contract.errors import InputError
from federation.contract.trust import TrustTerms
from federation.features.feature_map import completed
from federation.mechanisms.labels.shaped_gaussian import fit_shape
from scenarios.data.catalogue import entry, is_file_name, names
from scenarios.data.profile import Profile
from scenarios.runs.trial import World, worlds
from scenarios.settings.draft import Draft, draft, numbers
from scenarios.settings.draft import Wish as Drafted
from scenarios.settings.loader import load
from scenarios.settings.protocol_options import BASELINES
from scenarios.settings.protocol_options import task as task_of
from scenarios.settings.schema import Scenario, resolve

Entries = Sequence[Mapping[str, Any]]
_STAGES = ("impute", "standardise")  # behind which columns are counted
_OF_SUMS = ("impute", "scale", "standardise", "constant")  # of the rows that noise on label sums is shaped by
_OF_MEANS = ("impute", "standardise", "constant")  # of the rows of `mean_operator`
_FEW = {"splits": 3, "noise": 4}  # of a scenario without data at hand


@dataclass(frozen=True)
class Subject:
    """A wish with all public numbers that are known, and what writes a scenario of entries and why they were chosen.

    `counted` says where numbers were counted; empty where they were all given. `here` are settings of a scenario's data
    that say where it lies from here, `data_dir` the folder of data files. `deployed`: parties are real. `remarks` say
    what was taken for granted.
    """

    wish: Wish
    write: Callable[[Entries, str], Draft]
    counted: str = ""
    here: Mapping[str, str] = field(default_factory=dict)
    data_dir: Path | None = None
    deployed: bool = False
    remarks: tuple[str, ...] = ()

    def runnable(self, plain: Mapping[str, Any]) -> dict[str, Any]:
        """A written scenario with the paths of its data as they are from here."""
        return {**plain, "data": plain["data"] | dict(self.here)}

    def settings(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """What a written scenario of one protocol says of all but protocols and trials, with paths as from here."""
        plain = self.runnable(self.write([entry], "tried").plain)
        return {key: value for key, value in plain.items() if key in ("data", "parties", "privacy", "engine", "seed")}

    @property
    def has_data(self) -> bool:
        """Whether there are rows to try it on."""
        return bool(self.counted)


def of_file(
    profile: Profile,
    drafted: Drafted,
    wish: Wish,
    public: Profile | None,
    bags: int | None = None,
    *,
    here: tuple[Path, Path | None],
) -> Subject:
    """Return the target of the user's own file: rows, columns and classes are counted, and nothing else is looked at.

    `here` are the paths of the file and of that of public rows. `bags` of each party are for class ratios. Raises
    `InputError` as `scenarios.settings.draft.numbers`.
    """
    found = numbers(profile, drafted, public)
    real = found.classes is None
    task: Task = "ratio" if bags else "regression" if real else "binary" if found.classes == 2 else "multiclass"
    wish = replace(
        wish,
        task=task,
        rows=found.rows,
        features=found.features,
        terms=None if found.parties is None else TrustTerms(found.parties),
        classes=found.classes,
        label_range=drafted.label_range,
        public_rows=found.public_rows,
        bags=bags,
        bag_rows=max(1, found.rows // (found.parties * bags)) if bags else None,
        person_is_party=drafted.person is not None,
    )

    def write(entries: Entries, why: str) -> Draft:
        made = draft(profile, drafted, entries, why)
        if bags:
            made.plain["parties"]["bags"] = bags
        return made

    remarks = []
    if public is None:
        remarks.append(
            f"no public rows were named: {found.public_rows} of the file's own play them, which is for trying out only"
        )
    places = {"source": here[0], **({} if here[1] is None else {"auxiliary": here[1]})}
    lying = {name: str(path.expanduser().resolve()) for name, path in places.items()}
    return Subject(
        wish, write, f"rows, columns and classes were counted in {profile.path}", lying, None, False, tuple(remarks)
    )


def wished(drafted: Drafted, public_features: bool, **known: Any) -> Wish:
    """The wish of a draft before anything is counted; `known` are further public numbers, None those not given."""
    given = {name: value for name, value in known.items() if value is not None}
    trust, first = Trust(drafted.trust), drafted.epsilon[0]
    return Wish("binary", drafted.protect, trust, public_features, epsilon=first, **given)


def of_scenario(source: str | Path, wish: Wish, data_dir: Path | None) -> Subject:
    """Return the target of a scenario, or of a folder of `federation deploy`: advice is about its protocols.

    Raises `InputError` for one that cannot be used, and for one with a sweep.
    """
    folder = Path(source)
    deployed = folder.is_dir()
    if deployed and not (folder / "scenario.yaml").exists():
        raise InputError(
            f"{source} is a folder without scenario.yaml; name a file of rows, a scenario, or a deployment"
        )
    path = folder / "scenario.yaml" if deployed else source
    document, scenario = copy.deepcopy(load(path).value), resolve(path)
    plain = {key: value for key, value in document.items() if key not in ("protocols", "baselines", "name")}
    plain["data"] = {**plain["data"], "source": scenario.data.source}
    if is_file_name(scenario.data.auxiliary):
        plain["data"]["auxiliary"] = scenario.data.auxiliary
    if scenario.data.time is not None:
        raise InputError(f"{path} has rows that arrive over time (data.time), and advice is on one division; remove it")
    found = worlds(scenario, None if data_dir is None else str(data_dir))
    if len(found) != scenario.trials.splits:
        raise InputError(f"{path} sweeps settings of its data or parties; set one value of each to be advised on it")
    kinds = [one.kind for one in scenario.protocols if one.kind not in BASELINES]
    wish = numbers_of(found[0], replace(wish, epsilon=scenario.privacy.epsilon[0], delta=scenario.privacy.delta), kinds)

    def write(entries: Entries, why: str) -> Draft:
        whole = {**plain, "name": f"{scenario.name}-advised", "protocols": list(entries)}
        return Draft(in_order(whole), {("protocols", 0): [why]}, ())

    remarks = ("features are counted behind indicators of texts and missing cells",)
    counted = f"rows, columns and classes were counted in {scenario.data.source}"
    return Subject(wish, write, counted, {}, data_dir, deployed, remarks)


def of_numbers(wish: Wish, source: str, label: str, given: Mapping[str, Any]) -> Subject:
    """Return the target of public numbers alone; `source` and `label` are what a scenario would say of the data.

    Raises `InputError` for numbers that are missing: rows and features, or for class ratios the rows of a bag.
    """
    missing = [flag for flag, value in given.items() if value is None]
    if missing:
        raise InputError(
            f"{' and '.join(missing)}: say how many there are, or name a file of rows: federation advise my.csv"
        )
    known = entry(source)
    if known is not None and known.regression != (wish.task == "regression"):
        labels, wanted = ("real labels", "classes") if known.regression else ("classes", "real labels")
        raise InputError(f"--source {source} has {labels}, not {wanted}; name another data set or a file")

    def write(entries: Entries, why: str) -> Draft:
        data: dict[str, Any] = {"source": source}
        if source not in names():
            data["label"] = label
            if wish.task == "regression" and wish.label_range is not None:
                data["range"] = list(wish.label_range)
        parties: dict[str, Any] = {"count": wish.parties, **({"bags": wish.bags} if wish.bags else {})}
        privacy = {"epsilon": wish.epsilon, **({"delta": wish.delta} if wish.delta else {})}
        whole = {"name": "advised", "data": data, "parties": parties, "protocols": list(entries), "privacy": privacy}
        return Draft({**whole, "trials": dict(_FEW)}, {("protocols", 0): [why]}, ())

    return Subject(wish, write)


def numbers_of(world: World, wish: Wish, kinds: Sequence[str] = ()) -> Wish:
    """The wish with the public numbers of a world; `kinds` say by what they estimate whether ratios are asked for."""
    table, cut, data = world.split.table, world.split.cut, world.scenario.data
    task: Task = "regression" if not table.classes else "binary" if len(table.classes) == 2 else "multiclass"
    if (kinds and task_of(kinds).targets) or wish.task == "ratio":
        task = "ratio"
    traces: dict[str, float] = {}
    spectrum: tuple[float, ...] = ()
    if is_file_name(data.auxiliary):
        traces = traces_of(world) if task == "regression" else {}
        spectrum = spectrum_of(world) if task == "binary" else ()
    return replace(
        wish,
        task=task,
        rows=len(cut.order),
        features=world.feature_map(_STAGES).dimension,
        terms=world.scenario.terms(cut.parties),
        classes=len(table.classes) or None,
        label_range=table.label_range,
        public_rows=len(world.split.public.rows),
        bags=cut.bags_per_party if task == "ratio" else None,
        bag_rows=int(cut.bag_sizes.mean()) if task == "ratio" else None,
        rows_per_person=data.rows_per_person if data.person is not None else 1,
        traces=traces,
        spectrum=spectrum,
    )


def traces_of(world: World) -> dict[str, float]:
    """tr C of the noise on label sums by shape, as the public rows of a world have it, for all its private rows."""
    public = world.feature_map(_OF_SUMS).transform(world.split.public.rows)
    scale = len(public) / len(world.split.cut.order)
    return {shape: fit_shape(public, shape).trace * scale for shape in ("optimal", "whitened", "isotropic")}


def spectrum_of(world: World) -> tuple[float, ...]:
    """The second moments of a world's public rows along their principal directions, of norm 1 behind the usual map."""
    rows = completed(world.feature_map(_OF_MEANS)).transform(world.split.public.rows)
    moments = np.square(np.linalg.svd(rows, compute_uv=False)) / len(rows)
    lacking = (0.0,) * (rows.shape[1] - len(moments))
    return *moments.tolist(), *lacking


def in_order(whole: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a scenario in the order of its sections."""
    return {key: whole[key] for key in Scenario.model_fields if key in whole}
