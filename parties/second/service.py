"""The service of a second server: a site's, without a table. What it answers leaves at once, as no row is in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federation.contract.errors import InputError
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import load_key
from parties.second.server import SecondServer
from parties.site.policy import objections_of_second
from parties.site.serving import Serving
from parties.site.settings import SecondSettings
from parties.site.state import State


@dataclass
class SecondService(Serving):
    """One second server at work."""

    settings: SecondSettings
    agreement: Agreement
    state: State
    key: EllipticCurvePrivateKey
    server: SecondServer = field(init=False)

    def __post_init__(self) -> None:
        if wrong := [*objections_of_second(self.settings, self.agreement, self.key)]:
            raise InputError("\n".join(wrong))
        self._recall()
        self.server = SecondServer(
            self.settings.name,
            self.key,
            self.agreement,
            self.journal,
            self.state.answers,
            self._agreed,
            self.settings.policy.colluding,
        )

    @property
    def correspondent(self) -> SecondServer:
        """Who answers letters here."""
        return self.server


def run(settings: SecondSettings, agreement: Agreement) -> None:
    """Serve until a signal says to stop. Raises `InputError` where the configuration or the plan forbid it."""
    state = State.found(settings.state)
    with state.owned():
        key = load_key(settings.connection.key, EllipticCurvePrivateKey)  # type: ignore[type-abstract]
        service = SecondService(settings, agreement, state, key)
        service.run(f"second server '{settings.name}' of the plan '{agreement.name}': ready")
