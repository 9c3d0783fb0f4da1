"""Lets IsoViz, and nothing else in the process, see Python as it is on Windows. Python imports this file at its start if its
folder is in PYTHONPATH, so that child processes see the same.
"""

from __future__ import annotations

import builtins
import subprocess
import types
from typing import Any

ABSENT = {
    "os": "chown chroot fchmod fchown fork forkpty getegid geteuid getgid getgroups getloadavg getpgid getpgrp getpriority getsid "
    "getuid getxattr initgroups killpg lchown lockf mkfifo nice openpty pidfd_open posix_spawn pread pwrite sched_getaffinity "
    "sched_setaffinity sched_yield sendfile setgid setpgid setpriority setsid setuid statvfs sync tcgetpgrp uname wait wait3 wait4",
    "select": "epoll poll",
    "signal": "SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 alarm pause pthread_kill "
    "pthread_sigmask setitimer sigpending sigwait",
    "socket": "AF_UNIX SCM_RIGHTS recv_fds send_fds",
    "subprocess": "",
    "sys": "",
}
"""Module → names that it lacks there."""
MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty")
"""Modules that do not exist there."""


class Elsewhere(types.ModuleType):
    """A module of the standard library on Windows."""

    def __init__(self, name: str, /, **differing: object) -> None:
        super().__init__(name)
        vars(self).update(differing, _real=__import__(name))

    def __getattr__(self, name: str) -> Any:
        if name in ABSENT[self.__name__].split():
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._real, name, value)


def _windows_popen(*arguments: Any, creationflags: int = 0, **options: Any) -> subprocess.Popen[Any]:
    assert not options.get("pass_fds"), "pass_fds not supported on Windows."
    return subprocess.Popen(*arguments, **options)


DIFFERING: dict[str, dict[str, Any]] = {
    "os": {"name": "nt"},
    "subprocess": {"Popen": _windows_popen, "CREATE_NEW_PROCESS_GROUP": 0x200, "CREATE_NO_WINDOW": 0x8000000},
    "sys": {"platform": "win32"},
}
SEEN = {name: Elsewhere(name, **DIFFERING.get(name, {})) for name in ABSENT}
_import = builtins.__import__


def _import_elsewhere(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> types.ModuleType:
    ours = ((globals or {}).get("__package__") or "").partition(".")[0] in ("isoviz", "dashboard", "pages")
    if ours and level == 0:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        if name in SEEN:
            return SEEN[name]
    return _import(name, globals, locals, fromlist, level)


builtins.__import__ = _import_elsewhere
