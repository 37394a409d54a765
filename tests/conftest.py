import hypothesis
import numpy as np
import pytest

# No deadline: machines that run tests in parallel stall now and then.
hypothesis.settings.register_profile("default", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.load_profile("default")


@pytest.fixture
def rng():
    return np.random.default_rng(20130715)
