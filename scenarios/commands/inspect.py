"""`federation show`, `validate`, `list` and `schema`: what scenarios say and what there is to choose from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import typer

from federation.contract.errors import InputError
from scenarios.commands.options import AsJson, ScenarioName, Settings


def show(scenario: ScenarioName, settings: Settings = [], as_json: AsJson = False) -> None:  # noqa: B006 - copied
    """Print a scenario with every default that applies written out, as YAML that can be run.

    SCENARIO is a file, or the name of a library scenario.
    """
    from scenarios.settings.explained import to_yaml
    from scenarios.settings.schema import resolve

    resolved = resolve(scenario, settings)
    typer.echo(json.dumps(resolved.to_plain(), indent=2) + "\n" if as_json else to_yaml(resolved), nl=False)


def validate(scenario: ScenarioName, settings: Settings = [], as_json: AsJson = False) -> None:  # noqa: B006 - copied
    """Check a scenario without reading data, and say how much it asks for.

    SCENARIO is a file, or the name of a library scenario.
    """
    from scenarios.settings.promises import promises
    from scenarios.settings.schema import resolve
    from scenarios.settings.sweep import expand, releases, swept_columns, variants

    checked = resolve(scenario, settings)
    points, listed = len(expand(checked)), variants(checked)
    found: dict[str, Any] = {
        "scenario": checked.name,
        "sweep": swept_columns(checked),
        "settings": points,
        "splits": checked.trials.splits,
        "worlds": points * checked.trials.splits,
        "variants": [variant.name for variant in listed],
        "releases_per_world": sum(releases(variant, checked) for variant in listed),
    }
    found["releases"] = found["worlds"] * found["releases_per_world"]
    found["promises"] = promises(checked)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    typer.echo(f"OK: {found['scenario']}")
    typer.echo(f"sweep: {', '.join(found['sweep']) or 'none'}")
    typer.echo(f"support.worlds: {found['worlds']} ({points} settings x {found['splits']} splits)")
    typer.echo(f"variants: {len(listed)} ({', '.join(found['variants'])})")
    typer.echo(
        f"releases: {found['releases']} ({found['worlds']} worlds x {found['releases_per_world']}: "
        f"{len(checked.privacy.epsilon)} epsilons x {checked.trials.noise} noise draws per private variant)"
    )
    for promised in found["promises"]:
        typer.echo(f"{promised['variant']}: {promised['promise']}; {promised['sends']}")


def list_choices(as_json: AsJson = False) -> None:
    """List library scenarios, data sets, protocols, classifiers and mechanisms."""
    sections = {title: dict(entries) for title, entries in _choices()}
    if as_json:
        typer.echo(json.dumps(sections, indent=2))
        return
    for title, entries in sections.items():
        width = max(map(len, entries), default=0)
        typer.echo(f"{title}{' (federation privacy)' if title == 'mechanisms' else ''}:")
        for name, text in entries.items():
            typer.echo(f"  {name:<{width}}  {text}".rstrip())


def _choices() -> Iterable[tuple[str, Iterable[tuple[str, str]]]]:
    """(title, (name, what it is in one line) of each choice)."""
    from aggregator.contract.registry import protocol_names
    from scenarios.commands.privacy import privacy_app
    from scenarios.data.catalogue import names
    from scenarios.settings.loader import library, load
    from scenarios.settings.protocol_options import BASELINES

    yield "scenarios", ((name, load(name).value.get("description") or "") for name in library())
    own = ("FILE.csv, FILE.npz, FILE.parquet", "your own rows, with data.label, and data.range where labels are real")
    yield "data", [*names().items(), own]
    baselines = "NON-PRIVATE baseline for comparison"
    protocols = ((name, _about_protocol(name)) for name in protocol_names())
    yield "protocols", [*protocols, *((name, baselines) for name in BASELINES)]
    classifiers = {
        "logistic": "regularised logistic or softmax regression, solved to a certified gradient",
        "ClassName": "any scikit-learn classifier, such as KNeighborsClassifier",
        "mixture": "one of several for each party, such as {mixture: [logistic, GaussianNB]}",
    }
    yield "classifiers", classifiers.items()
    mechanisms = ((command.name or "", command.callback) for command in privacy_app.registered_commands)
    yield "mechanisms", ((name, _first_line(call.__doc__)) for name, call in mechanisms)


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
    typer.echo(json.dumps(declared, indent=2))


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
