"""The parameter of least estimated risk."""
