"""Data, rules and helpers that several test files share."""

import functools
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import scorethresh as st

RULES = [
    st.Hard(),
    st.Soft(),
    st.Firm(),
    st.Firm(3.5),
    st.Garrote(),
    st.Scad(),
    st.Scad(2.2),
    st.Bridge(),
    st.Bridge(0.1),
    st.Bridge(0.9),
]


def spikes(rng, size, fraction=0.05, height=5.0):
    """Noise of level 1, a fraction of it on top of spikes."""
    y = rng.normal(size=size)
    y[: int(fraction * size)] += height
    return y


def mixed(rng, size):
    """Noise, a tenth of it five times wider, and a few entries far out."""
    y = rng.normal(size=size)
    y[: size // 10] *= 5
    y[:3] = 0.0, 1e3, -1e6
    return rng.permutation(y)


class TwoSteps:
    """0, then half of y from the threshold on, then y from twice the threshold on; only the required methods."""

    def __repr__(self):
        return "TwoSteps()"

    def __call__(self, y, t):
        a = np.abs(y)
        return np.where(a >= 2 * t, y, np.where(a >= t, y / 2, 0.0))

    def derivative(self, y, t):
        a = np.abs(y)
        return np.where(a > 2 * t, 1.0, np.where(a > t, 0.5, 0.0))

    def jumps(self, t):
        return [(t, t / 2), (2 * t, t)]


class Opaque:
    """A rule as a user may write it: the three required methods, for one threshold at a time, around another rule."""

    def __init__(self, rule):
        self.rule = rule

    def __repr__(self):
        return f"Opaque({self.rule!r})"

    def __call__(self, y, t):
        return self.rule(y, t)

    def derivative(self, y, t):
        return self.rule.derivative(y, t)

    def jumps(self, t):
        assert np.ndim(t) == 0
        return self.rule.jumps(t)


def run_python(code, *options, **environment):
    """Run code in a fresh interpreter and return what it prints, split at white space; raise if it fails."""
    command = [sys.executable, *options, "-c", code]
    env = {**os.environ, **environment}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def texture(rng, shape, varies=0.5):
    """Return texture whose strength varies and whose spectrum does not."""
    f = np.sqrt(functools.reduce(np.add.outer, [np.fft.fftfreq(n) ** 2 for n in shape]))
    out, strength = (np.fft.ifftn(np.fft.fftn(rng.normal(size=shape)) * g).real for g in (1 / (0.03 + f), f < 0.03))
    return 40 * out / out.std() * np.exp(varies * strength / strength.std())


def noisy_step(shape=(48, 64), seed=5, sigma=12.0):
    """Two grey levels with noise, as a picture of 8 bits."""
    clean = np.where(np.indices(shape)[-1] < shape[-1] // 2, 60.0, 180.0)
    return np.clip(clean + np.random.default_rng(seed).normal(0, sigma, shape), 0, 255).astype(np.uint8)


def loaded(path):
    """The pixels of a picture."""
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image)


def fails(result, *words):
    """Check that nothing but one line on standard error came out, with these words in it."""
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


def browser_or_skip():
    """Return a browser without a window, driven by selenium; skip the test if there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium, which drives the browser, is not installed")
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, found in programs.items() if found is None]
    if missing:
        pytest.skip(
            f"no browser to try the page in: {' and '.join(missing)} missing (Debian: chromium chromium-driver)"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = programs["chromium"]
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1100,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(programs["chromedriver"]))
