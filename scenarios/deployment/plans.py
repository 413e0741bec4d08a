"""Plans of deployments: the agreement of real sites and the plan of the aggregator, made from a scenario.

The queries are not listed by hand. The code that runs later starts the protocol on the public rows, and the sites agree
to the queries that the protocol would send. The file of public rows contains the feature columns, and the rows for the
aggregator.
"""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from aggregator.contract.protocol import Place
from aggregator.contract.session import told
from aggregator.server.releasing import Inquiry
from aggregator.server.variants import Variants
from aggregator.trial.feature_fitting import imputes
from aggregator.trial.plan import KnownNumbers, RunPlan, TaskPlan, TrialPlan, VariantPlan
from aggregator.trial.trial import Views, World
from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee
from federation.contract.plugins import Reference
from federation.contract.query import PrivateQuestion, Question, TrustedQuestion
from federation.secure_aggregation.plan import KEY, Roster
from federation.signed_messages.aggregation_messages import part_length, sum_plan
from federation.signed_messages.agreement import (
    Agreement,
    Asked,
    Bags,
    Column,
    Label,
    Member,
    Promise,
    Public,
    Second,
    terms,
)
from federation.signed_messages.messages import question_packet, reply_length
from scenarios.data.catalogue import is_file_name
from scenarios.data.files import open_sheet, read_rows, suffix
from scenarios.data.hashing import Hashing, hashings
from scenarios.data.readers import Archive
from scenarios.data.row_storage import features_of
from scenarios.runs.trial import class_names, public_file_premise, release_plan
from scenarios.settings.protocol_options import BASELINES, requires
from scenarios.settings.schema import Scenario
from scenarios.settings.sections import Data
from scenarios.settings.sweep import expand, swept_columns
from scenarios.settings.sweep import variants as variants_of
from scenarios.simulated.simulation import PublicRows

_BY = "by"


@dataclass(frozen=True)
class Arrangements:
    """What a coordinator decides beside the scenario: where letters go, to whom, until when, and how much a site holds.

    `root` and `aggregator` are the certificate and the public key as texts, `closing` seconds since 1970, `rows` the
    fewest and most rows of a site, or of each of its bags, of which it has at most `bags`. `second` is the name of the
    second of two servers.
    """

    superlink: str
    root: str
    aggregator: str
    sites: tuple[str, ...]
    closing: int
    rows: tuple[int, int] | None
    bags: int | None
    second: str | None = None


@dataclass(frozen=True)
class Deployment:
    """An agreement that lacks the keys of its sites, what the aggregator will do, and what public numbers say of it."""

    agreement: Agreement
    plan: TrialPlan
    remarks: tuple[str, ...]


def deployment(scenario: Scenario, known: Arrangements, public: Path) -> Deployment:
    """What a scenario is between real sites, with the rows of the file `public`.

    Raises `InputError`: one line for each thing that must be changed.
    """
    if problems := [*_problems(scenario, known)]:
        raise InputError("\n".join(problems))
    variant = next(variant for variant in variants_of(scenario) if variant.kind not in BASELINES)
    data, parties = scenario.data, scenario.parties
    column = _column(parties.bags)
    bags = None if column is None or known.bags is None else Bags(column=column, most=known.bags)
    others = [data.label, data.person, *data.drop, bags and bags.column, _column(parties.partition)]
    hashes = [*map(Hashing.of, hashings(data.features))]
    columns = feature_columns(public, [name for name in others if name], hashes)
    rows, missing = known.rows or (parties.rows or 0, parties.rows or 0), imputes(data.features)
    file = {"file": public.name, "digest": sha256(public)}
    table = {"columns": [one.name for one in columns], "text": [i for i, one in enumerate(columns) if one.text]}
    numbers = KnownNumbers(
        scenario.privacy.delta,
        terms=scenario.terms(len(known.sites)),
        bags=1 if bags is None else bags.most,
        smallest_bag=rows[0],
        largest_bag=rows[1],
        rows_per_person=0 if data.person is None else data.rows_per_person,
        label_range=data.range,
        rows=len(known.sites) * rows[0] if rows[0] == rows[1] and bags is None else None,
    )
    task = TaskPlan(
        table=Reference(f"{public_rows.__module__}:{public_rows.__name__}", {**file, **table, "missing": missing}),
        stages=data.stages,
        classes=data.classes or (),
        class_names=class_names(data) + public_file_premise(data),
        classifier=parties.classifier,
        robust=parties.robust,
        alike=parties.alike,
    )
    variants = (VariantPlan(variant.name, variant.kind, variant.options),)
    run = RunPlan("", simulation=False, in_letters=True)
    plan = TrialPlan(scenario.name, numbers, task, variants, release_plan(scenario, {}), run)
    asked, promises, remarks, public_count, public_features = begun(plan, public.parent)
    agreement = Agreement(
        version=1,
        name=scenario.name,
        aggregator=known.aggregator,
        superlink=known.superlink,
        root=known.root,
        sites=tuple(Member(name=name) for name in known.sites),
        closing=known.closing,
        columns=columns,
        label=Label(name=data.label or "", classes=data.classes or (), range=data.range),
        missing=missing,
        bags=bags,
        person=data.person,
        rows_per_person=numbers.rows_per_person,
        rows=rows,
        public=Public(file=public.name, sha256=file["digest"], rows=public_count),
        quorum=numbers.terms.quorum,
        colluding=numbers.terms.colluding,
        servers=numbers.terms.servers,
        second=None if known.second is None else Second(name=known.second),
        protocol=variant.kind,
        options=dict(variant.options),
        asked=asked,
        promises=promises,
        public_features=public_features,
    )
    return Deployment(agreement, plan, (*remarks, *(_summed(agreement) if agreement.secure else ())))


