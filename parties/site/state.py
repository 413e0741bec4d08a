"""The folder in which a site keeps what it must not forget, and of which one process at a time is the owner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from federation.contract.errors import InputError
from federation.contract.files import alone
from federation.signed_messages.keys import require_private
from parties.site.journal import Journal

JOURNAL = "journal.jsonl"
NEWEST = "newest state"  # event of a line: somebody said that no later copy of the state was ever served

_FILE = "file"  # of a line: the number that the file system gave to the journal's file


@dataclass(frozen=True)
class State:
    """A folder that only its owner may enter, with the journal, the answers, and what is known of tables and plans."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> State:
        """The folder, new or as it is."""
        for each in (folder, folder / "answers"):
            each.mkdir(mode=0o700, parents=each is folder, exist_ok=True)
        return cls(folder)

    @classmethod
    def found(cls, folder: Path) -> State:
        """The folder as it is. Raises `InputError` where it is not whole, or others may read it."""
        if not folder.is_dir():
            raise InputError(
                f"there is no folder {folder}, which knows what this site has spent; restore it, or correct 'state'"
            )
        require_private(folder)
        for path in folder.iterdir():
            require_private(path)
        answers = folder / "answers"
        if answers.is_dir() and any(answers.iterdir()) and not (folder / JOURNAL).exists():
            raise InputError(f"{folder / JOURNAL} is gone, and with it what this site has spent; restore it")
        return cls.made(folder)

    @property
    def answers(self) -> Path:
        """What has been answered, letter by letter."""
        return self.folder / "answers"

    def journal(self, reading: bool = False) -> Journal:
        """What has happened. To write in it takes being the `owned` one."""
        return Journal(self.folder / JOURNAL, reading)

    @property
    def place(self) -> dict[str, int]:
        """What a line says of the file that it is in: a copy of the file is another one."""
        path = self.folder / JOURNAL
        path.touch(mode=0o600)
        return {_FILE: path.stat().st_ino}

    def require_in_place(self, journal: Journal) -> None:
        """Refuse a copy of the folder: others may have been served since. Raises `InputError` that says what to type.

        A copy that was written into the same file, by `cp`, is not found out.
        """
        known = [line[_FILE] for line in journal.lines if _FILE in line]
        if known and known[-1] != self.place[_FILE]:
            raise InputError(
                f"{self.folder} is a copy, from a backup or another machine, and nobody knows what was spent since it "
                "was made; if it is the newest there is, and no other one is ever served, type: federation party "
                "newest-state SITE.toml"
            )

    def settle_newest(self, by: str) -> None:
        """Say that this copy of the folder is the newest one."""
        self.journal().add(NEWEST, by=by, **self.place)

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Be the one process that may write here. Raises `InputError` while another one is."""
        busy = f"another process is at work in {self.folder}; stop the site that runs there, or wait for it"
        with alone(self.folder / "instance.lock", busy):
            yield
