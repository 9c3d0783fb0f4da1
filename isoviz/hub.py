"""Access to the Hugging Face hub through its client: its address and whether it is reachable. Does not import torch.

`HF_ENDPOINT`, `HF_HUB_OFFLINE`, `HF_HOME` and the token belong to the client, which reads them itself.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

Answer = TypeVar("Answer")

_PATIENCE: Final = 3.0
"""Timeout in seconds for the reachability check."""
_CACHED_SECONDS: Final = 300.0
"""Seconds for which the result is cached, so that a long-running server notices when the network comes back."""
_answers: dict[Hashable, tuple[float, Any]] = {}


def cache_folder() -> Path:
    """The client's download cache."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def offline() -> str | None:
    """Why the hub is not available; None if it is. Checked once, and again after some minutes or after `forget_answers`."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        return "the hub cannot be reached (HF_HUB_OFFLINE is set; restart without it to go online)"
    return remembered("offline", _CACHED_SECONDS, lambda: _unreachable(constants.ENDPOINT))


def remembered(question: Hashable, seconds: float, ask: Callable[[], Answer]) -> Answer:
    """A cached query to the hub, repeated after a number of seconds, for another hub, or after `forget_answers`."""
    from huggingface_hub import constants

    key = (constants.ENDPOINT, question)
    moment, result = _answers.get(key, (-math.inf, None))
    if time.monotonic() - moment > seconds:
        result = ask()
        _answers[key] = (time.monotonic(), result)
    return cast(Answer, result)


def forget_answers() -> None:
    """Clear all cached answers."""
    _answers.clear()


def reason(error: BaseException) -> str:
    """The client's error in one short line."""
    text = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
    text = re.sub(r"^\[[^]]*\] *", "", text) or type(error).__name__
    return text if len(text) <= 160 else text[:159] + "…"


def _unreachable(endpoint: str) -> str | None:
    from huggingface_hub.errors import HTTPError
    from huggingface_hub.utils import get_session

    try:
        get_session().head(endpoint, timeout=_PATIENCE)  # any response counts; the client handles proxies
    except (HTTPError, OSError) as error:
        host = urlsplit(endpoint).netloc or endpoint
        return f"the hub cannot be reached ({host}: {reason(error)})"
    return None
