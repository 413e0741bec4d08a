"""What a site believes of those who add up secure sums; all of it from its own configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from federation.contract.errors import InputError
from federation.contract.trust import COLLUDING
from federation.secure_aggregation.plan import ADVERSARY, SAID, Servers, Terms
from federation.signed_messages.aggregation_messages import masks_for, roster_of
from federation.signed_messages.agreement import Agreement

_RISK: dict[Servers, str] = {
    "one": "",
    "one_semi_honest": ": a coordinator that cheats in the sum could read this site's part",
    "two": ": the coordinator and the second server could together read this site's part",
}


@dataclass(frozen=True)
class Belief:
    """`colluding` is the largest share of the sites that may collude with whoever asks: secure sums must hide this
    site's part from them all. `servers` are the kinds of servers that may add up, and `seconds` the keys of second
    servers, as hexadecimal digits, that are known to be those of somebody else than the coordinator.
    """

    colluding: float = COLLUDING
    servers: tuple[Servers, ...] = ("one",)
    seconds: tuple[str, ...] = ()

    def objections(self, agreement: Agreement) -> Iterator[str]:
        """Why the servers of a plan's secure sums are not believed, in sentences; nothing where they are."""
        if agreement.servers not in self.servers:
            allowed = ", ".join(f'"{one}"' for one in self.servers)
            yield (
                f"the plan's secure sums are added up by {SAID[agreement.servers]}{_RISK[agreement.servers]}; "
                f'policy.servers allows {allowed}: write "{agreement.servers}" there, too, if this site believes that, '
                "or do not serve this plan"
            )
        second = agreement.second
        if second is not None and second.masks and second.masks not in self.seconds:
            name = second.name
            yield (
                f"the plan's second server '{name}' has the key {second.masks}, which is not in "
                f"policy.second-servers; compare it by telephone with '{name}', not with the coordinator, and write it "
                "there if it is theirs"
            )

    def terms(self, agreement: Agreement) -> Terms:
        """What this site insists on in every sum of a plan, if its servers are believed.

        Raises `InputError` where the plan lacks keys of sites.
        """
        return Terms(roster_of(agreement), self.colluding, ADVERSARY[agreement.servers], masks_for(agreement))

    def require(self, agreement: Agreement) -> None:
        """Raises `InputError` for servers that are not believed."""
        if why := next(self.objections(agreement), ""):
            raise InputError(why)
