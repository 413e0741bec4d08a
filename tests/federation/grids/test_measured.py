"""A grid with a clock answers as the inline one does, and counts what crosses it."""

from support.worlds import run

from federation.engines.inline import CLIENT_APP, MeasuredGrid, open_grid


def test_it_releases_the_same_bytes_and_counts_messages_seconds_and_bytes(make_plan):
    plan = make_plan(individual=10)
    heard = []
    grid = MeasuredGrid(CLIENT_APP, lambda answered, sent: heard.append((answered, sent)))
    files, summary = run(grid, plan, 10)
    assert (files, summary) == run(open_grid("inline"), plan, 10)
    assert grid.messages == len(heard) == heard[-1][1] == 4 * 2  # votes and scores, of four nodes
    assert grid.answering > 0
    [per_party, *_] = summary["bytes_per_party"]["soft_vote"]
    assert plan.parties * per_party < grid.sent < plan.parties * (per_party + 200)
    once = MeasuredGrid(CLIENT_APP)
    run(once, plan, 40)
    assert once.asked == grid.asked  # of one node's questions, however many nodes
    assert once.messages == 2
