"""`federation show`, `validate`, `list`, `schema` and `data`: the contents of scenarios, and the available choices."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from federation.contract.errors import InputError, nearest_name
from federation.contract.files import is_file
from scenarios.commands.options import AsJson, DataDirectory, ScenarioName, Settings, scenarios_and_protocols
from scenarios.commands.output import fitted, tell

if TYPE_CHECKING:
    from scenarios.data.tables import DataSet
    from scenarios.settings.schema import Scenario

_Shown = Annotated[
    str,
    Argument(
        metavar="SCENARIO",
        help="A scenario file, or the name of a library scenario or of a protocol.",
        autocompletion=scenarios_and_protocols,
    ),
]


def show(scenario: _Shown, settings: Settings = [], as_json: AsJson = False) -> None:  # noqa: B006 - copied
    """Print a scenario with every default that applies written out, as YAML that can be run; or explain a protocol.

    SCENARIO is a file, the name of a library scenario, or that of a protocol: its options, its defaults, by which
    rules they were chosen, and on what data that was validated.
    """
    from aggregator.contract.registry import protocol_names
    from scenarios.settings.guarantees import to_yaml
    from scenarios.settings.loader import library
    from scenarios.settings.rules import described
    from scenarios.settings.schema import resolve

    if scenario in protocol_names() and not Path(scenario).is_file():
        if settings:
            raise InputError(
                f"--set changes a scenario, and '{scenario}' is a protocol; name a scenario, or leave it out"
            )
        found, lines = described(scenario)
        tell(as_json, found, text=lines, hidden=found)
        return
    if scenario not in library() and not is_file(Path(scenario)):
        known = [*library(), *protocol_names()]
        raise InputError(
            f"there is no scenario file '{scenario}', and no library scenario or protocol of that name; library: "
            f"{', '.join(library())}; protocols: {', '.join(protocol_names())}{nearest_name(scenario, known)}"
        )
    resolved = resolve(scenario, settings)
    record = resolved.to_plain()
    tell(as_json, record, text=[to_yaml(resolved).rstrip("\n")], hidden=record)


def validate(scenario: ScenarioName, settings: Settings = [], as_json: AsJson = False) -> None:  # noqa: B006 - copied
    """Check a scenario without reading data, and say how much it asks for.

    SCENARIO is a file, or the name of a library scenario.
    """
    from scenarios.runs.trial import stated
    from scenarios.settings.guarantees import promises, told_once
    from scenarios.settings.schema import resolve
    from scenarios.settings.sweep import expand, releases, swept_columns, variants

    checked = resolve(scenario, settings)
    points, splits, listed = len(expand(checked)), checked.trials.splits, variants(checked)
    periods = stated(checked.trials)  # of which all but the first are tested on
    worlds, each = points * splits * ((periods or 2) - 1), sum(releases(variant, checked) for variant in listed)
    found: dict[str, Any] = {
        "scenario": checked.name,
        "sweep": swept_columns(checked),
        "settings": points,
        "splits": splits,
        "worlds": worlds,
        "variants": [variant.name for variant in listed],
        "releases_per_world": each,
        "releases": worlds * each,
        "promises": promises(checked),
    }
    how = f"{len(checked.privacy.epsilon)} epsilons x {checked.trials.noise} noise draws per private variant"
    text = [
        f"OK: {checked.name}",
        f"sweep: {', '.join(found['sweep']) or 'none'}",
        f"worlds: {worlds} ({points} settings x {splits} splits{_tested(checked, periods)})",
        f"variants: {len(listed)} ({', '.join(found['variants'])})",
        f"releases: {worlds * each} ({worlds} worlds x {each}: {how})",
        *(f"{one['variant']}: {one['promise']}; {one['sends']}" for one in found["promises"]),
        *told_once(found["promises"]),
    ]
    tell(as_json, found, text=text, hidden=found)


def _tested(checked: Scenario, periods: int | None) -> str:
    """How many periods the worlds are of, where rows arrive over time."""
    if checked.data.time is None:
        return ""
    return f" x {periods - 1} tested periods" if periods else ", for each period but the first; data says how many"


def list_choices(as_json: AsJson = False) -> None:
    """List library scenarios, data sets, protocols, classifiers and mechanisms.

    With --json data sets come with their origin, its address and their licence.
    """
    from typer.main import get_group

    from aggregator.contract.registry import protocol_names
    from scenarios.commands.privacy import privacy_app
    from scenarios.data.catalogue import entry, names
    from scenarios.settings.loader import library, load
    from scenarios.settings.protocol_options import BASELINES

    own = "your own rows, with data.label, and data.range where labels are real"
    sections: dict[str, dict[str, str]] = {
        "scenarios": {name: load(name).value.get("description") or "" for name in library()},
        "data": {**names(), "FILE.csv, FILE.npz, FILE.parquet, FILE.svmlight": own},
        "protocols": {name: _about_protocol(name) for name in protocol_names()}
        | dict.fromkeys(BASELINES, "NON-PRIVATE baseline for comparison"),
        "classifiers": {
            "logistic": "regularised logistic or softmax regression, solved to a certified gradient",
            "ClassName": "any scikit-learn classifier, such as KNeighborsClassifier",
            "mixture": "one of several for each party, such as {mixture: [logistic, GaussianNB]}",
        },
        "mechanisms": {name: _first_line(one.help) for name, one in get_group(privacy_app).commands.items()},
    }
    text = []
    for title, entries in sections.items():
        width = max(map(len, entries), default=0)
        text.append(f"{title}{' (federation privacy)' if title == 'mechanisms' else ''}:")
        lines = (f"  {name:<{width}}  {about}".rstrip() for name, about in entries.items())
        text += [fitted(line, sys.stdout, hanging=width + 4) for line in lines]
    tell(
        as_json,
        {**sections, "data": {name: _origin(entry(name), text) for name, text in sections["data"].items()}},
        text=text,
        hidden=sections,
    )


def _origin(known: DataSet | None, about: str) -> dict[str, str | None]:
    """What a data set is, where it comes from and what its owners allow; of one's own file nobody here knows."""
    found = {key: getattr(known, key, None) or None for key in ("origin", "url", "licence")}
    return {"description": about, **found}


