"""Print what the denoiser does to clean data of many kinds, and to noisy ones, if nothing is said about the noise.

Usage: python benchmarks/bench_harm.py [--seed 1]. Development used seed 0. Photographs need scikit-image.
"""

from __future__ import annotations

import argparse

import numpy as np
from trust_cases import CASES, noisy

import scorethresh as st
from scorethresh.noise.level import sample_level

PICTURE_SIDE, SIGNAL_LENGTH = 192, 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    print("Levels over the level of the noise; rms error added to clean data over it; rms error after over before.")
    print(f"{'case':16s} {'clean':>7s} {'noisy':>7s} {'added':>7s} {'after':>7s}")
    for name, case in CASES.items():
        try:
            clean = case.draw(PICTURE_SIDE if case.picture else SIGNAL_LENGTH, seed).astype(float)
        except ModuleNotFoundError as missing:
            print(f"{name:16s} needs {missing.name}")
            continue
        y = noisy(clean, case.noise, seed)
        added = np.sqrt(np.mean((st.denoise(clean) - clean) ** 2)) / case.noise
        after = np.sqrt(np.mean((st.denoise(y) - clean) ** 2) / np.mean((y - clean) ** 2))
        levels = sample_level(clean) / case.noise, sample_level(y) / case.noise
        print(f"{name:16s} {levels[0]:7.3f} {levels[1]:7.3f} {added:7.3f} {after:7.3f}")


if __name__ == "__main__":
    main()
