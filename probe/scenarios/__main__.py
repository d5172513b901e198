"""``python -m probe.scenarios --json-spec SPEC``: one scripted call, for `run_in_child`.

``SPEC`` is a JSON document ``{"scenario": …, "trace": PATH}``, or ``-`` to read it from the first
line of stdin; the call then ends early when stdin does. What there is to say comes as JSON lines on
stdout; the exit code says nothing.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

from probe.scenarios.runner import serve


def _leave_with_the_caller() -> None:
    """Stops the call, its trace closed, once nobody is left who wanted it."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGINT)


def main(arguments: list[str]) -> None:
    if len(arguments) != 2 or arguments[0] != "--json-spec":
        sys.exit("usage: python -m probe.scenarios --json-spec SPEC")
    # A shell that starts its jobs in the background has them ignore it, and so would we.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if arguments[1] == "-":
        document = sys.stdin.readline()
        threading.Thread(target=_leave_with_the_caller, daemon=True).start()
    else:
        document = arguments[1]
    serve(json.loads(document))
    sys.stdout.flush()
    # Leaves without the interpreter's clean-up, in which the native library can abort or hang.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
