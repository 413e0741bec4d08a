import numpy as np

from aggregator.ensembles.sessions import two_rows


def test_binary_weights_keep_their_decisions(rng):
    weights, rows = rng.normal(size=(5, 3)), rng.normal(size=(40, 3))
    doubled = two_rows(weights)
    assert doubled.shape == (5, 2, 3)
    for w, pair in zip(weights, doubled, strict=True):
        np.testing.assert_array_equal((rows @ pair.T).argmax(axis=1), rows @ w > 0)
