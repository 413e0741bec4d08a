import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
from federation.numerics.rows import keep_freed_memory
if {keep}:
    keep_freed_memory()
def touch():
    first, second = np.empty(3 << 20, np.uint8), np.empty(3 << 20, np.uint8)
    first[:] = second[:] = 1
for _ in range(3):
    touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(keep):
    run = subprocess.run([sys.executable, "-c", FAULTS.format(keep=keep)], capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="tunes the allocator of Linux")
def test_memory_that_was_freed_is_not_fetched_again():
    assert faults(keep=True) < 100 < faults(keep=False)
