"""A first scenario for one's own file: what it says, and why it says so."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aggregator.advice import Protect
from aggregator.trial.feature_fitting import ROWS_OF_IDENTIFIERS
from federation.contract.errors import InputError
from scenarios.data.catalogue import NO_RANGE
from scenarios.data.profile import Column, Profile
from scenarios.data.tables import cut, listed
from scenarios.settings.guarantees import commented
from scenarios.settings.loader import KeyPath
from scenarios.settings.protocol_options import BASELINES, wanted_features
from scenarios.settings.rules import baselines_beside
from scenarios.settings.sections import Data

_WIDTH = 110
_SHOWN = 12  # columns by name
_TEST, _PUBLIC = (Data.model_fields[name].default for name in ("test", "auxiliary"))
_ROWS_OF_A_PARTY, _MOST_PARTIES, _LOCAL_PARTIES = 6, 200, 10
_SPLITS, _DRAWS = 5, 5
_TEXT, _BITS = "free text", 10  # into how many columns its words are hashed, as a power of 2
_SEE_HASH = ", whose words the stage hash of the features can use"


@dataclass(frozen=True)
class Wish:
    """What somebody wants of a first scenario, under the names of the flags of `federation init` and `advise`.

    `source` and `public` are paths as the scenario says them. None leaves a thing to the draft.
    """

    label: str
    protect: Protect
    trust: Literal["aggregator", "secure", "none"]
    source: str
    public: str | None = None
    group: str | None = None
    person: str | None = None
    parties: int | None = None
    epsilon: Sequence[float] = (1.0, 3.0, 10.0)
    delta: float | None = None
    label_range: tuple[float, float] | None = None
    positive: Sequence[str] = ()


@dataclass(frozen=True)
class Numbers:
    """What is known of a file before a scenario is written, and taken to be public.

    `classes` is None of real labels; `rows` are private ones, `features` columns behind the feature map without a
    constant, `public_rows` those that are named as public, or play them.
    """

    classes: int | None
    rows: int
    features: int
    parties: int
    public_rows: int


@dataclass(frozen=True)
class Draft:
    """The settings as plain values, the comments above them, and what is to be said of the data in the terminal."""

    plain: dict[str, Any]
    comments: Mapping[KeyPath, Sequence[str]]
    remarks: tuple[str, ...]

    def to_yaml(self, file: str, by: str) -> str:
        """The scenario as the text of a file of that name, written by a command."""
        head = (
            f"A first scenario for {self.plain['data']['source']}, written by `federation {by}`. Run it with "
            f"`federation run {file}`; `federation show {file}` prints all other keys with their defaults and what "
            "they mean."
        )
        return "".join(f"# {line}\n" for line in _lines(head)) + commented(self.plain, self.comments)


def numbers(profile: Profile, wish: Wish, public: Profile | None = None) -> Numbers:
    """The public numbers of a file under a wish, with the rows of a `public` one.

    Raises `InputError` for columns that there are not, labels that are missing, and real labels without a range.
    """
    label = profile.column(wish.label, "--label")
    _require_labels(profile, label)
    real = _is_real(profile, label, wish)
    parties = _parties(profile, wish)
    features, _ = _features(profile, {wish.label, *_people(wish)})
    by = parties.get("partition", {}).get("by")
    count = parties.get("count") or profile.column(by, "--group").distinct
    rows = _private_rows(profile, wish)
    playing = max(1, int(profile.rows * (1 - _TEST)) - rows) if public is None else public.rows
    classes = 2 if wish.positive else label.distinct
    return Numbers(None if real else classes, max(rows, count), _width(features), count, playing)


def draft(profile: Profile, wish: Wish, protocols: Sequence[Mapping[str, Any]], why: str) -> Draft:
    """A scenario for a file that keeps a wish by these `protocols`, entries of a scenario, with baselines.

    `why` says how they were chosen, as a sentence without its full stop. Raises `InputError` as `numbers`.
    """
    label = profile.column(wish.label, "--label")
    _require_labels(profile, label)
    real = _is_real(profile, label, wish)
    parties = _parties(profile, wish)
    features, dropped = _features(profile, {wish.label, *_people(wish)})
    beside = baselines_beside(protocols, alone=parties.get("count") == 1)
    baselines = sorted(beside, key=BASELINES.index)
    data = _data(wish, real, features, dropped, protocols)
    plain = {
        "data": data,
        "parties": parties,
        "protocols": [*protocols, *({"kind": kind} for kind in baselines)],
        "privacy": {
            "epsilon": list(wish.epsilon) if len(wish.epsilon) > 1 else wish.epsilon[0],
            **({} if wish.delta is None else {"delta": wish.delta}),
        },
        "trials": {"splits": _SPLITS, "noise": _DRAWS},
    }
    texts = _comments(wish, profile, label, real, dropped, why, len(protocols)) | {
        ("data",): _of_keys(profile, features)
    }
    known = {path: _lines(text) for path, text in texts.items() if text}
    return Draft(plain, known, tuple(_remarks(profile, label, real, features)))


def _require_labels(profile: Profile, label: Column) -> None:
    if label.missing:
        raise InputError(
            f"--label: {label.missing} of the {profile.rows} cells of '{cut(label.name)}' are missing (empty, or a "
            "word such as NA); fill them in or remove these rows, and write a class of that name otherwise"
        )
    if label.distinct < 2:
        raise InputError(f"--label: '{cut(label.name)}' has the same value in all rows; there is nothing to learn")
    if label.kind in ("dates", "free text", "unusable", "mixed"):
        raise InputError(
            f"--label: '{cut(label.name)}' holds {label.no_feature}, neither classes nor numbers; name another column"
        )


def _is_real(profile: Profile, label: Column, wish: Wish) -> bool:
    """Whether the labels are real numbers: where a range is declared, or by their values, which need one then."""
    if wish.label_range is not None:
        return True
    if profile.is_real(label):
        raise InputError(
            f"--range: '{cut(label.name)}' holds numbers with {label.distinct} different values, and {NO_RANGE}; say "
            "what they can be by --range LOW,HIGH, from what is known without the file"
        )
    return False


def _private_rows(profile: Profile, wish: Wish) -> int:
    left = profile.rows * (1 - _TEST)
    return int(left if wish.public else left * (1 - _PUBLIC))


def _people(wish: Wish) -> list[str]:
    """Columns that say whose row each is."""
    return [name for name in (wish.group, wish.person) if name is not None]


def _parties(profile: Profile, wish: Wish) -> dict[str, Any]:
    for flag, name in (("--group", wish.group), ("--person", wish.person)):
        if name is not None:
            column = profile.column(name, flag)
            if name == wish.label or column.missing:
                problem = "is the label" if name == wish.label else f"has {column.missing} missing cells"
                raise InputError(f"{flag}: '{cut(name)}' {problem}; name a column that says it of every row")
    if (wish.person is None) != (wish.protect != "person"):
        needs = "needs --person, the column that says whose row each is"
        raise InputError(f"--protect person {needs}" if wish.person is None else "--person is for --protect person")
    by = wish.group or wish.person
    if by is not None:
        return {**({"count": wish.parties} if wish.parties else {}), "partition": {"by": by}}
    if wish.parties:
        return {"count": wish.parties}
    rows = _private_rows(profile, wish)
    if wish.protect in ("party", "person"):
        return {"count": max(2, min(_MOST_PARTIES, rows // _ROWS_OF_A_PARTY))}
    return {"count": 1 if wish.trust == "aggregator" else max(1, min(_LOCAL_PARTIES, rows // _ROWS_OF_A_PARTY))}


def _features(profile: Profile, taken: set[str]) -> tuple[list[Column], dict[str, str]]:
    """The columns that become features, free text where there is nothing else, and the others, with the reason."""
    features, dropped = [], {}
    for column in (column for column in profile.columns if column.name not in taken):
        if column.no_feature is not None:
            dropped[column.name] = column.no_feature + (_SEE_HASH if column.kind == _TEXT else "")
        elif column.names_somebody:
            dropped[column.name] = "named as an identifier; if it says whose row it is, see --protect person"
        else:
            features.append(column)
    if not features and (
        features := [column for column in profile.columns if column.kind == _TEXT and column.name not in taken]
    ):
        dropped = {name: reason for name, reason in dropped.items() if name not in {one.name for one in features}}
    if not features:
        reasons = [f"{cut(name)} ({reason})" for name, reason in dropped.items()]
        found = f": {listed(reasons, _SHOWN)}" if reasons else ""
        raise InputError(f"{profile.path} has no column that can be a feature{found}; add one")
    return features, dropped


def _width(features: Sequence[Column]) -> int:
    """About how many features there will be: an indicator for every text, and the columns of hashed words."""
    return sum(_columns_of(column) for column in features)


def _columns_of(column: Column) -> int:
    if column.kind == _TEXT:
        return 1 << _BITS
    return column.distinct if column.kind == "texts" else 1


def _data(
    wish: Wish,
    real: bool,
    features: Sequence[Column],
    dropped: Mapping[str, str],
    protocols: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    data: dict[str, Any] = {"source": wish.source, "label": wish.label}
    if wish.positive:
        data["positive"] = list(wish.positive)
    if real and wish.label_range is not None:
        data["range"] = list(wish.label_range)
    data["auxiliary"] = _PUBLIC if wish.public is None else wish.public
    stages = wanted_features(protocol["kind"] for protocol in protocols)
    if any(column.missing for column in features) and stages and "impute" not in stages:
        data["features"] = ["impute", *stages]
    if words := [{"hash": {"column": column.name, "bits": _BITS}} for column in features if column.kind == _TEXT]:
        data["features"] = [*words, *(stages or Data.model_fields["features"].default)]
    if wish.person is not None and wish.group is not None:
        data["person"] = wish.person
    if dropped:
        data["drop"] = [*dropped]
    return data


def _comments(
    wish: Wish, profile: Profile, label: Column, real: bool, dropped: Mapping[str, str], why: str, protocols: int
) -> dict[KeyPath, str]:
    reasons = listed([f"{cut(name)} ({reason})" for name, reason in dropped.items()], _SHOWN)
    groups = [cut(c.name) for c in profile.groups() if c.name not in (wish.label, wish.group, wish.person, *dropped)]
    classes = (
        f": {2 if wish.positive else label.distinct} classes. Their names are read from all rows and taken to be "
        "public; where they are not, declare all that there may be: classes: [...]."
    )
    return {
        ("data", "source"): "Your file; the path is relative to this one.",
        ("data", "label"): f"What is to be learned{'.' if real else classes}",
        ("data", "positive"): "Classes that together are the positive one of two, all others the negative one.",
        (
            "data",
            "range",
        ): "The public range of the labels, from what is known without the file: taken from the rows it "
        "would betray the largest and the smallest. Add outside: clip to move labels outside to the nearer end.",
        ("data", "auxiliary"): _of_public(wish),
        (
            "data",
            "features",
        ): "The words of each text, hashed into columns of numbers, and then the usual ones."
        if any(column.kind == _TEXT and column.name not in dropped for column in profile.columns)
        else "The usual ones, behind impute, which gives missing cells the public median of their column.",
        ("data", "person"): "Whose row each is: nobody may have rows at two parties, which is checked.",
        ("data", "drop"): f"Columns that are no features: {reasons}. Remove a name to keep its column.",
        ("parties",): _of_parties(wish, groups),
        ("protocols",): f"What is compared, beside baselines without any privacy. {_protected(wish)}",
        ("protocols", 0): f"{why[:1].upper()}{why[1:]}.",
        ("protocols", protocols): "NON-PRIVATE: all rows in one place, and what follows for comparison.",
        ("privacy",): "How much one release may tell; smaller hides more. Each is a release of its own.",
        ("trials",): "Repetitions: random divisions into test rows and parties, and noise draws of each release.",
    }


def _of_keys(profile: Profile, features: Sequence[Column]) -> str:
    """What is to be said of features that may be identifiers, though nothing but their values says so."""
    different = [
        cut(column.name)
        for column in features
        if column.kind == "whole numbers" and column.distinct == profile.rows - column.missing >= ROWS_OF_IDENTIFIERS
    ]
    if not different:
        return ""
    return (
        f"Features of whole numbers that no two rows share: {listed(different, _SHOWN)}. One that is an identifier "
        "belongs in drop, or in person if it says whose row it is."
    )


def _of_public(wish: Wish) -> str:
    text = "Public rows, whose labels are not used: the feature map is fitted on them, and they connect the parties."
    if wish.public is not None:
        return f"{text} Nobody's private row may be among them."
    return (
        f"{text} None were named, so this share of the rows that are not for testing plays them, which is for trying "
        "out only: in earnest name a file of rows that are really public."
    )


def _of_parties(wish: Wish, groups: Sequence[str]) -> str:
    if wish.group is not None:
        return f"Who holds the rows: a party for every value of '{cut(wish.group)}'."
    if wish.person is not None:
        return "Every person is a party, so that to protect a party is to protect all rows of a person."
    columns = f"; columns by which it may be: {listed(groups, _SHOWN)}" if groups else ""
    if wish.protect in ("row", "label") and wish.trust == "aggregator":
        return "Who is trusted with all rows is one party."
    return f"Nothing says who holds which row, so they are dealt at random; partition: {{by: COLUMN}} says it{columns}."


def _protected(wish: Wish) -> str:
    what = {
        "party": "Protected is all that a party holds.",
        "person": "Protected are all rows of a person.",
        "row": "Protected is every row by itself; somebody with several rows is less protected.",
        "label": "Protected is every label by itself; features are public.",
    }
    return what[wish.protect]


def _remarks(profile: Profile, label: Column, real: bool, features: Sequence[Column]) -> list[str]:
    """What the terminal says of the data; it stays out of the file, which may be shown to others."""
    said = []
    if not real:
        shares = {name: label.counts[name] / profile.rows for name in sorted(label.counts)}
        said.append(f"classes of {cut(label.name)}: {listed([f'{cut(n)} {s:.1%}' for n, s in shares.items()], _SHOWN)}")
        rare = [cut(name) for name, share in shares.items() if share < 0.05]
        if rare and len(rare) < len(shares):
            said.append(f"rare: {listed(rare, _SHOWN)}; compare every accuracy with that of `constant`")
    missing = [f"{cut(column.name)} {column.missing}" for column in features if column.missing]
    if missing:
        said.append(f"missing cells, which the stage impute fills in: {listed(missing, _SHOWN)}")
    if keys := _of_keys(profile, features):
        said.append(f"{keys[:1].lower()}{keys[1:].removesuffix('.')}")
    return said


def _lines(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_on_hyphens=False)
