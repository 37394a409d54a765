import hypothesis
import numpy as np
import pytest

# No deadline: the first example compiles loops, which may take seconds.
hypothesis.settings.register_profile("default", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.load_profile("default")


@pytest.fixture
def rng():
    return np.random.default_rng(20130715)
