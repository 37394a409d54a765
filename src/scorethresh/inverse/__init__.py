"""Inverse problems ``y = A x0 + w``: operators A, restoration of x0, and the risk of ``A x``."""
