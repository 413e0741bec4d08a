"""What a plan means for its second server, in words of people: it has no rows, and much rests on whom it tells what."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import load_key, masks_key, raw_public
from parties.site.policy import objections_of_second
from parties.site.settings import SecondSettings
from parties.site.state import State
from scenarios.deployment.site_words import Outlook, conclude, who


def outlook_of_second(settings: SecondSettings, agreement: Agreement) -> Outlook:
    """All that a second server has to know before it approves a plan; nothing is asked of anybody."""
    found, state = Outlook(), State.found(settings.state)
    key = load_key(settings.connection.key, EllipticCurvePrivateKey)  # type: ignore[type-abstract]
    found.lines += [*who(agreement), *_what(agreement, raw_public(masks_key(key)).hex())]
    found.errors += objections_of_second(settings, agreement, key)
    conclude(found, state, settings.policy.approve, agreement)
    return found


def _what(agreement: Agreement, masks: str) -> Iterator[str]:
    sites = len(agreement.sites)
    least = math.ceil(agreement.quorum * sites)
    yield "this is the second server of the plan's secure sums: it holds no rows, needs no table and spends nothing"
    yield (
        f"what leaves: of each sum, once, the sum of the masks of one list of sites, {least} of {sites} at least, each "
        "of which has signed that it takes part"
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
