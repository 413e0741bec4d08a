"""Nothing that we start or print reports to the authors of Flower and Ray, unless somebody asks for it."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SWITCHES = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
CODE = """
import os, sys
import {module}
flower = sys.modules.get("flwr.supercore.telemetry")
print(flower and flower.FLWR_TELEMETRY_ENABLED, *(os.environ[name] for name in {names}))
"""
PRINTED = re.compile(r"\b(ray start|flwr run|flower-super\w+)\b")


def told(module, **environment):
    """What a process says of its telemetry that imports a module, and has no other settings of it."""
    clean = {name: value for name, value in os.environ.items() if name not in SWITCHES}
    code = CODE.format(module=module, names=list(SWITCHES))
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=clean | environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("module", ["parties.app", "aggregator.server.app"])
def test_whatever_is_imported_first_switches_it_off(module):
    assert told(module) == ["0", "0", "0"]  # what Flower has read, and what Ray and all processes will


def test_who_asks_for_it_has_it():
    assert told("federation", FLWR_TELEMETRY_ENABLED="1", RAY_USAGE_STATS_ENABLED="1") == ["None", "1", "1"]


def commands(text):
    """Commands of Flower and Ray in the blocks of a document, each with what was exported before it in its block."""
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        before = ""
        for line in block.splitlines():
            before = f"{before} {line}" if line.lstrip().startswith("export ") else before
            if PRINTED.search(line):
                yield f"{before} {line}"


def switched_off(command):
    wanted = "RAY_USAGE_STATS_ENABLED" if "ray start" in command else "FLWR_TELEMETRY_ENABLED"
    return f"{wanted}=0" in command


def test_commands_that_documents_print_switch_it_off():
    documents = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    found = [line for path in documents for line in commands(path.read_text("utf-8"))]
    assert [line for line in found if not switched_off(line)] == []
    example = "```sh\nflwr run .\nexport FLWR_TELEMETRY_ENABLED=0\nflower-superlink --insecure\n```\n"
    assert list(map(switched_off, commands(example))) == [False, True]


def test_commands_that_errors_print_switch_it_off():
    from federation.contract.errors import InputError
    from federation.engines.ray_cluster import connect

    with pytest.raises(InputError, match=r"RAY_USAGE_STATS_ENABLED.*0.*--head"):
        connect("127.0.0.1:1", None)


def test_what_is_tested_elsewhere_switches_it_off_and_covers_what_is_promised():
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))
    for job in workflow["jobs"].values():
        assert SWITCHES.items() <= job["env"].items()
    matrix = workflow["jobs"]["tests"]["strategy"]["matrix"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    first, last = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups()
    assert matrix["python"] == [f"3.{minor}" for minor in range(int(first), int(last))]
    assert {system.partition("-")[0] for system in matrix["os"]} == {"ubuntu", "macos"}
