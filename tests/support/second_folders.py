"""The folder of a second server as `federation party init` leaves it, with a sealed plan of three sites, for tests."""

from pathlib import Path

from support.letter_sites import deployed

from federation.signed_messages.keys import save_key
from parties.site.state import State
from scenarios.deployment.site_draft import second_draft

SECOND = "ombud"


def second_folder(folder: Path) -> Path:
    """Makes it; returns its configuration."""
    folder.mkdir(exist_ok=True)
    options = {"protect": "row", "trust": "secure"}
    made, keys = deployed(
        folder, second=SECOND, kind="mean_operator", options=options, parties={"quorum": 1}, servers="two"
    )
    own = folder / SECOND
    own.mkdir(mode=0o700)
    save_key(own / "key", keys[SECOND])
    State.made(own / "state")
    (own / "plan.json").write_bytes((made.path / "plan.json").read_bytes())
    path = own / "second.toml"
    path.write_text(second_draft(made.invitation, SECOND))
    path.chmod(0o600)
    return path