def _summed(agreement: Agreement) -> Iterator[str]:
    """What public numbers say of secure sums. Raises `InputError` where these sites can have none."""
    sites = len(agreement.sites)
    if agreement.second is not None:  # whose key is not there yet, and makes no difference
        second = agreement.second.model_copy(update={"masks": bytes(KEY).hex()})
        agreement = agreement.model_copy(update={"second": second})
    try:
        plan = sum_plan(agreement, Roster((bytes(KEY),) * sites), b"", 1)
    except InputError as error:
        raise InputError(f"trust: secure: {error}") from error
    spare = plan.neighbours - plan.threshold
    if not plan.second and plan.neighbours == sites - 1 and sites - plan.least > spare:
        yield (
            f"by parties.quorum {sites - plan.least} of {sites} sites may stay away, but a secure sum of so few ends "
            f"when more than {spare} do; raise parties.quorum to {(sites - spare) / sites:.3g}: the noise gets less"
        )


def begun(plan: TrialPlan, folder: Path) -> tuple[tuple[Asked, ...], tuple[Promise, ...], tuple[str, ...], int, bool]:
    """What a plan will ask and promise, what public numbers say of it, how many public rows there are, and whether it
    takes the sites' features as public.

    Raises `InputError` where real sites would refuse.
    """
    public = Reference(plan.task.table.target, {**plan.task.table.arguments, "folder": str(folder)})
    plan = plan.changed(table=public)
    inquiry = Inquiry()
    with threadpool_limits(1):  # with which the aggregator asks: sums in another order have other last digits
        views = Views(plan)
        started = Variants(World(plan, views), inquiry)
    questions = [question for question, _ in inquiry.questions()]
    spends = started.spends()
    trusted = any(isinstance(question, TrustedQuestion) for question in questions)
    for question in questions:
        if isinstance(question, PrivateQuestion) and not question.shared and (why := question.simulated_only()):
            raise InputError(f"protocols: {why}")
    lengths: dict[str, int] = {}
    for question in started.longest():
        lengths[question.kind] = max(lengths.get(question.kind, 0), len(question_packet(question)))
    promises = []
    for place, spent in spends:
        if isinstance(spent, NoGuarantee):
            raise InputError(
                f"protocols: {plan.variants[0].kind} promises nothing with these options ({spent.reason}), and real "
                "sites answer under a guarantee only; choose noise that has one"
            )
        if trusted is not (place is Place.AGGREGATOR):
            raise InputError(
                f"protocols: {plan.variants[0].kind} asks sites for answers without noise of their own, for which it "
                "promises nothing; choose other options"
            )
        promises.append(
            Promise(
                unit=spent.unit, adjacency=spent.adjacency, epsilon=spent.epsilon, delta=spent.delta, trusted=trusted
            )
        )
    asked = tuple(
        Asked(
            kind=question.kind,
            times=question.times,
            same=terms(question),
            length=lengths[question.kind],
            reply=_reply(question),
            masked=question.shared,
        )
        for question in questions
    )
    remarks = (*views.remarks(), *told(started.outlooks(), plan.terms.parties))
    features = any(question.takes_features_as_public for question in questions)
    return asked, tuple(promises), remarks, len(views.table.rows), features


def _reply(question: Question) -> int:
    if isinstance(question, PrivateQuestion) and question.shared:
        return part_length(question)
    return reply_length(question)


def _column(entry: object) -> str | None:
    """The column of an entry {by: COLUMN}."""
    return entry.get(_BY) if isinstance(entry, dict) else None


