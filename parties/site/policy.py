"""Whether a site's own configuration allows what a plan asks of it; all before anything is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federation import __version__
from federation.contract.errors import InputError, nearest_name
from federation.contract.trust import colluders
from federation.signed_messages.aggregation_messages import roster_of, sum_plan
from federation.signed_messages.agreement import Agreement, unlike
from federation.signed_messages.keys import fingerprint, masks_key, raw_public, sums_key
from parties.guard.registry import question_type
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
    theirs, sites = agreement.colluding, len(agreement.sites)
    if colluders(sites, theirs) < colluders(sites, own):
        yield (
            f"the plan's secure sums hide a site's part from {colluders(sites, theirs)} colluding sites of {sites}, "
            f"and by policy.colluding = {own:g} {colluders(sites, own)} may collude; lower it, or ask for a plan "
            "whose parties.colluding is as large"
        )
