"""The noise w: its covariance, counts, clipping, and the estimates of its level and its spectrum."""
