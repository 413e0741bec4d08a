"""The engine of real sites: queries leave as signed messages, and sealed responses return.

For the aggregator, `LetterGrid` is an engine like any other. It drops a message without the site's signature, which
costs no other site anything. `Pulling` fetches the replies.
"""

import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass

from flwr.app import ConfigRecord, Error, Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid
from flwr.supercore.run import Run

from aggregator.exchange.exchange import Exchange
from federation.contract.errors import InputError, refusing
from federation.signed_messages.messages import LETTER, SealedAnswer, Status, packet_of, read_reply

_PAUSE = 0.5  # seconds between two tries of a hand
# seconds that replies are waited for at a time
_AWAY = 3.0  # seconds before a letter is tried again that was not taken
_AGAIN = 10.0  # seconds before a site is asked again that was busy, or away, or sent something else
_AFTER_THE_END = 120.0  # seconds for a question that is asked when sites were waited for long enough
_SAID = {Status.REFUSED: "the site refused", Status.EXPIRED: "the exchange has closed"}
_log = logging.getLogger(__name__)


@dataclass
class _Asked:
    """A question to one site: where it stands in the exchange, and by which message it is on its way."""

    number: int
    packet: bytes
    site: int
    message: Message
    until: float
    due: float = 0.0
    sent: str | None = None


