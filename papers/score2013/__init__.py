"""Deledalle, Peyré and Fadili (2013), Stein COnsistent Risk Estimator (SCORE) for hard thresholding."""
