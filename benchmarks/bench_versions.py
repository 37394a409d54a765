"""Time and memory of this version beside another checkout, in one run.

    git worktree add ../before COMMIT
    python benchmarks/bench_versions.py ../before/src

The two versions take turns, each in processes of their own; the least time counts. Ratios above 1 mean that this
version is slower or larger. That results are finite is asserted; how they differ is for the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parents[1] / "src"


def cases():
    """Yield a name, a call and how often to repeat it."""
    import pywt

    import scorethresh as st

    rng = np.random.default_rng(0)
    picture = pywt.data.camera() + rng.normal(0.0, 20.0, (512, 512))
    large = np.tile(picture, (4, 4))
    colour = np.stack([picture] * 3, axis=-1) + rng.normal(size=(512, 512, 3))
    volume, signal = rng.normal(size=(96, 96, 96)), rng.normal(size=65536)
    yield "denoise 512 x 512", lambda: st.denoise(picture, sigma=20.0), 4
    yield "  level unknown", lambda: st.denoise(picture), 3
    yield "  bands", lambda: st.denoise(picture, sigma=20.0, choose="bands"), 6
    yield "  complex", lambda: st.denoise(picture + 1j * picture.T, sigma=20.0), 2
    yield "  colour", lambda: st.denoise(colour, sigma=20.0, channel_axis=-1), 2
    yield "denoise 2048 x 2048", lambda: st.denoise(large, sigma=20.0), 2
    yield "denoise 96^3", lambda: st.denoise(volume, sigma=1.0), 2
    yield "denoise 65536", lambda: st.denoise(signal, sigma=1.0), 3
    for size in (256, 1024, 65536):
        y = rng.normal(size=size)
        y[: size // 50] += 5
        yield f"select_threshold {size}", lambda y=y: st.select_threshold(y, sigma=1.0).estimate, 15
        yield "  score", lambda y=y: st.select_threshold(y, sigma=1.0, method="score").estimate, 15


def worker() -> None:
    """Print the least processor and wall times of all cases, and the memory that they took at most."""
    import resource

    found = {}
    for name, call, repeats in cases():
        assert np.isfinite(call()).all()
        times = []
        for _ in range(repeats):
            start = time.process_time(), time.perf_counter()
            call()
            times.append((time.process_time() - start[0], time.perf_counter() - start[1]))
        found[f"{len(found):2d} {name}"] = [*np.min(times, axis=0)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"times": found, "memory": memory}))


def run(source: Path) -> dict:
    environment = os.environ | {"PYTHONPATH": str(source)}
    out = subprocess.run([sys.executable, __file__, "--worker"], env=environment, check=True, capture_output=True)
    return json.loads(out.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, nargs="?", help="the src folder of another checkout")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker()
        return
    if arguments.other is None or not (arguments.other / "scorethresh").is_dir():
        parser.error(f"there is no package in {arguments.other}. Name the src folder of a checkout.")
    rounds = [(run(HERE), run(arguments.other)) for _ in range(arguments.rounds)]
    print(f"{'':<26} {'processor, ms':>14} {'ratio':>6} {'wall, ms':>10} {'ratio':>6}")
    for name in rounds[0][0]["times"]:
        ours, theirs = (np.min([pair[k]["times"][name] for pair in rounds], axis=0) for k in (0, 1))
        ratio = ours / theirs
        print(f"{name[3:]:<26} {1e3 * ours[0]:14.1f} {ratio[0]:6.2f} {1e3 * ours[1]:10.1f} {ratio[1]:6.2f}")
    ours, theirs = (min(pair[k]["memory"] for pair in rounds) for k in (0, 1))
    print(f"{'largest memory, MB':<26} {ours:14.0f} {ours / theirs:6.2f}")


if __name__ == "__main__":
    main()
