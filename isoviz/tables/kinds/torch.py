"""PyTorch's .pt and .pth: a tensor, or tensors by name. Read with `weights_only`, so that no code of the file runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isoviz.tables.protocol import Format, Glimpse, refused

_ENDINGS = (".pt", ".pth")


def _recognise(glimpse: Glimpse) -> bool | None:
    if any(name.endswith("data.pkl") for name in glimpse.members):
        return True
    return None if glimpse.start.startswith((b"PK", b"\x80\x02")) and glimpse.ending in _ENDINGS else False


def _tensors(path: Path) -> dict[str, Any]:
    import torch

    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        objects = "Weights only load failed" in str(error)
        reason = "it holds other objects than tensors, which are never loaded" if objects else "it is damaged"
        raise refused(f"'{path.name}' is a PyTorch file that cannot be read: {reason}") from error
    if isinstance(content, (list, tuple)) and content and all(isinstance(one, torch.Tensor) for one in content):
        if len({one.shape for one in content}) == 1 and content[0].ndim == 1:
            content = torch.stack(list(content))  # one vector per text
        else:
            content = dict(enumerate(content))
    if isinstance(content, torch.Tensor):
        return {"": content}
    tensors = content.items() if isinstance(content, dict) else ()
    return {str(name): one for name, one in tensors if isinstance(one, torch.Tensor)}


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in _tensors(path).items()}


def _array(path: Path, name: str) -> NDArray[Any]:
    tensor = _tensors(path)[name].detach()
    half = tensor.is_floating_point() and tensor.dtype.itemsize <= 2
    points: NDArray[Any] = (tensor.float() if half else tensor).numpy()
    return points


FORMATS = Format(
    "torch", "a PyTorch file", _ENDINGS, _recognise, shapes=_shapes, array=_array, packages=("torch",),
    vectors="a tensor, or the one you name of a dictionary; nothing else is unpickled",
)  # fmt: skip
