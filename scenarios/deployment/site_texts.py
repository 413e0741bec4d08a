"""Texts about a plan for a site and its helper server: who asks, what leaves, what it costs, and what is left."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from aggregator.contract.disclosure import Role, disclosed, noise, protection
from aggregator.contract.protocol import Place, Sent
from federation.contract.errors import BudgetExceededError, FederationError, InputError
from federation.contract.query import PublicQuestion, TrustedQuestion
from federation.signed_messages.agreement import Agreement, Asked, Promise
from federation.signed_messages.keys import fingerprint, load_key, masks_key, raw_public
from parties.guard.answering import question_type
from parties.party_data.cohort import Holdings
from parties.site.accounts import Accounts, printable
from parties.site.policy import APPROVED, PENDING, Approvals, Decision, Rule, objections, objections_of_second
from parties.site.service import NotYet, accounts, require_enough, require_quick, to_look
from parties.site.settings import SecondSettings, Settings
from parties.site.state import Contents, Identity, State, contents
from parties.site.worker import apart, prepare
from scenarios.data.tables import cut, listed
from scenarios.deployment.table_check import WatchedTable
from scenarios.settings.guarantees import Roles, in_lines, roles


def who(agreement: Agreement) -> list[Roles]:
    """Return who has, sees and is trusted with what in a plan; queries that are not installed here are left out."""
    sent, trusted = [], False
    for asked in agreement.asked:
        with suppress(FederationError):
            sent.append(Sent(f"the response to '{asked.kind}'", None, _private(asked)))
            trusted |= issubclass(question_type(asked.kind), TrustedQuestion)
    place = Place.SHARES if agreement.secure else Place.AGGREGATOR if trusted else Place.PARTY
    second = agreement.second
    names = {} if second is None else {Role.HELPER: f"the helper server '{second.name}'"}
    return roles(disclosed(place, agreement.servers, sent), names)


def _private(asked: Asked) -> bool:
    """Return whether a response leaves a site with noise. Raises `FederationError` for a query not installed here."""
    return asked.masked or not issubclass(question_type(asked.kind), TrustedQuestion | PublicQuestion)


def numbers_of(agreement: Agreement) -> str:
    """Return how many sites a secure aggregation needs, and how many of them may collude."""
    terms = agreement.terms
    return (
        f"secure aggregation: at least {terms.least} of {terms.parties} sites take part, or nothing can be read; at "
        f"most {terms.colluders} of {terms.parties} may collude"
    )


_CLASSES_SHOWN = 12
_TIMES = {1: "once", 2: "twice"}


@dataclass
class Outlook:
    """What keeps a site from answering: `errors` in sentences, `over` where an allowance is too small."""

    lines: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    over: bool = False
    waiting: list[Decision] = field(default_factory=list)
    rows: int | None = None
    spent: dict[str, dict[str, float]] = field(default_factory=dict)


def outlook(settings: Settings, agreement: Agreement) -> Outlook:
    """All that a site has to know before it approves a plan; nothing is asked of anybody, and nothing spent."""
    found = Outlook()
    state = State.found(settings.state)
    journal = state.journal(reading=True)
    identity = Identity(state.folder / "tables", journal)
    found.lines += [*_plan(agreement), *_what(agreement), *in_lines(who(agreement))]
    found.lines += _secure(agreement, settings.policy.colluding)
    key = load_key(settings.connection.key, EllipticCurvePrivateKey)  # type: ignore[type-abstract]
    found.errors += objections(settings, agreement, key)
    own = accounts(settings, identity)
    found.spent = _spent(settings, own)
    found.lines += _costs(agreement, settings, found.spent)
    found.errors += _afforded(agreement, own, found)
    _look(found, settings, agreement, identity)
    conclude(found, state, settings.policy.approve, agreement)
    return found


def conclude(found: Outlook, state: State, rule: Rule, agreement: Agreement) -> None:
    """Say what has been decided here, and whether anything keeps it from being done."""
    approvals = Approvals(state.folder / "approvals", rule)
    decision = approvals.asked(agreement.digest, None) if rule != "each" else None
    found.waiting = approvals.known(PENDING)
    found.lines += _approval(decision, found.waiting)
    found.lines.append("NOT ready" if found.errors else "ready")
    found.lines, found.errors = [*map(printable, found.lines)], [*map(printable, found.errors)]


def _look(found: Outlook, settings: Settings, agreement: Agreement, identity: Identity) -> None:
    """Have the table read as the service does, by a process with as much memory and time."""
    name, read = f"table '{settings.data.table}'", partial(_seen, settings, agreement, identity.key)
    prepare(__name__)
    try:
        (told, rows, labels), seconds = apart(to_look(settings.means), read)
        if rows is None:
            found.errors += [f"{name}: {sentence}" for sentence in told]
            return
        found.rows = len(rows.rows)
        found.lines.append(f"{name}: {found.rows} rows, {labels}")
        found.lines += [f"  note: {sentence}" for sentence in told]
        require_enough(rows, settings)
        identity.require_settled(settings.data.table, rows)
        require_quick(seconds, settings.means)
    except NotYet as error:  # a machine that is less busy may be quicker
        found.lines.append(f"  note: {error}")
    except InputError as error:
        found.errors.append(str(error))


def _seen(settings: Settings, agreement: Agreement, key: bytes) -> tuple[list[str], Contents | None, str]:
    """What is to be said of a table, digests of its rows where these can be used, and what their labels are."""
    holdings, told = WatchedTable(settings.data, agreement, 0).read()
    return (told, None, "") if holdings is None else (told, contents(holdings, key), _labels(agreement, holdings))


def _plan(agreement: Agreement) -> Iterator[str]:
    """Which plan it is, who asks, and who takes part."""
    closing = time.strftime("%Y-%m-%d %H:%M", time.localtime(agreement.closing))
    yield f"plan: '{agreement.name}', digest {agreement.digest.hex()}"
    yield f"who asks: whoever has the key {fingerprint(agreement.aggregator_key)}"
    second = "" if agreement.second is None else f"; helper server: {agreement.second.name}"
    yield f"sites: {', '.join(site.name for site in agreement.sites)}{second}; the plan closes on {closing}"


def _what(agreement: Agreement) -> Iterator[str]:
    """Say what leaves a site, query by query."""
    yield f"what leaves, by the protocol {agreement.protocol}:"
    for asked in agreement.asked:
        try:
            kind = question_type(asked.kind)
        except FederationError as error:
            yield f"  {asked.kind}: cannot be answered here: {error}"
            continue
        what = (kind.__doc__ or "").strip().partition("\n")[0]
        place = Place.AGGREGATOR if issubclass(kind, TrustedQuestion) else Place.PARTY
        how = protection(Place.SHARES if asked.masked else place, _private(asked))
        times = _TIMES.get(asked.times, f"{asked.times} times")
        yield f"  {asked.kind}, {times} at most: {what} Protected by: {how}."


def _secure(agreement: Agreement, colluding: float) -> Iterator[str]:
    """Say what the policy of a site must allow for a secure aggregation; `colluding` is what it allows now."""
    if agreement.secure:
        yield f"{numbers_of(agreement)} (policy.colluding: {colluding:g} may; policy.servers: {agreement.servers})"
    if agreement.second is not None:
        yield f"'{agreement.second.name}' has the key for masks {agreement.second.masks} (policy.second-servers)"


def _labels(agreement: Agreement, holdings: Holdings) -> str:
    """What the labels are, for whoever knows what they should be."""
    name, labels = agreement.label.name, holdings.labels
    if not agreement.label.classes:
        return f"{name} from {labels.min():g} to {labels.max():g}"
    counts = np.bincount(labels, minlength=len(agreement.label.classes)).tolist()
    each = [f"{cut(one)} {count}" for one, count in zip(agreement.label.classes, counts, strict=True)]
    return f"{name} {listed(each, _CLASSES_SHOWN)}"


def _costs(agreement: Agreement, settings: Settings, spent: dict[str, dict[str, float]]) -> Iterator[str]:
    for promise in agreement.promises:
        yield (
            f"what an exchange costs: epsilon {promise.epsilon:g}, delta {promise.delta:g} for one {promise.unit} "
            f"({promise.adjacency}); {paid(agreement, promise)}"
        )
    for name, row in spent.items():
        yield (
            f"spent by table '{settings.data.table}', {name}: epsilon {row['epsilon']:g} of "
            f"{row['allowed_epsilon']:g}, delta {row['delta']:g} of {row['allowed_delta']:g}"
        )


def paid(agreement: Agreement, promise: Promise) -> str:
    """Say who adds the noise that a promise needs."""
    own = Place.SHARES if agreement.secure else Place.PARTY
    return noise(Place.AGGREGATOR if promise.trusted else own)


def _spent(settings: Settings, own: Accounts) -> dict[str, dict[str, float]]:
    allowances = settings.allowances
    allowed = {account.name: account for account in allowances.proved}
    if allowances.trusted:
        allowed["trusted"] = allowances.trusted
    return {
        name: {
            "epsilon": epsilon,
            "allowed_epsilon": allowed[name].epsilon,
            "delta": delta,
            "allowed_delta": allowed[name].delta,
        }
        for name, (epsilon, delta) in own.spent().items()
    }


def spent_by(settings: Settings) -> list[dict[str, Any]]:
    """What a table has spent, account by account."""
    state = State.found(settings.state)
    journal = state.journal(reading=True)
    own = accounts(settings, Identity(state.folder / "tables", journal))
    return [{"account": name, **row} for name, row in _spent(settings, own).items()]


def _afforded(agreement: Agreement, own: Accounts, found: Outlook) -> Iterator[str]:
    """Why one more exchange cannot be paid. The journal is one for reading, so that nothing is."""
    for promise in agreement.promises:
        try:
            own.charge(f"outlook {promise.trusted}", agreement.promised(promise.trusted), promise.trusted, {})
        except BudgetExceededError as error:
            found.over = True
            yield f"one more exchange cannot be paid for: {error}"
        except InputError as error:
            yield str(error)


def _approval(decision: Decision | None, waiting: list[Decision]) -> Iterator[str]:
    if decision is not None and decision.state != PENDING:
        yield decided(decision)
    if not waiting and decision is None:
        yield "approval: every exchange waits for it once it is asked for; none does now"
    for one in waiting:
        exchange = f" (exchange {one.exchange})" if one.exchange else ""
        yield f"waits for approval: {one.id}{exchange}; type: federation party approve SITE.toml {one.id}"


def decided(decision: Decision) -> str:
    """A decision in words."""
    when = time.strftime(" on %Y-%m-%d %H:%M", time.localtime(decision.time)) if decision.time else ""
    return f"{'approved' if decision.state == APPROVED else 'denied'}: {decision.id} by {decision.by}{when}"


def record(found: Outlook) -> dict[str, Any]:
    """The same as JSON values."""
    return {
        "ready": not found.errors,
        "errors": found.errors,
        "rows": found.rows,
        "spent": found.spent,
        "waiting": [one.id for one in found.waiting],
        "text": found.lines,
    }


def outlook_of_second(settings: SecondSettings, agreement: Agreement) -> Outlook:
    """All that a second server has to know before it approves a plan; nothing is asked of anybody."""
    found, state = Outlook(), State.found(settings.state)
    key = load_key(settings.connection.key, EllipticCurvePrivateKey)  # type: ignore[type-abstract]
    masks = raw_public(masks_key(key)).hex()
    found.lines += [*_plan(agreement), *in_lines(who(agreement)), numbers_of(agreement)]
    found.lines += [
        "what leaves: for each sum, once, the sum of the masks of one list of sites, all of which have signed that "
        "they take part; this helper server needs no table and spends nothing",
        f"the key for masks of this helper server: {masks}; read it to the sites by telephone, and give the "
        "coordinator neither its private key nor this machine",
    ]
    found.errors += objections_of_second(settings, agreement, key)
    conclude(found, state, settings.policy.approve, agreement)
    return found