class LetterGrid(Grid):  # type: ignore[misc, unused-ignore]  # flwr is not typed
    """Sites by number from 1; `nodes` are Flower's ids of them, in the order of the agreement.

    `patience` is how many seconds a site may take for a question, and `wait` for how many seconds sites are waited for
    in all. Who takes longer has not answered. A site where somebody has yet to decide is waited for to the end. Nobody
    is waited for twice, and whoever answers has some time after the end, too: else who is silent for long enough would
    leave all others none for the questions that follow.
    """

    def __init__(self, grid: Grid, exchange: Exchange, nodes: Sequence[int], patience: float, wait: float) -> None:
        self._grid, self._exchange, self._nodes, self._patience = grid, exchange, nodes, patience
        self._end = time.monotonic() + wait
        self._contents: list[RecordDict] = []  # of the questions, in the order in which they were first asked
        self._pending: dict[str, _Asked] = {}
        self._late: set[int] = set()  # sites that were waited for in vain
        self._pulling = Pulling(grid, len(nodes))

    def set_run(self, run: Run) -> None:
        """Describe the run to the underlying grid."""
        self._grid.set_run(run)

    @property
    def run(self) -> Run:
        """The run's description."""
        return self._grid.run

    def get_node_ids(self) -> Iterable[int]:
        """Numbers of all sites."""
        return range(1, len(self._nodes) + 1)

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        """A question to one site. The same content is the same question, which all sites get under one number."""
        if all(content is not known for known in self._contents):
            self._contents.append(content)
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Write questions down, and send them to those that have not answered them; returns names of them."""
        names = []
        for message in messages:
            number = next(i for i, known in enumerate(self._contents) if known is message.content)
            site = message.metadata.dst_node_id - 1
            kind = message.metadata.message_type.removeprefix("query.")
            packet = self._exchange.question(number, packet_of(kind, message.content))
            name = f"{number}-{site}"
            message.metadata.__dict__["_message_id"] = name
            self._pending[name] = _Asked(number, packet, site, message, self._until(site))
            names.append(name)
        return names

    def _until(self, site: int) -> float:
        """When a site that is asked now has taken too long."""
        now = time.monotonic()
        if site == len(self._exchange.agreement.sites):  # a second server: nothing comes of the rest without it
            return max(self._end, now + _AFTER_THE_END)
        if site in self._late:
            return now
        return min(now + self._patience, self._end if now < self._end else now + _AFTER_THE_END)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """What has come for some questions; letters are sent, or sent again, as they are due."""
        asked = {name: self._pending[name] for name in message_ids if name in self._pending}
        replies = [reply for name, one in asked.items() if (reply := self._known(one)) is not None]
        if not replies:
            self._send([one for one in asked.values() if one.sent is None and one.due <= time.monotonic()])
            replies = self._arrived(asked.values())
        for reply in replies:
            del self._pending[reply.metadata.reply_to_message_id]
        return replies

    def close(self) -> None:
        """Take no more letters."""
        self._pulling.close()

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """As of any grid. Nobody asks so here."""
        raise NotImplementedError

    def _known(self, one: _Asked) -> Message | None:
        """The reply that came before, or the one of who took too long."""
        packet = self._exchange.reply(one.number, one.packet, one.site) if one.sent is None else None
        if packet is not None:
            return self._reply(one, packet)
        if time.monotonic() > one.until:
            self._late.add(one.site)
            return self._left_out(one, "the site did not answer in time")
        return None

    def _left_out(self, one: _Asked, reason: str) -> Message:
        self._exchange.mark_left_out(one.number, one.site)
        return Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason), reply_to=one.message)

    def _send(self, due: Sequence[_Asked]) -> None:
        letters = []
        for one in due:
            letter = self._exchange.letter(one.number, one.packet, one.site)
            content = RecordDict({LETTER: ConfigRecord(asdict(letter))})
            kind = one.message.metadata.message_type
            letters.append(self._grid.create_message(content, kind, self._nodes[one.site], group_id=""))
        for one, sent in zip(due, self._grid.push_messages(letters) if letters else [], strict=True):
            one.sent = sent or None  # Flower takes no letter for a site that has never been there: an empty name
            if not sent:
                one.due = time.monotonic() + _AWAY
            else:
                self._pulling.expect(one.site, sent)

    def _arrived(self, asked: Collection[_Asked]) -> list[Message]:
        by_sent = {one.sent: one for one in asked if one.sent is not None}
        found = []
        for sent, message in self._pulling.arrived(_PAUSE):
            one = by_sent.get(sent)
            if one is None:  # of a site that was left out
                continue
            one.sent = None
            try:
                answer = _letter(message)
                packet = self._exchange.opened_reply(answer, one.number, one.packet, one.site)
                status, _ = read_reply(packet)
            except InputError as error:
                # Whoever carries letters may put others in their place; the site's own is still asked for.
                name = self._exchange.agreement.members[one.site].name
                _log.warning("site '%s': dropped a letter: %s", name, error)
                one.due = time.monotonic() + _AGAIN
                continue
            if status is Status.BUSY:
                one.due, one.until = time.monotonic() + _AGAIN, max(one.until, self._end)
                continue
            if status is Status.ANSWER:
                self._exchange.keep(answer, one.number, one.packet, one.site)
            found.append(self._reply(one, packet))
        return found

    def _reply(self, one: _Asked, packet: bytes) -> Message:
        status, records = read_reply(packet)
        return self._left_out(one, _SAID[status]) if status in _SAID else Message(records, reply_to=one.message)


def _letter(message: Message | Exception) -> SealedAnswer:
    """The letter in a message. Raises `InputError` for any other message, and where none could be fetched."""
    if isinstance(message, Exception):
        raise InputError(f"it could not be fetched: {message!s:.100}") from message
    if message.has_error():
        raise InputError(f"an error in place of a letter: {message.error.reason!r:.100}")
    with refusing("no letter"):
        parts = {str(name): part for name, part in message.content[LETTER].items()}
        if not all(isinstance(part, bytes) for part in parts.values()):
            raise ValueError("a part that is not bytes")
        return SealedAnswer(**parts)


_MOST_HANDS = 32  # sites beyond so many share hands, and so the delays of those that share one with them
_REST = 30.0  # seconds that a hand waits for the rest of a reply, and twice as many after each that took longer


@dataclass
class _Hand:
    """A thread, for how many seconds it may take over one reply, and of which letter it is fetching that since when."""

    rest: float
    fetching: str = ""
    since: float = 0.0


class Pulling:
    """The replies to letters that are out, by Flower's ids of the messages that carry them.

    Several threads fetch replies, so a stalled or malformed reply does not delay other sites. Flower's grid fetches
    replies one after the other. It waits three minutes for the rest of a reply that has begun, for instance from a site
    that is killed while it sends. An exception over one reply loses the replies that were fetched before.
    """

    def __init__(self, grid: Grid, sites: int) -> None:
        self._grid = grid
        self._waiting: defaultdict[int, set[str]] = defaultdict(set)
        self._closed = threading.Event()
        self._came: queue.SimpleQueue[tuple[str, Message | Exception]] = queue.SimpleQueue()
        self._hands = [_Hand(_REST) for _ in range(min(sites, _MOST_HANDS))]
        for place, hand in enumerate(self._hands):
            self._set_to_work(place, hand)

    def expect(self, site: int, sent: str) -> None:
        """A letter has gone to a site."""
        self._waiting[site % len(self._hands)].add(sent)

    def arrived(self, seconds: float) -> list[tuple[str, Message | Exception]]:
        """What has come, each with the id of its letter, after at most so many seconds; what failed is an exception."""
        self._give_up()
        found = []
        try:
            found.append(self._came.get(timeout=seconds))
            while True:
                found.append(self._came.get_nowait())
        except queue.Empty:
            return found

    def close(self) -> None:
        """Fetch nothing more."""
        self._closed.set()

    def _set_to_work(self, place: int, hand: _Hand) -> None:
        self._hands[place] = hand
        threading.Thread(target=self._pull, args=(place, hand), daemon=True).start()

    def _give_up(self) -> None:
        """Put another in the place of each hand that takes too long over a reply: what it brings yet is dropped."""
        for place, hand in enumerate(self._hands):
            sent = hand.fetching
            if sent and time.monotonic() > hand.since + hand.rest:
                self._waiting[place].discard(sent)
                self._came.put((sent, TimeoutError(f"its rest did not come in {hand.rest:g} s")))
                self._set_to_work(place, _Hand(2 * hand.rest))

    def _pull(self, place: int, hand: _Hand) -> None:
        while not self._closed.wait(_PAUSE):
            for sent in [*self._waiting[place]]:
                came: list[Message | Exception]
                hand.since, hand.fetching = time.monotonic(), sent
                try:
                    came = list(self._grid.pull_messages([sent]))
                except Exception as error:  # whatever a hostile site sends, it must not end the run
                    came = [error]
                if self._hands[place] is not hand:
                    return
                hand.fetching = ""
                if came:
                    self._waiting[place].discard(sent)
                    self._came.put((sent, came[0]))
