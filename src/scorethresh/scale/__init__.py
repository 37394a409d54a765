"""Data that outgrow memory, in chunks: dask arrays, and arrays with names, those of xarray."""
