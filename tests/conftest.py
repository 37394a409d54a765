import sys

import hypothesis
import numpy as np
import pytest

# No deadline: machines that run tests in parallel stall now and then.
hypothesis.settings.register_profile("default", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.load_profile("default")


@pytest.fixture
def rng():
    return np.random.default_rng(20130715)


@pytest.fixture(autouse=True)
def _close_figures():
    """Matplotlib warns of more than 20 open figures, whichever tests left them."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
