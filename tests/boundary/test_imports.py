"""Who may import whom. The folders are the trust boundary, so this is a privacy test."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = {
    "federation": set(),
    "parties": {"federation"},
    "aggregator": {"federation"},
    "scenarios": {"federation", "parties", "aggregator"},
}
ONLY_IN = {
    "flwr": (
        "federation/engines/",
        "federation/signed_messages/",  # messages hold what Flower's codec makes
        "parties/app.py",
        "parties/site/message_queue.py",  # where letters come from
        "aggregator/server/app.py",
        "aggregator/exchange/",  # and go to
        "scenarios/deployment/superlink.py",  # starts the servers between
        "scenarios/testing/small_trials.py",  # whose sites answer messages in this process
    ),
    "ray": ("federation/engines/",),
    "yaml": ("scenarios/",),
    # What other people write is checked in one way: scenarios, agreements, configurations of sites.
    "pydantic": ("scenarios/", "federation/signed_messages/agreement.py", "parties/site/settings.py"),
    "sqlalchemy": ("scenarios/deployment/site_data.py",),
    "matplotlib": ("scenarios/",),
    "rich": ("scenarios/",),
    "typer": ("scenarios/",),
    "jinja2": ("scenarios/",),
    "pyarrow": ("scenarios/",),
    "sklearn": ("parties/", "aggregator/", "scenarios/"),
}


def imports(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module


def violations(path, source):
    layer = path.split("/")[0]
    for name in imports(source):
        top = name.split(".")[0]
        if top in LAYERS and top != layer and top not in LAYERS[layer]:
            yield f"{path} imports {name}"
        if top in ONLY_IN and not path.startswith(ONLY_IN[top]):
            yield f"{path} imports {name}"


FILES = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))


def test_there_are_files_to_check():
    assert len(FILES) > 40


def test_nothing_crosses_the_boundary():
    found = [v for path in FILES for v in violations(str(path.relative_to(ROOT)), path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("parties/responses/votes.py", "from aggregator.ensembles.output import VoteTally"),
        ("aggregator/ensembles/output.py", "import parties.party_data.cohort"),
        ("aggregator/contract/ledger.py", "from scenarios import schema"),
        ("federation/contract/query.py", "from flwr.app import Message"),
        ("parties/responses/votes.py", "def f():\n    import ray"),
        ("aggregator/releases/models.py", "import yaml"),
    ],
)
def test_a_crossing_would_be_found(path, source):
    assert list(violations(path, source))
