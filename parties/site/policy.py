"""The policy of a site, and the approvals of its people: may this plan do what it asks?

`objections` compares a plan with the site's own configuration, before any query. `Approvals` records who has agreed to
what: one file for each plan, or for each exchange of a plan, that waits, is approved or is denied. The service writes
down what waits. People decide with commands of their own while the service runs.
"""

import hashlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_type_hints

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federation import __version__
from federation.contract.errors import InputError, nearest_name, refusing
from federation.contract.files import read_object, write_lasting
from federation.contract.validation import typed
from federation.signed_messages.aggregation_messages import roster_of, sum_plan
from federation.signed_messages.agreement import LAST_SECOND, Agreement, unlike
from federation.signed_messages.keys import fingerprint, masks_key, raw_public, sums_key
from parties.guard.answering import question_type
from parties.site.settings import SecondSettings, Settings

_ENVELOPE = 2**14  # bytes of a letter beside its question: what is signed, and what Flower puts around it


def longest_letter(agreement: Agreement) -> int:
    """Bytes of the longest letter that may come under a plan; of a longer one nothing is read."""
    return agreement.longest_question + _ENVELOPE


def _of_anybody(
    settings: Settings | SecondSettings, agreement: Agreement, key: EllipticCurvePrivateKey
) -> Iterator[str]:
    """What keeps any member from serving a plan: who asks, its own key, and the day."""
    asking = fingerprint(agreement.aggregator_key)
    if asking not in settings.policy.aggregators:
        yield (
            f"the plan's aggregator has the key {asking}, which is not in policy.aggregators; compare it by telephone, "
            "and write it there if it is theirs"
        )
    try:
        member = agreement.keys[agreement.position(settings.name)] if agreement.sealed else None
    except InputError as error:
        yield str(error)
    else:
        own = fingerprint(key.public_key())
        if member is None:  # also where but one key is missing, as that of a second server for masks
            yield "the plan is an invitation only; wait for the one with all keys"
        elif fingerprint(member) != own:
            yield (
                f"the plan's key for '{settings.name}' is {fingerprint(member)}, this site's is {own}; "
                "send its coordinator the .pub file of this one"
            )
    if time.time() > agreement.closing:
        yield f"the plan has closed, on {time.strftime('%Y-%m-%d %H:%M', time.localtime(agreement.closing))}"


def objections_of_second(settings: SecondSettings, agreement: Agreement, key: EllipticCurvePrivateKey) -> Iterator[str]:
    """Why a plan is none that this second server may serve, in sentences; nothing where it is."""
    yield from _of_anybody(settings, agreement, key)
    if agreement.second is None or agreement.second.name != settings.name:
        yield f"'{settings.name}' is not the second server of this plan; correct 'name', or ask for another plan"
        return
    if agreement.sealed and agreement.second.masks != raw_public(masks_key(key)).hex():
        yield (
            f"the key for masks that the plan has of '{settings.name}' is not this server's; send its coordinator the "
            ".pub file of this one, with both of its lines"
        )
    yield from _of_colluders(settings.policy.colluding, agreement)


def objections(settings: Settings, agreement: Agreement, key: EllipticCurvePrivateKey) -> Iterator[str]:
    """Why a plan is none that this site may serve, in sentences; nothing where it is."""
    policy = settings.policy
    if agreement.second is not None and agreement.second.name == settings.name:
        yield f"'{settings.name}' is the second server of this plan, and no site; correct 'name'"
        return
    yield from _of_anybody(settings, agreement, key)
    if agreement.protocol not in policy.protocols:
        yield (
            f"the plan's protocol is '{agreement.protocol}', and policy.protocols allows {', '.join(policy.protocols)}"
            + nearest_name(agreement.protocol, policy.protocols)
        )
    if agreement.secure:
        yield from settings.policy.belief.objections(agreement)
        yield from _of_sums(settings, agreement, key)
    for asked in {asked.kind: asked for asked in agreement.asked}.values():
        try:
            if others := unlike(asked, question_type(asked.kind)):
                yield (
                    f"the plan's question '{asked.kind}' is of another version of the program "
                    f"({', '.join(others):.100} is not in both); this is version {__version__}: ask its coordinator "
                    "which has made the plan, and install that one"
                )
        except InputError as error:
            yield f"the plan asks '{asked.kind}', which this installation cannot answer: {error}"
    if (most := sum(asked.times for asked in agreement.asked)) > policy.most_questions:
        yield (
            f"the plan asks up to {most} questions in an exchange, and policy.most-questions allows "
            f"{policy.most_questions}; raise it, or do not serve this plan"
        )
    if (longest := longest_letter(agreement)) > settings.limits.letter:
        yield (
            f"the plan's longest question comes in a letter of {longest} bytes, and limits.letter allows "
            f"{settings.limits.letter}; raise it, or do not serve this plan"
        )
    if agreement.public_features and not policy.public_features:
        yield (
            "the plan protects labels alone, and takes all else in a row as public; set policy.public-features = true "
            "if everybody may know it, else do not serve this plan"
        )
    allowed = {str(account.unit) for account in settings.allowances.proved}
    for promise in agreement.promises:
        if promise.trusted and settings.allowances.trusted is None:
            yield (
                "answers of this plan have no noise of this site's own, its aggregator is trusted with them; write "
                "[allowance.trusted] if it should be"
            )
        if not promise.trusted and not allowed:
            yield f"no account allows answers with noise of this site's own; write [allowance.{promise.unit}]"


