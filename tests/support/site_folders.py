"""The folder of a site as `federation party init` leaves it, with a table and a plan, for tests."""

import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.exchanges import agreement_for
from support.questions import QUESTIONS

from federation.signed_messages.keys import fingerprint, new_site_key, save_key
from parties.site.state import State

ROWS = "".join(f"{i}.5,{i % 7},{i % 5},{'yes' if i % 3 else 'no'}\n" for i in range(40))

SITE = """
name = "north"
plan = "plan.json"
state = "state"
[connection]
key = "key"
[data]
file = "rows.csv"
table = "patients"
[policy]
aggregators = ["{aggregator}"]
protocols = ["class_ratio"]
[allowance.label]
epsilon = 1.5
[allowance.trusted]
epsilon = 1.0
"""


def site_folder(folder: Path, *, signing=None, questions=(QUESTIONS["votes"],), replaced=(), **changed) -> Path:
    """Makes the folder of the site `north`; returns its site.toml, in which texts were `replaced`."""
    signing, key = signing or Ed25519PrivateKey.generate(), new_site_key()
    changed = {"label": {"name": "ill", "classes": ["no", "yes", "maybe"]}, **changed}
    agreement = agreement_for(signing, [key.public_key()], *questions, **changed)
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "rows.csv").write_text("p,q,r,ill\n" + ROWS)
    (folder / "plan.json").write_text(json.dumps(agreement.model_dump(mode="json")))
    save_key(folder / "key", key)
    State.made(folder / "state")
    text = SITE.replace("{aggregator}", fingerprint(signing.public_key()))
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    path = folder / "site.toml"
    path.write_text(text)
    path.chmod(0o600)
    return path
