"""Drafts of two documents that others ask for, from what a run records about its guarantees.

`registry.yaml` is an entry of OpenDP's Deployments Registry at tier 3, with the fields of its schema of 2026
(https://github.com/opendp/deployments-registry-data, schemas/deployments-schema.yaml). `sp800-226.yaml` has the
questions that NIST SP 800-226 (Near, Darais, Lefkovitz, Howarth 2025) asks about a guarantee, in our words. What a
program cannot know stays a question that begins with TODO; the registry refuses an entry with one of them.
"""

from pathlib import Path
from typing import Any

import yaml

from aggregator.contract.disclosure import Protection, noise, protection
from federation.contract.errors import refusing, writing
from federation.contract.guarantee import Check, Keeper
from scenarios.reports.evidence import Evidence
from scenarios.reports.guarantee_page import BANNERS, declared_public, example, template, total, who
from scenarios.settings.guarantees import CHANGES, UNITS, in_lines

REGISTRY, EVALUATION = "registry.yaml", "sp800-226.yaml"


def write_drafts(directory: Path, found: Evidence) -> list[Path]:
    """Write both drafts about the leading variant into a directory.

    Raises
    ------
    InputError
        If no release has a guarantee, or the drafts cannot be written.
    """
    with refusing(f"the artefacts in {directory} do not make a draft"):
        made = drafts(found)
    paths = [directory / REGISTRY, directory / EVALUATION]
    for path, record in zip(paths, made, strict=True):
        text = yaml.dump(
            record, Dumper=_Blocks, sort_keys=False, default_flow_style=False, width=float("inf"), allow_unicode=True
        )
        with writing(path, "allow it there"):
            path.write_text(text, encoding="utf-8")
    return paths


def drafts(found: Evidence) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Return the entry of the registry, and the questions with their answers.

    Raises `InputError` where no release has a guarantee.
    """
    world, release, kept = found.required("draft")
    first = kept[0]
    software = [one for one in first.assumptions if one.keeper is Keeper.SOFTWARE]
    numbers = ", ".join(f"{name} {value}" for name, value in first.parameters.items())
    text = template("drafts.yaml").render(
        found=found,
        guarantee=first,
        releases=len(world.releases),
        parties="an unknown number of parties" if world.parties is None else f"parties: {world.parties:,}",
        public=list(declared_public(found, world, first.unit)),
        exact=[one.what for one in release.sends if protection(release.noise_at, one.private) is Protection.PUBLIC],
        unit=UNITS[first.unit],
        change=CHANGES[first.adjacency],
        epsilons=sorted({one.epsilon for one in kept}),
        deltas=sorted({one.delta for one in kept}),
        levels="; ".join(f"epsilon {one.epsilon:g}, delta {one.delta:g}" for one in kept),
        added="" if release.noise_at is None else noise(release.noise_at),
        roles=[line.strip() for line in in_lines(who(world, release))[1:]],
        totals=[
            f"All {one['releases']} releases together: epsilon {one['epsilon']}, delta {one['delta']} for "
            f"{one['unit']}."
            for one in map(total, world.totals)
        ],
        mechanism=f"{first.mechanism} ({numbers or 'no parameters'})",
        software=[f"{one.text} ({one.check})" for one in software],
        kept=[one.text for one in first.assumptions if one.check is not Check.DECLARED],
        granted=[one.text for one in software if one.check is Check.DECLARED],
        declared=[one.text for one in first.assumptions if one.check is Check.DECLARED and one not in software],
        reality=": ".join(BANNERS[found.reality]),
        example=example(first),
    )
    made = yaml.safe_load(text)
    return made["registry"], made["evaluation"]


class _Blocks(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


_Blocks.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)