def _of_sums(settings: Settings, agreement: Agreement, key: EllipticCurvePrivateKey) -> Iterator[str]:
    """Why a plan's secure sums hide less than this site's configuration says."""
    yield from _of_colluders(settings.policy.colluding, agreement)
    try:
        roster, place = roster_of(agreement), agreement.position(settings.name)
        sum_plan(agreement, roster, b"", 1)
        if roster.keys[place] != raw_public(sums_key(key)):
            yield (
                f"the plan's key for secure sums of '{settings.name}' is not this site's; send its coordinator the "
                ".pub file of this one, with both of its lines"
            )
    except InputError as error:
        yield str(error)


def _of_colluders(own: float, agreement: Agreement) -> Iterator[str]:
    theirs = agreement.terms
    if theirs.colluders < (most := replace(theirs, colluding=own).colluders):
        yield (
            f"the plan's secure sums hide a site's part from {theirs.colluders} colluding sites of {theirs.parties}, "
            f"and by policy.colluding = {own:g} {most} may collude; lower it, or ask for a plan whose "
            "parties.colluding is as large"
        )


Rule = Literal["each", "plan", "auto"]
PENDING, APPROVED, DENIED = "pending", "approved", "denied"

_DIGITS = 12  # of an id
_MOST = 100  # that wait at a time
_REMEDY = "remove it and approve again"


@dataclass(frozen=True)
class Decision:
    """What stands about one plan or exchange: its id, its state, and who decided it and when, in seconds since 1970."""

    id: str
    state: str
    plan: str
    exchange: str | None
    by: str | None = None
    time: float | None = None


_HINTS = get_type_hints(Decision)


class Approvals:
    """The decisions of a site, in a folder. `rule` is "plan", "each" exchange of it, or "auto": nobody need decide.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     approvals = Approvals(Path(folder), "plan")
        ...     waiting = approvals.asked(bytes(32), bytes(16))
        ...     _ = approvals.decide(waiting.id, APPROVED, "ada")
        ...     waiting.state, approvals.asked(bytes(32), bytes(16)).state
        ('pending', 'approved')
    """

    def __init__(self, folder: Path, rule: Rule) -> None:
        self.folder, self.rule = folder, rule
        folder.mkdir(mode=0o700, exist_ok=True)

    def asked(self, plan: bytes, exchange: bytes | None) -> Decision:
        """What stands about a plan, or an exchange of it; one that nobody has decided on waits from now on.

        Raises `InputError` where too many wait, and for one with the id of another.
        """
        of = exchange if self.rule == "each" else None
        name = hashlib.sha256(plan + (of or b"")).hexdigest()[:_DIGITS]
        if self.rule == "auto":
            return Decision(name, APPROVED, plan.hex(), None, "nobody: policy.approve is auto")
        known, exchange_of = self._read(name), None if of is None else of.hex()
        if known is None:
            if len(self.known(PENDING)) >= _MOST:
                raise InputError(f"{_MOST} already wait for approval; approve or deny some")
            known = Decision(name, PENDING, plan.hex(), exchange_of)
            self._write(known)
        if (known.plan, known.exchange) != (plan.hex(), exchange_of):
            raise InputError(
                f"'{name}' is also the id of another plan or exchange, which happens to nobody who does not try out "
                "millions of them; ask whoever has made this one, and do not serve it"
            )
        return known

    def known(self, state: str) -> list[Decision]:
        """All of one state, the oldest first."""
        paths = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        return [found for path in paths if (found := self._read(path.stem)) and found.state == state]

    def decide(self, name: str | None, state: str, by: str) -> Decision:
        """Approve or deny; without a name the only one that waits. Raises `InputError` for one that is not known."""
        waiting = [one.id for one in self.known(PENDING)]
        if name is None and len(waiting) != 1:
            several = f"{', '.join(waiting)} wait for approval; name one of them"
            raise InputError(several if waiting else "nothing waits for approval")
        known = self._read(name or waiting[0])
        if known is None:
            listed = ", ".join(waiting) or "nothing"
            raise InputError(f"'{name:.40}' is not known here; waiting for approval: {listed}")
        decided = Decision(known.id, state, known.plan, known.exchange, by, round(time.time(), 3))
        self._write(decided)
        return decided

    def _read(self, name: str) -> Decision | None:
        path = self.folder / f"{name}.json"
        if not re.fullmatch(r"[0-9a-f]{12}", name) or not path.exists():
            return None
        content = read_object(path, _REMEDY)
        with refusing(f"{path} is damaged; {_REMEDY}"):
            if {*content} != {*_HINTS}:
                raise ValueError("other fields")
            found = Decision(**{field: typed(hint, content[field], field) for field, hint in _HINTS.items()})
            if not 0 <= (found.time or 0) <= LAST_SECOND:
                raise ValueError("no time of people's")
        return found

    def _write(self, decision: Decision) -> None:
        write_lasting(self.folder / f"{decision.id}.json", json.dumps(vars(decision)).encode())
