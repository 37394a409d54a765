"""The sample: all that the threshold methods know of the data, the magnitudes |y|."""
