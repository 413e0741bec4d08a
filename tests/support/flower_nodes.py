"""Flower's nodes as an aggregator meets them, in this process: scattered ids, joining one by one."""

from flwr.app import Context, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.run import Run

from federation.engines.nodes import handle
from parties.app import app

RUN = 77


class ScatteredGrid(Grid):
    """Nodes with scattered ids that join one by one; `configs` are their node configurations."""

    def __init__(self, configs):
        self._contexts = {
            10**6 - 7 * number: Context(RUN, 10**6 - 7 * number, config, RecordDict(), {})
            for number, config in enumerate(configs)
        }
        self._joined, self._inbox, self._sent = 0, {}, 0

    def set_run(self, run):
        pass

    @property
    def run(self):
        return Run.create_empty(RUN)

    def create_message(self, *arguments, **options):
        raise AssertionError("deprecated by Flower")

    def get_node_ids(self):
        self._joined += 1
        return list(self._contexts)[: self._joined]

    def push_messages(self, messages):
        ids = []
        for message in messages:
            self._sent += 1
            message.metadata.__dict__["_message_id"] = f"m{self._sent}"
            self._inbox[f"m{self._sent}"] = message
            ids.append(f"m{self._sent}")
        return ids

    def pull_messages(self, message_ids):
        taken = [self._inbox.pop(identifier) for identifier in list(message_ids) if identifier in self._inbox]
        return [handle(app, message, self._contexts[message.metadata.dst_node_id]) for message in taken]

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(self.push_messages(messages))


def partitions(count):
    return [{"partition-id": number, "num-partitions": count} for number in (*range(1, count), 0)]
