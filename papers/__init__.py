"""Papers behind the package, reproduced from its public functions."""
