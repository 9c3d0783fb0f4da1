"""The Hugging Face hub, through its own client: where is it, can it be reached. No torch.

`HF_ENDPOINT`, `HF_HUB_OFFLINE`, `HF_HOME` and the token are the client's own and are read where it reads them.
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
"""Seconds in which a hub that can be reached answers."""
_ASK_AGAIN: Final = 300.0
"""Seconds for which the answer counts: detected once, yet a server that runs for weeks notices a cable that was plugged in."""
_answers: dict[Hashable, tuple[float, Any]] = {}


def cache_folder() -> Path:
    """Where the client keeps what it downloaded."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def offline() -> str | None:
    """Why the hub cannot be asked, in words; None if it can. Asked once, and again after some minutes or after `ask_again`."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        return "the hub cannot be reached (HF_HUB_OFFLINE is set; restart without it to go online)"
    return remembered("offline", _ASK_AGAIN, lambda: _unreachable(constants.ENDPOINT))


def remembered(question: Hashable, seconds: float, ask: Callable[[], Answer]) -> Answer:
    """The hub's answer to a question, asked anew after so many seconds, of another hub, or after `ask_again`."""
    from huggingface_hub import constants

    key = (constants.ENDPOINT, question)
    moment, result = _answers.get(key, (-math.inf, None))
    if time.monotonic() - moment > seconds:
        result = ask()
        _answers[key] = (time.monotonic(), result)
    return cast(Answer, result)


def ask_again() -> None:
    """Forget all answers."""
    _answers.clear()


def reason(error: BaseException) -> str:
    """What the client raised, in one short line."""
    text = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
    text = re.sub(r"^\[[^]]*\] *", "", text) or type(error).__name__
    return text if len(text) <= 160 else text[:159] + "…"


def _unreachable(endpoint: str) -> str | None:
    from huggingface_hub.errors import HTTPError
    from huggingface_hub.utils import get_session

    try:
        get_session().head(endpoint, timeout=_PATIENCE)  # any answer is one; the client knows of proxies
    except (HTTPError, OSError) as error:
        host = urlsplit(endpoint).netloc or endpoint
        return f"the hub cannot be reached ({host}: {reason(error)})"
    return None