def _problems(scenario: Scenario, known: Arrangements) -> Iterator[str]:
    """One line for each thing that keeps a scenario from being run between real sites, and what to do about it."""
    data, parties = scenario.data, scenario.parties
    released = [protocol for protocol in scenario.protocols if protocol.kind not in BASELINES]
    swept = [*swept_columns(scenario)] if len(expand(scenario)) > 1 or any(one.sweeps for one in released) else []
    if swept:
        yield f"{swept[0]}: several values are for simulations; give it one, with which the sites are asked"
    if len(released) != 1:
        listed = ", ".join(protocol.kind for protocol in released) or "none"
        yield f"protocols: real sites are asked by one protocol, and there are {len(released)} ({listed}); leave one"
    if (scenario.servers == "two") is not (known.second is not None):
        yield (
            "servers: two needs another organisation that runs the second server; say with --second NAME what it is "
            "called, or use servers: one"
            if known.second is None
            else f"servers: {scenario.servers} has no second server; leave --second out, or use servers: two"
        )
    elif known.second is not None and known.second.lower() in map(str.lower, known.sites):
        yield f"--second: '{known.second}' is one of the sites; the second server holds no rows, and has its own name"
    if len(scenario.privacy.epsilon) > 1:
        listed = ", ".join(f"{epsilon:g}" for epsilon in scenario.privacy.epsilon)
        yield f"privacy.epsilon: real sites spend one epsilon, and there are several ({listed}); choose one"
    yield from _data_problems(data, [protocol.kind for protocol in released])
    if not isinstance(parties.bags, int) and known.bags is None:
        yield "parties.bags: say with --bags how many bags a site has at most; noise and sizes follow from it"
    if isinstance(parties.bags, int) and parties.bags > 1:
        yield (
            f"parties.bags: {parties.bags} bags are dealt at random in a simulation; real sites have a column that "
            "says in which bag a row is: use {by: COLUMN} and --bags, or 1"
        )
    if parties.common_bags:
        yield (
            "parties.common_bags: real sites number bags by the values of the column in their own tables, which say "
            "nothing of those elsewhere; remove it, and use trust: none, where every site hides its own counts"
        )
    if known.rows is None and (parties.rows is None or isinstance(parties.rows, tuple)):
        yield (
            "parties.rows: say with --rows LEAST:MOST how many rows a site, or each of its bags, has at least and at "
            "most; these numbers are public"
        )


def _data_problems(data: Data, kinds: list[str]) -> Iterator[str]:
    if not is_file_name(data.auxiliary):
        yield (
            f"data.auxiliary: must be a file of rows that are really public, as real sites give none away, got "
            f"{data.auxiliary!r}; name a CSV or Parquet file with the columns of the sites' tables"
        )
    if data.time is not None:
        yield (
            "data.time: periods are for simulations; remove it, and collect once in each period with --new-exchange: "
            "sites answer about the rows that they have by then, and the budget lasts over all of them"
        )
    if data.label is None:
        yield "data.label: name the column of the labels in the sites' tables"
    if data.positive is not None:
        yield "data.positive: sites have the classes in their tables; write the two there and name them in data.classes"
    real = any(requires(kind).labels == "real" for kind in kinds)
    if real and data.range is None:
        yield "data.range: name the public range [lo, hi] of the labels; it is never taken from the data"
    if not real and data.classes is None:
        yield "data.classes: name all classes in order; they are public and never taken from the data"


def feature_columns(path: Path, others: Collection[str], hashes: Sequence[Hashing] = ()) -> tuple[Column, ...]:
    """The columns of a file of public rows that are features: all but `others`, and whether each is a text.

    Those that are hashed are numbers, and stand behind all others.

    Raises `InputError` for a file that cannot be read, whose columns have no names, or in which no feature is left.
    """
    if suffix(path) == ".npz":
        archive = Archive(path)
        rows = archive.tables("X", missing=True)[0].astype(np.float64)
        if "feature_names" not in archive:
            raise InputError(
                f"data.auxiliary: the columns of {path} have no names, by which sites could find them in their tables; "
                "add an array feature_names, or save the rows as a CSV or Parquet file"
            )
        found = [Column(name=name) for name in archive.column_names("feature_names", rows)]
    else:
        hashed = [name for one in hashes for name in one.names]
        sheet, words = open_sheet(path, hashed), {one.column for one in hashes}
        if absent := [name for name in words if name is not None and name not in sheet.header]:
            raise InputError(f"data.auxiliary: {path} has no column '{absent[0]}' to hash; it has {sheet.names}")
        own = [name for name in sheet.header if name not in {*others, *words, *hashed}]
        found = [Column(name=name, text=sheet.is_text(name)) for name in own]
        found += [Column(name=name) for name in hashed]
    features = tuple(column for column in found if column.name not in others)
    if not features:
        raise InputError(f"data.auxiliary: {path} has no column that could be a feature; name a file that has")
    return features


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's contents, in hexadecimal digits. Raises `InputError` where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def public_rows(
    file: str, digest: str, columns: Sequence[str], text: Sequence[int], missing: bool, folder: str = ""
) -> PublicRows:
    """The public rows of a plan, by name of a file in a folder (`aggregator.trial.plan.PublicTable`).

    Raises `InputError` for a file that is not the one the sites have agreed to.
    """
    path = Path(folder, file)
    if sha256(path) != digest:
        raise InputError(f"{path} is not the file that the sites have agreed to; restore it from a copy")
    if suffix(path) == ".npz":
        rows = read_rows(path, columns, missing=missing)
    else:
        rows = features_of(open_sheet(path, columns), columns, text, missing)
    return PublicRows(rows, tuple(columns), tuple(text))
