"""
How much noise does a function let through?
===========================================

The divergence says how strongly a function follows the noise; over the noise variance it is the degrees of freedom. A
jump counts as well. Whether it is seen depends on the step.
"""

import matplotlib.pyplot as plt
import numpy as np

import scorethresh as st

rng = np.random.default_rng(3)
x0 = np.where(np.arange(20_000) < 1000, 4.0, 0.0)
y = x0 + rng.normal(size=x0.size)


def hard(y):
    return np.where(np.abs(y) >= 3.0, y, 0.0)


exact = st.risk_curve(y, [3.0], sigma=1.0, method=st.Oracle(x0)).dof[0]
steps = np.geomspace(1e-4, 2.0, 15)
values, errors = np.array([st.divergence(hard, y, sigma=1.0, step=h, probes=4) for h in steps]).T

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.errorbar(steps, values, 2 * errors, fmt="k.-", capsize=3, label="estimate, ± 2 standard errors")
ax.axhline(exact, color="C3", ls="--", label="true degrees of freedom")
ax.axhline(np.count_nonzero(hard(y)), color="C0", ls=":", label="coefficients kept")
ax.axvline(y.size**-0.2, color="0.7", label="default step")
ax.set(xscale="log", xlabel="step, in noise levels", ylabel="degrees of freedom", ylim=(0, 1.6 * exact))
ax.legend(frameon=False)

# %%
# A tiny step counts the coefficients that are kept. A large one judges the function at more noise than there is.
#
# Least squares on the support that the lasso finds jumps as well. Its degrees of freedom are known for any design.

A = rng.normal(size=(100, 40)) @ np.linalg.cholesky(0.9 ** np.abs(np.subtract.outer(np.arange(40), np.arange(40)))).T
response = A[:, [5, 15, 30]] @ [1.0, -1.0, 0.5] + rng.normal(size=100)
for penalty in (40.0, 20.0, 10.0):
    print(f"penalty {penalty:.0f}: {st.dof_lasso_ols(A, response, penalty, sigma=1.0):.1f} degrees of freedom")
plt.show()
