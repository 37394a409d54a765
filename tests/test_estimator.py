"""The scikit-learn face: the rules of that library, and that what is learnt is what the core functions choose."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import scorethresh as st
from scorethresh.sklearn import ScorePCA, ThresholdDenoiser


@parametrize_with_checks([ThresholdDenoiser(), ThresholdDenoiser(domain="coefficients", rule="soft")])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def spectra(rows=60, length=300, noise=0.2, seed=0):
    """Two lines per row, at places that vary from row to row, on a sloping ground."""
    rng = np.random.default_rng(seed)
    x = np.arange(length)
    at = rng.uniform(0.2 * length, 0.8 * length, (2, rows, 1))
    clean = sum(np.exp(-0.5 * ((x - a) / w) ** 2) for a, w in zip(at, (3, 8), strict=True)) + 0.3 * x / length
    return clean, clean + rng.normal(0.0, noise, clean.shape)


def mse(a, b):
    return float(np.mean((a - b) ** 2))


def test_rows_are_denoised_and_the_noise_level_is_found():
    """300 samples per row: some fifteen coefficients matter, so most of the noise must go."""
    clean, noisy = spectra()
    denoiser = ThresholdDenoiser().fit(noisy)
    assert denoiser.sigma_ == pytest.approx(0.2, rel=0.05)
    assert mse(denoiser.transform(noisy), clean) < 0.2 * 0.2**2


def test_what_was_learnt_serves_other_rows():
    _, seen = spectra(seed=1)
    clean, noisy = spectra(seed=2)
    unseen = ThresholdDenoiser().fit(seen).transform(noisy)
    assert mse(unseen, clean) < 1.1 * mse(ThresholdDenoiser().fit_transform(noisy), clean)


def test_short_rows_gain_from_each_other():
    clean, noisy = spectra(rows=200, length=48)
    together = ThresholdDenoiser(sigma=0.2).fit_transform(noisy)
    alone = np.stack([ThresholdDenoiser(sigma=0.2).fit_transform(row[None])[0] for row in noisy[:50]])
    assert mse(together[:50], clean[:50]) < mse(alone, clean[:50])


def test_coefficients_get_the_threshold_of_all_entries():
    y = np.random.default_rng(3).normal(size=(50, 40))
    y[:, 0] += 7.0
    denoiser = ThresholdDenoiser(domain="coefficients", sigma=1.0).fit(y)
    chosen = st.select_threshold(y, sigma=1.0)
    np.testing.assert_array_equal(denoiser.thresholds_, [chosen.threshold])
    np.testing.assert_array_equal(denoiser.transform(y), chosen.estimate)


def test_the_result_scales_with_the_data():
    """In units a thousand times smaller everything is the same, to rounding."""
    _, noisy = spectra(rows=10)
    one = ThresholdDenoiser().fit(noisy)
    other = ThresholdDenoiser().fit(1000 * noisy)
    np.testing.assert_allclose(other.thresholds_, one.thresholds_)
    np.testing.assert_allclose(other.transform(1000 * noisy), 1000 * one.transform(noisy), rtol=1e-9, atol=1e-9)


def test_a_pipeline_with_a_search_over_its_parameters():
    _, noisy = spectra(rows=30, length=64)
    search = GridSearchCV(
        make_pipeline(ThresholdDenoiser(), PCA(2)), {"thresholddenoiser__rule": ["hard", st.Firm(3.0)]}, cv=2
    )
    best = search.fit(noisy).best_estimator_
    assert best.transform(noisy).shape == (30, 2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(best)).transform(noisy), best.transform(noisy))


class DoublePrecisionHard:
    """A rule that returns float64 whatever it is given, as `np.where` with a float64 array does."""

    def __call__(self, y, t):
        return np.where(np.abs(y) >= t, y, 0.0).astype(np.float64)

    def derivative(self, y, t):
        return (np.abs(y) > t).astype(np.float64)

    def jumps(self, t):
        return [(t, t)]


@pytest.mark.parametrize("domain", ["samples", "coefficients"])
@pytest.mark.slow
def test_a_rule_that_returns_double_precision_is_converted(domain):
    """The synthesis once wrote float64 into the memory of float32 arrays: a heap overflow."""
    noisy = spectra(rows=8, length=512)[1].astype(np.float32)
    expected = ThresholdDenoiser(domain=domain, sigma=0.2).fit(noisy)
    found = ThresholdDenoiser(domain=domain, sigma=0.2, rule=DoublePrecisionHard()).fit(noisy)
    found.thresholds_ = expected.thresholds_
    denoised = found.transform(noisy)
    assert denoised.dtype == np.float32
    # The rules differ by the rounding of a threshold to single precision at most.
    np.testing.assert_allclose(denoised, expected.transform(noisy), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"domain": "sample"}, "Did you mean 'samples'"),
        ({"sigma": -1.0}, "sigma must be positive"),
        ({"rule": "hrad"}, "Did you mean 'hard'"),
        ({"wavelet": "sym99"}, "sym99"),
        ({"method": "sure"}, "the rule jumps"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        ThresholdDenoiser(**parameters).fit(spectra(rows=3)[1])


def test_the_package_does_not_import_scikit_learn():
    code = "import sys, scorethresh; print('sklearn' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.strip() == "False"


@pytest.mark.filterwarnings("ignore::scorethresh.AssumptionWarning")
@parametrize_with_checks([ScorePCA(), ScorePCA(rule="shrink", sigma=1.0)])
def test_scikit_learn_accepts_the_components(estimator, check):
    check(estimator)


def low_rank(rows=80, columns=30, rank=3, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    clean = 2.0 + rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns))
    return clean, clean + rng.normal(0.0, noise, clean.shape)


def test_components_are_those_of_pca_and_their_number_is_chosen():
    clean, X = low_rank()
    pca = ScorePCA().fit(X)
    assert (pca.rank_, pca.n_components_) == (3, 3)
    assert pca.sigma_ == pytest.approx(0.5, rel=0.05)
    other = PCA(3).fit(X)
    assert np.abs(np.sum(pca.components_ * other.components_, axis=1)) == pytest.approx(np.ones(3))
    denoised = pca.inverse_transform(pca.transform(X))
    assert denoised == pytest.approx(other.inverse_transform(other.transform(X)))
    # The risk leaves out the error of the mean, one row of noise.
    loss = np.sum((denoised - clean) ** 2) - 30 * 0.25
    assert pca.risk_ == pytest.approx(loss, abs=3 * pca.stderr_)


def test_shrunk_components_have_less_error():
    losses = {"hard": 0.0, "shrink": 0.0}
    for seed in range(10):
        clean, X = low_rank(noise=2.0, seed=seed)
        for rule in losses:
            pca = ScorePCA(sigma=2.0, rule=rule).fit(X)
            losses[rule] += mse(pca.inverse_transform(pca.transform(X)), clean)
            assert (pca.scaling_ <= 1).all()
    assert losses["shrink"] < 0.95 * losses["hard"]


def test_noise_has_no_component_but_something_to_hand_on():
    X = np.random.default_rng(0).normal(size=(60, 20))
    pca = ScorePCA(sigma=1.0).fit(X)
    assert (pca.rank_, pca.n_components_, pca.status_) == (0, 1, st.RankStatus.NOISE_ONLY)
    assert not pca.transform(X).any()
    assert pca.inverse_transform(pca.transform(X)) == pytest.approx(np.tile(X.mean(axis=0), (60, 1)))
    with pytest.raises(ValueError, match=r"X must have shape \(n_samples, 1\)"):
        pca.inverse_transform(X)
