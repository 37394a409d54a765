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


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command line in a folder of its own; give the exit code, standard output and standard error."""
    cli = pytest.importorskip("scorethresh.cli")
    monkeypatch.chdir(tmp_path)

    def run(*argv):
        capsys.readouterr()
        code = cli.main([str(a) for a in argv])
        return code, *capsys.readouterr()

    return run
