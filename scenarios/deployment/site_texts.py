"""What a plan means for a site, in words of people: who asks, what leaves, what it costs, and what is left.

What the secure sums of a plan rest on, in words: for its coordinator, and for whoever decides at a site.

What a plan means for its second server, in words of people: it has no rows, and much rests on whom it tells what.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federation.contract.errors import BudgetExceededError, FederationError, InputError
from federation.contract.query import PublicQuestion, TrustedQuestion
from federation.signed_messages.agreement import Agreement
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


def promised(agreement: Agreement) -> str:
    """Behind a promise: what it holds by, as the coordinator is told."""
    terms = agreement.terms
    most = f"at most {terms.colluders} of {terms.parties} of them collude with"
    if agreement.servers == "one_semi_honest":
        rests = f"you see no answer as long as you follow the protocol, which sites must believe of you, and {most} you"
    elif agreement.second is not None:
        rests = (
            f"nobody sees an answer as long as you and '{agreement.second.name}' do not put together what you have, "
            f"{most} either of you, and all compare the plan's digest with each other"
        )
    else:
        rests = (
            f"nobody sees an answer, and sites trust nobody, as long as {most} you and all compare the plan's digest "
            "with each other"
        )
    return f", by noise that the sites add together: {rests}"


def unseen(agreement: Agreement) -> str:
    """Who does not see an answer to a question, but the sum of all."""
    if agreement.servers == "one_semi_honest":
        return "a coordinator that follows the protocol does not see it"
    if agreement.second is not None:
        return f"neither the coordinator nor the second server '{agreement.second.name}' alone sees it"
    return "nobody sees it"


def compared(agreement: Agreement) -> bool:
    """Whether sites are to compare the plan's digest with each other: their keys are in it."""
    return agreement.secure and agreement.servers != "one_semi_honest"


def for_site(agreement: Agreement, colluding: float) -> Iterator[str]:
    """What a site is told, of whose policy `colluding` may collude."""
    terms, whom, and_that = agreement.terms, "the coordinator", ""
    if agreement.servers == "one_semi_honest":
        and_that = (
            ", and the coordinator FOLLOWS THE PROTOCOL: it may look at all that it gets, and if it cheats it can read "
            "this site's part (policy.servers)"
        )
    if agreement.second is not None:
        name = agreement.second.name
        whom = f"the coordinator, or with the second server '{name}'"
        and_that = (
            f", and these two DO NOT COLLUDE: together they can read this site's part (policy.servers). '{name}' has "
            f"the key {agreement.second.masks}"
        )
    yield (
        f"secure sums: of {terms.least} of {terms.parties} sites at least, or nothing can be read; what is hidden "
        f"stays so while at most {terms.colluders} of them collude with {whom} (policy.colluding: {colluding:g} may)"
        f"{and_that}"
    )
    if compared(agreement):
        yield (
            "compare the digest of the plan, all its digits, with the OTHER SITES by telephone, not only with the "
            "coordinator: one that shows each site another list of keys could read their answers"
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
    found.lines += [*who(agreement), *_what(agreement)]
    if agreement.secure:
        found.lines += for_site(agreement, settings.policy.colluding)
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


def who(agreement: Agreement) -> Iterator[str]:
    """Which plan it is, who asks, and who takes part."""
    closing = time.strftime("%Y-%m-%d %H:%M", time.localtime(agreement.closing))
    yield f"plan: '{agreement.name}', digest {agreement.digest.hex()}"
    yield f"who asks: whoever has the key {fingerprint(agreement.aggregator_key)}"
    second = "" if agreement.second is None else f"; second server: {agreement.second.name}"
    yield f"sites: {', '.join(site.name for site in agreement.sites)}{second}; the plan closes on {closing}"


def _what(agreement: Agreement) -> Iterator[str]:
    """What leaves a site, question by question."""
    yield f"what leaves, by the protocol {agreement.protocol}:"
    for asked in agreement.asked:
        try:
            kind = question_type(asked.kind)
        except FederationError as error:
            yield f"  {asked.kind}: cannot be answered here: {error}"
            continue
        what = (kind.__doc__ or "").strip().partition("\n")[0]
        how = "protected by noise that this site adds"
        if asked.masked:
            how = "protected by noise that all sites add together, and sent masked: "
            how += f"{unseen(agreement)}, but the sum of all"
        elif issubclass(kind, TrustedQuestion):
            how = "sent WITHOUT noise: the aggregator is trusted to add it"
        elif issubclass(kind, PublicQuestion):
            how = "sent WITHOUT noise: for features that are public"
        times = _TIMES.get(asked.times, f"{asked.times} times")
        yield f"  {asked.kind}, {times} at most: {what} It is {how}."


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
        own = "by noise of all sites together" if agreement.secure else "by noise of this site"
        kept = "if the aggregator is honest" if promise.trusted else own
        yield (
            f"what an exchange costs: epsilon {promise.epsilon:g}, delta {promise.delta:g} for one {promise.unit} "
            f"({promise.adjacency}), {kept}"
        )
    for name, row in spent.items():
        yield (
            f"spent by table '{settings.data.table}', {name}: epsilon {row['epsilon']:g} of "
            f"{row['allowed_epsilon']:g}, delta {row['delta']:g} of {row['allowed_delta']:g}"
        )


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
    found.lines += [*who(agreement), *_helper_server_facts(agreement, raw_public(masks_key(key)).hex())]
    found.errors += objections_of_second(settings, agreement, key)
    conclude(found, state, settings.policy.approve, agreement)
    return found


def _helper_server_facts(agreement: Agreement, masks: str) -> Iterator[str]:
    terms = agreement.terms
    yield "this is the second server of the plan's secure sums: it holds no rows, needs no table and spends nothing"
    yield (
        f"what leaves: of each sum, once, the sum of the masks of one list of sites, {terms.least} of "
        f"{terms.parties} at least, each of which has signed that it takes part"
    )
    yield (
        "what it sees: who takes part and when, and nothing that a site has sent. With what the coordinator has, what "
        "is here reads every site's part: let the coordinator have neither this key nor this machine"
    )
    yield f"its key for masks, which sites hear from you by telephone, not from the coordinator: {masks}"
    yield (
        "compare the digest of the plan, all its digits, with the SITES by telephone, not only with the coordinator: "
        "one that shows each of you another list of keys could read their answers"
    )
