"""The service of a second server, which has no table: it answers at once, and asks people as a site does."""

from contextlib import nullcontext

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from support.second_folders import second_folder

from federation.contract.errors import InputError
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import load_key
from parties import helper_server as service
from parties.helper_server import SecondService
from parties.site import service as serving
from parties.site.settings import SecondSettings
from parties.site.state import State


def test_it_starts_without_a_table_and_waits_for_somebody_to_agree(tmp_path, monkeypatch):
    settings = SecondSettings.load(second_folder(tmp_path))
    served = []
    monkeypatch.setattr(serving, "Mailbox", lambda *known: None)
    monkeypatch.setattr(serving, "_stopping", lambda box: nullcontext())
    monkeypatch.setattr(SecondService, "serve", lambda made, box: served.append(made))
    service.run(settings, Agreement.load(settings.plan))
    [made] = served
    assert (made.correspondent.name, made.correspondent.position) == ("ombud", 3)
    head = type("Head", (), {"plan": made.agreement.digest, "exchange": bytes(16)})
    assert not made.correspondent.approved(head)
    events = [line["event"] for line in State.found(settings.state).journal(reading=True).lines]
    assert events == ["start", "stop"]


def test_a_plan_that_is_not_for_it_is_not_served(tmp_path):
    settings = SecondSettings.load(second_folder(tmp_path))
    key = load_key(settings.connection.key, EllipticCurvePrivateKey)
    closed = Agreement.load(settings.plan).model_copy(update={"closing": 0})
    with pytest.raises(InputError, match="the plan has closed"):
        SecondService(settings, closed, State.found(settings.state), key)
