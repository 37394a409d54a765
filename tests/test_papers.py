"""The scripts under papers/ at a small size: their files, and what their figures claim."""

import csv

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

from papers.score2013 import bandwidth, fig_risk, theorem


def run(script, folder, *options):
    """Run a script and return its table as strings."""
    name = script.__name__.rpartition(".")[2]
    script.main(["--out", str(folder), *options])
    assert (folder / f"{name}.png").stat().st_size > 10_000
    with open(folder / f"{name}.csv") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def risk_rows(tmp_path_factory):
    return run(fig_risk, tmp_path_factory.mktemp("fig_risk"), "--size", "50000")


def curves(rows, gamma):
    mine = [row for row in rows if float(row["gamma"]) == gamma]
    return {name: np.array([float(row[name]) for row in mine]) for name in ("threshold", "true", "score", "jansen")}


@pytest.mark.parametrize("gamma", [0.5, 0.8, 1.0])
def test_the_minimum_of_score_costs_little_more_than_the_least_risk(risk_rows, gamma):
    found = curves(risk_rows, gamma)
    assert found["true"][np.argmin(found["score"])] < 1.02 * found["true"].min()
    # Noise sqrt(2 / P) = 0.006 from the squares and as much again from the kernel; bias alpha t^2 / 2 at h = 0.16.
    assert np.abs(found["score"] - found["true"]).max() < 0.05


def test_jansen_finds_a_minimum_that_is_not_there_when_all_means_matter(risk_rows):
    found = curves(risk_rows, 0.5)
    k = np.argmin(found["jansen"])
    assert found["jansen"][k] < 0.75 * found["true"][k]
    assert found["true"][k] > 1.05 * found["true"].min()


def test_the_power_law_has_the_signal_to_noise_ratio_of_the_paper():
    x0 = fig_risk.power_law(1000, 0.8)
    assert 10 * np.log10(np.mean(x0**2)) == pytest.approx(5.65)
    assert x0[0] / x0[99] == pytest.approx(100**0.8)


@pytest.fixture(scope="module")
def theorem_rows(tmp_path_factory):
    return run(theorem, tmp_path_factory.mktemp("theorem"), "--largest", "1000", "--draws", "400")


@pytest.mark.parametrize("signal", theorem.SIGNALS)
@pytest.mark.slow
def test_bias_and_variance_fall_at_the_rate_of_the_theorem(theorem_rows, signal):
    """-2/3 for both; the variance holds a part of order 1/P besides, so that its rate up to 1e7 lies below -2/3."""
    rows = [
        {k: v if k in ("signal", "source") else float(v) for k, v in row.items()}
        for row in theorem_rows
        if row["source"] == "exact"
    ]
    slopes = {quantity: theorem.rate(rows, signal, quantity) for quantity in theorem.QUANTITIES}
    assert slopes["dof_bias"] == pytest.approx(-2 / 3, abs=0.002)
    assert slopes["score_bias"] == pytest.approx(-2 / 3, abs=0.002)
    assert -1 < slopes["score_variance"] < slopes["dof_variance"] < -2 / 3 + 0.002
    late = [{"signal": signal, "source": "exact", "P": 10**k, **theorem.exact(10**k, signal)} for k in range(9, 13)]
    for quantity in theorem.QUANTITIES:
        assert theorem.rate(late, signal, quantity, 1e9) == pytest.approx(-2 / 3, abs=0.005)


@pytest.mark.slow
def test_the_energy_alone_is_not_consistent_where_the_condition_fails(theorem_rows):
    last = [row for row in theorem_rows if row["P"] == "10000000" and row["signal"] == "fails"][-1]
    assert float(last["energy_variance"]) > 0.03
    assert float(last["score_variance"]) < 1e-5


@pytest.mark.slow
def test_exact_and_simulated_agree(theorem_rows):
    """A variance from n draws has a relative error of sqrt(2/n), 7% here; a mean one of sqrt(variance/n)."""
    simulated = [row for row in theorem_rows if row["source"] == "simulated"]
    assert len(simulated) == 6
    for row in simulated:
        exact = theorem.exact(int(row["P"]), row["signal"])
        for name in ("dof", "score"):
            variance = exact[f"{name}_variance"]
            assert float(row[f"{name}_variance"]) == pytest.approx(variance, rel=0.3)
            assert float(row[f"{name}_bias"]) == pytest.approx(exact[f"{name}_bias"], abs=4.5 * np.sqrt(variance / 400))


@pytest.mark.slow
def test_the_mixture_and_the_plug_in_beat_the_bandwidth_of_the_paper_at_a_thousand_entries(tmp_path):
    rows = run(bandwidth, tmp_path, "--sizes", "1000", "--draws", "10")
    for signal in bandwidth.SIGNALS:
        rmse, density = (
            {row["method"]: float(row[column]) for row in rows if row["signal"] == signal}
            for column in ("rmse", "density")
        )
        assert rmse["mixture"] < 0.8 * rmse["paper"]
        assert rmse["plug-in"] < 0.8 * rmse["paper"]
        assert density["mixture"] < 0.5 * density["paper"]
        assert density["known density"] == 0
