"""The server's process, `python -m dashboard.server.serving FILE [options]`: Streamlit, which exits with 0 after a signal.

uvicorn shuts down at the first SIGINT or SIGTERM and then re-raises the signal, which would give another exit status.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP."""
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    from dashboard.streamlit_private import run_command_line

    run_command_line(["run", *sys.argv[1:]])


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main()
