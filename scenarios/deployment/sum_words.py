"""What the secure sums of a plan rest on, in words: for its coordinator, and for whoever decides at a site."""

from __future__ import annotations

import math
from collections.abc import Iterator

from federation.contract.trust import colluders
from federation.signed_messages.agreement import Agreement


def promised(agreement: Agreement) -> str:
    """Behind a promise: what it holds by, as the coordinator is told."""
    sites = len(agreement.sites)
    most = f"at most {colluders(sites, agreement.colluding)} of {sites} of them collude with"
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
    sites, corrupt = len(agreement.sites), colluders(len(agreement.sites), agreement.colluding)
    least, whom, and_that = math.ceil(agreement.quorum * sites), "the coordinator", ""
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
        f"secure sums: of {least} of {sites} sites at least, or nothing can be read; what is hidden stays so while at "
        f"most {corrupt} of them collude with {whom} (policy.colluding: {colluding:g} may){and_that}"
    )
    if compared(agreement):
        yield (
            "compare the digest of the plan, all its digits, with the OTHER SITES by telephone, not only with the "
            "coordinator: one that shows each site another list of keys could read their answers"
        )
