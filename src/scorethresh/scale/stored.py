"""Arrays in Zarr stores: which one is meant, and stores like another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .._validate import missing_extra

__all__ = ["StoredArray", "create_like", "find_array"]

# Codecs that run code which the store brings along.
UNSAFE_CODECS = ("pickle",)


class StoredArray(NamedTuple):
    """An array in a store.

    Attributes
    ----------
    array : zarr.Array
        The array, not read yet.
    inner : str
        Where in the store it lies; empty if the store is the array.
    axes : str
        A letter per axis, if the store is an OME-Zarr image; else empty.
    metadata : dict
        The attributes of the store.
    zarr_format : int
        2 or 3.
    """

    array: Any
    inner: str
    axes: str
    metadata: dict[str, Any]
    zarr_format: int


def find_array(path: Path, key: str = "") -> StoredArray:
    """Return the array of a store: itself, the one named, the finest scale of an image, or the only one of a group."""
    try:
        import zarr
    except ImportError:
        error = missing_extra("zarr")
        raise error from None
    if not path.exists():
        msg = f"there is no store {path}. Check the name."
        raise FileNotFoundError(msg)
    _check_codecs(path)
    try:
        root = zarr.open(str(path), mode="r")
    except Exception as error:  # whatever a damaged store makes zarr raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        msg = f"{path} cannot be read as Zarr ({reason}). Is it damaged?"
        raise ValueError(msg) from error
    metadata, inner, axes = dict(root.attrs), "", ""
    if isinstance(root, zarr.Group):
        inner, axes = _inner(path, root, metadata, key)
        found = root[inner]
    elif key:
        msg = f"{path} is one array, without a name. Leave --key out."
        raise ValueError(msg)
    else:
        found = root
    _check_codecs(path / inner)
    return StoredArray(found, inner, axes, metadata, int(found.metadata.zarr_format))


def _inner(path: Path, root: Any, metadata: dict[str, Any], key: str) -> tuple[str, str]:
    """Return where in a group the array lies, and the letters of its axes."""
    import zarr

    scales = metadata.get("ome", metadata).get("multiscales")
    if scales and not key:
        axes = "".join(axis["name"] if isinstance(axis, dict) else axis for axis in scales[0].get("axes", []))
        return scales[0]["datasets"][0]["path"], axes
    names = sorted(name for name, item in root.members() if isinstance(item, zarr.Array))
    if key in names:
        return key, ""
    if key or len(names) != 1:
        held = f"no array {key[:40]!r}" if key else f"{len(names)} arrays"
        shown = ", ".join(name[:40] for name in names[:10]) + (", ..." if len(names) > 10 else "")
        msg = f"{path} holds {held}. Choose one of {shown} with --key." if names else f"{path} holds no array."
        raise ValueError(msg)
    return names[0], ""


def _check_codecs(folder: Path) -> None:
    """Refuse an array whose codecs run code from the store."""
    for name in (".zarray", ".zmetadata", "zarr.json"):
        try:
            told = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):  # there is none, or zarr will complain
            continue
        for used in _codecs(told):
            if used in UNSAFE_CODECS:
                msg = f"{folder} is stored with {used}, which may run code when read. Store it with another codec."
                raise ValueError(msg)


def _codecs(told: Any) -> Iterator[str]:
    """Yield the names in metadata that may be those of codecs, however deep."""
    if isinstance(told, dict):
        for key in ("id", "name"):
            yield str(told.get(key, "")).removeprefix("numcodecs.")
    children = told.values() if isinstance(told, dict) else told if isinstance(told, list) else ()
    for child in children:
        yield from _codecs(child)


def create_like(path: Path, like: Any, shape: tuple[int, ...], dtype: Any, chunks: tuple[int, ...]) -> Any:
    """Return a new array of zeros at `path`, in a store of the format and with the attributes of another.

    Parameters
    ----------
    path : Path
        The store to make.
    like : StoredArray or BigFile
        The other one: `inner`, `metadata` and `zarr_format` are used.
    shape, dtype, chunks
        Of the array.
    """
    import zarr

    fitting = tuple(max(1, min(c, n)) for c, n in zip(chunks, shape, strict=True))
    options: dict[str, Any] = {"shape": shape, "dtype": dtype, "chunks": fitting}
    if not like.inner:
        return zarr.create_array(str(path), zarr_format=like.zarr_format, attributes=like.metadata, **options)
    group = zarr.open_group(str(path), mode="w", zarr_format=like.zarr_format)
    group.attrs.update(_one_scale(like.metadata))
    return group.create_array(like.inner, **options)


def _one_scale(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an OME-Zarr image with its finest scale only: others were not denoised."""
    out: dict[str, Any] = json.loads(json.dumps(metadata))
    for scale in out.get("ome", out).get("multiscales", []):
        scale["datasets"] = scale["datasets"][:1]
    return out
