"""`federation show`, `validate`, `list` and `schema`: what scenarios say and what there is to choose from."""

from __future__ import annotations

import json
from collections.abc import Iterable

import typer

from scenarios.commands.options import ScenarioName, Settings


def show(scenario: ScenarioName, settings: Settings = []) -> None:  # noqa: B006 - typer copies it
    """Print a scenario with every default written out, as YAML that can be run.

    SCENARIO is a file, or the name of a library scenario.
    """
    from scenarios.schema import resolve, to_yaml

    typer.echo(to_yaml(resolve(scenario, settings)), nl=False)


def validate(scenario: ScenarioName, settings: Settings = []) -> None:  # noqa: B006 - typer copies it
    """Check a scenario without reading data, and say how much it asks for.

    SCENARIO is a file, or the name of a library scenario.
    """
    from scenarios.schema import resolve
    from scenarios.sweep import expand, releases, swept_columns, variants

    checked = resolve(scenario, settings)
    points, listed = len(expand(checked)), variants(checked)
    worlds = points * checked.trials.splits
    each = sum(releases(variant, checked) for variant in listed)
    typer.echo(f"OK: {checked.name}")
    typer.echo(f"sweep: {', '.join(swept_columns(checked)) or 'none'}")
    typer.echo(f"worlds: {worlds} ({points} settings x {checked.trials.splits} splits)")
    typer.echo(f"variants: {len(listed)} ({', '.join(variant.name for variant in listed)})")
    typer.echo(
        f"releases: {worlds * each} ({worlds} worlds x {each}: {len(checked.privacy.epsilon)} epsilons x "
        f"{checked.trials.noise} noise draws per private variant)"
    )


def list_choices() -> None:
    """List library scenarios, data sets, protocols, classifiers and mechanisms."""
    from federation import registry
    from scenarios.catalogue import names
    from scenarios.commands.privacy import privacy_app
    from scenarios.loader import library, load
    from scenarios.protocol_options import BASELINES

    _section("scenarios", ((name, load(name).value.get("description") or "") for name in library()))
    _section("data", [*names().items(), ("FILE.csv, FILE.npz", "your own rows, with data.label")])
    protocols = [(name, _first_line(registry.protocol(name).__doc__)) for name in registry.protocol_names()]
    baselines = "NON-PRIVATE baseline for comparison"
    _section("protocols", [*protocols, *((name, baselines) for name in BASELINES)])
    _section(
        "classifiers",
        [
            ("logistic", "regularised logistic or softmax regression, solved to a certified gradient"),
            ("ClassName", "any scikit-learn classifier, such as KNeighborsClassifier"),
        ],
    )
    mechanisms = ((command.name or "", command.callback) for command in privacy_app.registered_commands)
    _section("mechanisms (federation privacy)", ((name, _first_line(call.__doc__)) for name, call in mechanisms))


def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from scenarios.schema import Scenario

    declared = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Scenario.model_json_schema()}
    declared["required"] = [key for key in declared["required"] if key != "name"]  # the file's name is the default
    typer.echo(json.dumps(declared, indent=2))


def _section(title: str, entries: Iterable[tuple[str, str]]) -> None:
    rows = list(entries)
    width = max((len(name) for name, _ in rows), default=0)
    typer.echo(f"{title}:")
    for name, text in rows:
        typer.echo(f"  {name:<{width}}  {text}".rstrip())


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