def _about_protocol(name: str) -> str:
    """What it is, or why it cannot be used here."""
    from aggregator.contract.registry import protocol

    try:
        return _first_line(protocol(name).__doc__)
    except InputError as error:
        return f"cannot be used: {error}"


def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from scenarios.settings.schema import Scenario

    declared = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Scenario.model_json_schema()}
    declared["required"] = [key for key in declared["required"] if key != "name"]  # the file's name is the default
    tell(True, declared)


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def data(
    name: Annotated[str | None, Argument(metavar="NAME", help="A data set; without it all are listed.")] = None,
    data_dir: DataDirectory = None,
    as_json: AsJson = False,
) -> None:
    """Say which data sets are there, and where the originals of the others are.

    Nothing is downloaded: originals have owners, whose licences are yours to read.
    """
    from scenarios.data.catalogue import directory_of, entry, names

    folder = directory_of(data_dir)
    if name is None:
        sets = [known for each in names() if (known := entry(each)) is not None]
        listed = [{"name": one.name, "state": _state(one.file, folder), "file": one.file or "-"} for one in sets]
        missing = [one["name"] for one in listed if one["state"] == "missing"]
        where = f"in {folder}" if folder else "no data directory: name one with --data-dir or FEDERATION_DATA"
        text = [f"files: {where}", *([f"what a missing one needs: federation data {missing[0]}"] if missing else [])]
        tell(as_json, {"data": listed}, text=text)
        return
    known = entry(name)
    if known is None:
        raise InputError(f"there is no data set '{name}'; federation data lists them{nearest_name(name, names())}")
    found = {
        "name": name,
        "state": _state(known.file, folder),
        "file": known.file,
        "holds": known.holds,
        "original": known.origin,
        "address": known.url,
        "licence": known.licence,
    }
    text = [f"{key}: {value}" for key, value in found.items() if value]
    if known.file is not None:
        text.append(
            f"next: python -m benchmarks.originals {name} (in the source tree) makes the file from the original"
        )
    tell(as_json, found, text=text, hidden=found)


def _state(file: str | None, folder: Path | None) -> str:
    """Whether a data set can be used."""
    from scenarios.data.readers import is_there

    if file is None:
        return "comes along"
    return "there" if folder is not None and is_there(folder / file) else "missing"
