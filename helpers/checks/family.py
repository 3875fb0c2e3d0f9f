"""Ends a process together with all that it has started: a reader's function may start programs, too.

`process` begins the process of the checks with the options `APART` and calls `end`; that process calls
`end_this_one` when the notebook is gone.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress

# For subprocess.Popen: a group of its own, so that the notebook's ■ is not for it, and can be ended whole.
APART = (
    {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    if sys.platform == "win32"
    else {"start_new_session": True}
)


def end(process):
    """Kill a process begun with APART, and what it has started that is still there, at once.

    process : a subprocess.Popen; it may have ended already. What left its group is found while it lives.
    """
    children = started_by(process.pid) if process.poll() is None else []
    if sys.platform != "win32":
        with suppress(ProcessLookupError, PermissionError):  # the whole group has ended
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    kill(children)


def end_this_one():
    """Kill what this process, begun with APART, has started, and the process itself."""
    try:
        kill(started_by(os.getpid()))
        if sys.platform != "win32" and os.getpgrp() == os.getpid():  # it was begun so
            os.killpg(os.getpid(), signal.SIGKILL)
    finally:
        os._exit(0)


def started_by(pid):
    """The processes that it has started, and those that they have."""
    import psutil

    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def kill(processes):
    import psutil

    for process in processes:
        with suppress(psutil.Error):  # it has ended by itself
            process.kill()
