"""A draft of an entry in OpenDP's Deployments Registry at tier 3, from what a run says about its guarantees.

Its schema: https://github.com/opendp/deployments-registry-data, schemas/deployments-schema.yaml, as of 2026. What a
program cannot know stays a question that begins with TODO; with one of them left the registry refuses an entry.

The questions that NIST SP 800-226 has evaluators of differential privacy ask, with the answers that a run knows.

The publication (Near, Darais, Lefkovitz, Howarth 2025) stacks what a guarantee depends on as a pyramid: from epsilon
and the unit at its top down to how data are collected, where no part protects more than those below it. The questions
are put in our words. What a program cannot know stays a question that begins with TODO.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from aggregator.contract.protocol import Place
from federation.contract.errors import refusing, writing
from federation.contract.guarantee import Adjacency, Check, Guarantee, Unit
from scenarios.reports.evidence import Evidence, Reality, World, levels, numbers
from scenarios.reports.guarantee_page import BANNERS, CHANGES, NOISE_AT, UNITS, declared_public, example, roles, total
from scenarios.reports.tables import listed

REGISTRY = "registry.yaml"

Todo = Annotated[str, Field(pattern=r"^TODO: [^\n]*\?$")]
Text = Annotated[str, Field(min_length=1)]

_NEIGHBOURS = {
    Adjacency.REPLACE: "Replace-one (bounded): two data sets are adjacent if one becomes the other by replacing {}.",
    Adjacency.ADD_REMOVE: "Add-or-remove (unbounded): two data sets are adjacent if one becomes the other by adding or "
    "removing {}.",
}
_NAMES = {
    Unit.PARTY: "Party (all data of one participating organisation or device)",
    Unit.PARTY_AND_AUXILIARY_ROW: "Party and one public row",
    Unit.ROW: "Row",
    Unit.PERSON: "Labels of one person",
    Unit.LABEL: "Label of one row",
}
_MODELS = {
    Place.AGGREGATOR: "Parties keep their rows and send answers to a coordinator, who is trusted with them and adds "
    "the noise before anything is released.",
    Place.PARTY: "Parties keep their rows and add the noise to their answers themselves; nobody else is trusted.",
    Place.SHARES: "Parties keep their rows and add shares of one noise to their answers, which they mask: a secure "
    "summation shows the coordinator sums only.",
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Curator(_Strict):
    """Who publishes the data product."""

    data_curator_name: Text
    data_curator_type: Text


class Basic(_Strict):
    """Tier 1."""

    name: Text
    data_curators: Annotated[list[Curator], Field(min_length=1)]
    intended_use: Text
    data_product_type: Literal["Machine learning model"]
    data_product_region: Text
    description: Text
    publication_date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")] | Todo
    data_product_sector: Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"] | Todo


class DpVariant(_Strict):
    """Tiers 2 and 3: the kind of guarantee."""

    variant_name: Literal["Pure DP", "Approximate DP"]
    data_domain: Text
    unprotected_quantities: Text


class Parameters(_Strict):
    """Numbers of the release that was published."""

    epsilon: Annotated[float, Field(gt=0)] | Todo
    delta: Annotated[float, Field(gt=0, lt=1)] | Todo | None = None


class PrivacyLoss(_Strict):
    """Tiers 2 and 3: who is protected how far."""

    privacy_unit: Text
    privacy_unit_details: Text
    privacy_parameters: Parameters
    privacy_parameters_details: Text


class DeploymentModel(_Strict):
    """Tiers 2 and 3: who trusts whom."""

    model_name: Literal["Federated"]
    model_name_details: Text
    actors: Text
    release_type: Literal["One release", "Many releases"] | Todo
    release_type_details: Text
    data_source_type: Literal["Static", "Dynamic"] | Todo
    access_type: Literal["Non-interactive"]
    access_type_details: Text


class Accounting(_Strict):
    """Tier 3: what several releases cost."""

    post_processing: Text
    composition: Text


class Implementation(_Strict):
    """Tier 3: how it was built."""

    preprocessing_and_hyperparameter_tuning: Text
    mechanisms: Text
    justification: Text


class Administrative(_Strict):
    """Who wrote the entry."""

    sources: Text
    notes: Text
    registry_authors: Annotated[list[Text], Field(min_length=1)]


class Deployment(_Strict):
    """All that is said of a deployment."""

    basic: Basic
    dp_variant: DpVariant
    privacy_loss: PrivacyLoss
    deployment_model: DeploymentModel
    accounting: Accounting
    implementation: Implementation
    administrative: Administrative


class Entry(_Strict):
    """One file of the registry."""

    url_slug: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")] | Todo
    status: Literal["Draft"]
    tier: Literal[3]
    deployment: Deployment


def entry(found: Evidence) -> Entry:
    """The entry of the leading variant. Raises `InputError` where no release has a guarantee."""
    world, release, kept = found.required("register")
    first, public = kept[0], list(declared_public(found, world, kept[0].unit))
    unit = UNITS[first.unit]
    exact = [one.what for one in release.sends if not one.private] if release.noise_at is not Place.AGGREGATOR else []
    sent = f" Parties send without noise: {listed(exact)}." if exact else ""
    model = "TODO: who adds the noise, and who is trusted?" if release.noise_at is None else _MODELS[release.noise_at]
    return Entry(
        url_slug="TODO: name, curator and year with hyphens between?",
        status="Draft",
        tier=3,
        deployment=Deployment(
            basic=Basic(
                name=found.name,
                data_curators=[
                    Curator(
                        data_curator_name="TODO: who publishes the model?",
                        data_curator_type="TODO: what are they, such as Industry or Nonprofit?",
                    )
                ],
                intended_use="TODO: what is the model for?",
                data_product_type="Machine learning model",
                data_product_region="TODO: which region do the data describe, and whose law applies?",
                description=found.description or "TODO: what does the model predict, and from what?",
                publication_date="TODO: when was it published, as YYYY-MM-DD?",
                data_product_sector="TODO: Technology, Healthcare, Education, Government, Energy or Finance?",
            ),
            dp_variant=DpVariant(
                variant_name="Pure DP" if all(one.delta == 0 for one in kept) else "Approximate DP",
                data_domain=_domain(world),
                unprotected_quantities="Declared public: " + "; ".join(public) + "." + sent,
            ),
            privacy_loss=PrivacyLoss(
                privacy_unit=_NAMES[first.unit],
                privacy_unit_details=_NEIGHBOURS[first.adjacency].format(unit),
                privacy_parameters=_parameters(kept),
                privacy_parameters_details=f"Of one release of the variant {found.leading}: {levels(kept)}.",
            ),
            deployment_model=DeploymentModel(
                model_name="Federated",
                model_name_details=model,
                actors="\n".join(
                    f"- {one['who']}: holds {one['holds']}; sees {one['sees']}; is trusted with {one['trusted']}."
                    for one in roles(world, release)
                ),
                release_type="One release" if len(world.releases) == 1 else "TODO: One release or Many releases?",
                release_type_details="TODO: is anything else planned to be released about the same data?",
                data_source_type="TODO: Static, or Dynamic as new data come in over time?",
                access_type="Non-interactive",
                access_type_details="The model is released as a file; nobody can ask anything of the data.",
            ),
            accounting=Accounting(
                post_processing="What is learned from the noisy answers, and all predictions, are post-processing.",
                composition=_composition(world, found.over_periods),
            ),
            implementation=Implementation(
                preprocessing_and_hyperparameter_tuning="TODO: how were options, epsilon and the feature map chosen, "
                "and was that done on the private data and paid for?",
                mechanisms=_mechanisms(found, first),
                justification="TODO: why this unit, this epsilon, this protocol and this trust?",
            ),
            administrative=Administrative(
                sources="TODO: where is the deployment described, and where is the model?",
                notes=_notes(found, first),
                registry_authors=["TODO: who fills in this entry?"],
            ),
        ),
    )


def write_registry(directory: Path, found: Evidence) -> Path:
    """Write the entry into a directory; returns its path. Raises `InputError` as `entry`, and where it cannot."""
    with refusing(f"the artefacts in {directory} do not make an entry"):
        record = entry(found).model_dump(exclude_none=True)
    return write_yaml(directory / REGISTRY, record)


def write_yaml(path: Path, record: Any) -> Path:
    """Write plain values as YAML that people go on with: texts of several lines as blocks. Raises `InputError`."""
    text = yaml.dump(
        record, Dumper=_Blocks, sort_keys=False, default_flow_style=False, width=float("inf"), allow_unicode=True
    )
    with writing(path, "allow it there"):
        path.write_text(text, encoding="utf-8")
    return path


class _Blocks(yaml.SafeDumper):
    """Writes texts of several lines behind a bar."""


_Blocks.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def _parameters(kept: list[Guarantee]) -> Parameters:
    epsilons, deltas = ({getattr(one, name) for one in kept} for name in ("epsilon", "delta"))
    some = ", ".join(f"{one:g}" for one in sorted(epsilons))
    delta: float | str | None = next(iter(deltas)) or None
    if len(deltas) > 1:
        delta = f"TODO: which of {', '.join(f'{one:g}' for one in sorted(deltas))} was published?"
    return Parameters(
        epsilon=next(iter(epsilons)) if len(epsilons) == 1 else f"TODO: which of {some} was published?", delta=delta
    )


def _domain(world: World) -> str:
    parties = "Parties" if world.parties is None else f"{world.parties:,} parties" if world.parties > 1 else "One party"
    return (
        f"{parties}, each with any rows of the columns that were declared. TODO: what is a row, and whom is it about?"
    )


def _composition(world: World, over_periods: Sequence[str]) -> str:
    parts = [
        f"All {one['releases']} releases of the run together: epsilon {one['epsilon']}, delta {one['delta']} for "
        f"{one['unit']}."
        for one in map(total, world.totals)
    ]
    how = "Pure epsilons add up, Gaussian releases compose exactly, and all others by their sums."
    return " ".join([*parts, how, *(f"{line}." for line in over_periods)])


def _mechanisms(found: Evidence, guarantee: Guarantee) -> str:
    version = f" {found.version}" if found.version else ""
    lines = [
        f"- {guarantee.mechanism} ({numbers(guarantee)}) of multiparty-federation{version}.",
        *(f"- {one.text} ({one.check})." for one in guarantee.assumptions if one.keeper == "software"),
        "- TODO: who has access to the rows, and how are parties' nodes and their timing kept from observers?",
    ]
    return "\n".join(lines)


def _notes(found: Evidence, guarantee: Guarantee) -> str:
    real = {
        Reality.SIMULATION: "SIMULATION: parties and noise are simulated, and nobody is protected. No deployment: do "
        "not submit this entry.",
        Reality.UNSEEDED: "SIMULATED PARTIES: one computer held all rows. No deployment of a federation.",
        Reality.DEPLOYED: "Made from the record of a deployed aggregator.",
    }[found.reality]
    declared = [
        f"- {one.text}." for one in guarantee.assumptions if one.check == "declared" and one.keeper != "software"
    ]
    return "\n".join([real, "Declared, and for people to see to:", *declared])


EVALUATION = "sp800-226.yaml"


@dataclass(frozen=True)
class Answer:
    """A question of one part of the pyramid, and what is known about it."""

    about: str
    question: str
    answer: str


def evaluation(found: Evidence) -> list[Answer]:
    """Questions and answers about the leading variant, from the top of the pyramid down.

    Raises `InputError` where no release has a guarantee.
    """
    world, release, kept = found.required("evaluate")
    first = kept[0]
    totals = [
        f"epsilon {one['epsilon']}, delta {one['delta']} for {one['unit']}, by {one['releases']} releases"
        for one in map(total, world.totals)
    ]
    title, banner = BANNERS[found.reality]
    maker = "not recorded" if release.noise_at is None else NOISE_AT[release.noise_at]
    granted = [one.text for one in first.assumptions if one.keeper == "software" and one.check is Check.DECLARED]
    return [
        Answer("reality", "Does the guarantee protect anybody?", f"{title}: {banner}"),
        Answer("epsilon", "What are the parameters of a release, and what do they mean for one unit?",
               f"{levels(kept)}. {' '.join(example(first))}"),
        Answer("epsilon", "What do all releases about the same data cost together?",
               "; ".join([*totals, "TODO: what else has been or will be released about the same data?"])),
        Answer("unit of privacy", "Whose data is hidden, and from what change?",
               f"{UNITS[first.unit]}: what a release can tell about whether it {CHANGES[first.adjacency]} is bounded."),
        Answer("unit of privacy", "Is all that one person contributes hidden?", _persons(first.unit)),
        Answer("algorithm", "Which mechanism makes it private, and who has proved or tested that?",
               f"{first.mechanism}, with {numbers(first)}. `federation audit` tests the claim on the protocol's worst "
               "case, and on a twin with half the noise. TODO: was it run for this scenario, and what did it say?"),
        Answer("algorithm", "What comes out without protection?",
               "Declared public: " + "; ".join(declared_public(found, world, first.unit))
               + ". Accuracies, figures and baselines of a run are covered by no guarantee."),
        Answer("utility and bias", "How accurate is the release, and for whom is it worse?",
               "report.html has the accuracies, beside those without any privacy. TODO: is the model worse for some "
               "groups of people, and who has looked?"),
        Answer("trust model", "Who sees what before there is noise, and who must be trusted?",
               f"Noise is made by {maker}. "
               + " ".join(f"{one['who']}: sees {one['sees']}; is trusted with {one['trusted']}."
                          for one in roles(world, release))),
        Answer("implementation", "What can go wrong between the formula and the machine?",
               "Enforced or checked by the code: "
               + "; ".join(one.text for one in first.assumptions if one.check is not Check.DECLARED)
               + "." + (f" Taken for granted: {'; '.join(granted)}." if granted else "")),
        Answer("implementation", "Who could learn from time, memory or failures?",
               "TODO: can anybody but the coordinator watch when and how long a party answers?"),
        Answer("security", "Who has access to the rows, the keys and the answers?", _access(release.noise_at)),
        Answer("data collection", "How exposed are the data before anything is asked of them?",
               "TODO: who collected the rows, where are they kept, for how long, and on which legal basis?"),
        Answer("data collection", "Were options, features or epsilon chosen by looking at private data?",
               "Assumed not to be: see the coordinator's assumptions. TODO: on which data were they tried before?"),
    ]  # fmt: skip


def write_evaluation(directory: Path, found: Evidence) -> Path:
    """Write questions and answers into a directory; returns the path. Raises `InputError`."""
    return write_yaml(directory / EVALUATION, [asdict(one) for one in evaluation(found)])


def _persons(unit: Unit) -> str:
    match unit:
        case Unit.PARTY | Unit.PARTY_AND_AUXILIARY_ROW:
            return "Yes, if nobody's rows lie at several parties. TODO: can one person's rows lie at several parties?"
        case Unit.PERSON:
            return "All labels of a person, and no feature. TODO: is a person the same at all parties?"
    what = "row" if unit is Unit.ROW else "label"
    return f"One {what} is: a person with several is protected less. TODO: is every row about another person?"


def _access(place: Place | None) -> str:
    answers = {
        Place.AGGREGATOR: " Answers before the noise lie at the coordinator: who can read its memory and its traffic?",
        Place.SHARES: " Answers leave a party masked: who enrols the parties' keys, and who runs what adds up?",
    }.get(place or Place.NOWHERE, "")
    return f"TODO: who can read the parties' rows, and the noise of the machines that make it?{answers}"
