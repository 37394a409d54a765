"""The noise w: its covariance, what counting and clipping do to it, and how it is read off the data."""
