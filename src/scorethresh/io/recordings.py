"""Recordings of instruments: MiniSEED by obspy, WFDB by wfdb."""

from __future__ import annotations

import copy
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import Data, FileError, ReadOptions
from .guards import check_bomb

# Bytes that one byte of Steim 2, the tightest compression of MiniSEED, can hold: seven differences in four bytes.
_STEIM = 7

# Bits of a sample by the name of the storage format of WFDB. An estimate may exceed the range that was recorded.
_WFDB_BITS = {"80": 8, "212": 12, "310": 10, "311": 10, "16": 16, "61": 16, "160": 16, "24": 24, "32": 32}


def read_miniseed(path: Path, options: ReadOptions) -> Data:
    """Read a MiniSEED file: every trace, and every stretch between gaps, by itself."""
    import obspy

    stream = obspy.read(str(path), format="MSEED", headonly=True)
    check_bomb(path, sum(trace.stats.npts for trace in stream) * 8 // _STEIM)
    stream = obspy.read(str(path), format="MSEED")
    traces = [np.asarray(trace.data) for trace in stream if trace.stats.npts]
    if not traces or any(trace.dtype.kind not in "iuf" for trace in traces):
        msg = f"{path} holds no samples that are numbers. Choose a file with waveforms."
        raise FileError(msg)
    values = np.concatenate(traces)
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if len(traces) == 1:
        return Data(values, "MiniSEED", metadata=stream)
    splits = tuple(int(n) for n in np.cumsum([trace.size for trace in traces])[:-1])
    told = f"{len(traces)} traces, each denoised by itself"
    return Data(values, "MiniSEED", None, (), ("trace",), splits, metadata=stream, understood=told)


def write_miniseed(path: Path, data: Data) -> None:
    """Write a MiniSEED file, with the encoding and the header of every trace."""
    stream = data.metadata.copy()
    parts = iter(data.parts())
    for trace in stream:
        if trace.stats.npts:
            part, stored = next(parts), trace.data.dtype.newbyteorder("=")
            if data.values.dtype.kind == "f" and stored.kind in "iu" and trace.data.dtype != data.values.dtype:
                part = _rounded(part, stored)
            elif data.values.dtype.itemsize < stored.itemsize or stored.kind == data.values.dtype.kind:
                part = part.astype(stored)
            trace.data = np.ascontiguousarray(part)
    stream.write(str(path), format="MSEED")


def _rounded(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    limits = np.iinfo(dtype)
    return np.clip(np.rint(values.astype(np.float64)), limits.min, limits.max).astype(dtype)


def _in_range(digital: NDArray[Any], physical: NDArray[Any], fmt: str) -> NDArray[Any]:
    """Return digital values within what the format holds; its least value stands for missing samples."""
    if fmt not in _WFDB_BITS:
        return digital
    top = 1 << (_WFDB_BITS[fmt] - 1)
    return np.where(np.isnan(physical), digital, np.clip(digital, 1 - top, top - 1))


def read_wfdb(path: Path, options: ReadOptions) -> Data:
    """Read a WFDB record by its header: the leads in their physical units, together."""
    import wfdb

    header = wfdb.rdheader(str(path.with_suffix("")))
    names = [name for name in header.file_name or [] if name]
    if not names or hasattr(header, "seg_name") or any("/" in name or "\\" in name for name in names):
        msg = f"{path} is no record of one segment with its signals beside it. Choose such a record."
        raise FileError(msg)
    held = sum((path.parent / name).stat().st_size for name in set(names) if (path.parent / name).is_file())
    if math.prod((header.sig_len or 0, header.n_sig)) > 8 * max(held, 1):
        msg = f"{path} claims more samples than its signals hold. Get a complete copy."
        raise FileError(msg)
    record = wfdb.rdrecord(str(path.with_suffix("")))
    values = record.p_signal
    if values.shape[1] == 1:
        return Data(values[:, 0], "WFDB", metadata=record)
    return Data(values, "WFDB", -1, metadata=record)


def write_wfdb(path: Path, data: Data) -> None:
    """Write a WFDB record: the header, `path`, and the signals beside it."""
    record = copy.deepcopy(data.metadata)
    name = path.stem
    if len(set(record.fmt)) > 1:
        msg = f"the signals of this record are stored in several ways, {', '.join(record.fmt)}. Write NPY."
        raise FileError(msg)
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        msg = f"WFDB names records with letters, digits, - and _ only, got {name}. Choose such a name."
        raise FileError(msg)
    record.record_name = name
    record.p_signal = np.asarray(data.values, dtype=np.float64).reshape(record.p_signal.shape)
    record.file_name = [f"{name}.dat"] * record.n_sig
    record.byte_offset = None
    record.d_signal = _in_range(record.adc(), record.p_signal, record.fmt[0])
    record.init_value = [int(v) for v in record.d_signal[0]]
    record.wrsamp(write_dir=str(path.parent))
