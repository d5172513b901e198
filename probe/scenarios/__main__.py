"""``python -m probe.scenarios --json-spec SPEC``: one scripted call, for `run_in_child`.

``SPEC`` is a JSON document ``{"scenario": …, "trace": PATH}``, or ``-`` to read it from stdin. What
there is to say comes as JSON lines on stdout; the exit code says nothing.
"""

from __future__ import annotations

import json
import os
import sys

from probe.scenarios.runner import serve


def main(arguments: list[str]) -> None:
    if len(arguments) != 2 or arguments[0] != "--json-spec":
        sys.exit("usage: python -m probe.scenarios --json-spec SPEC")
    document = sys.stdin.read() if arguments[1] == "-" else arguments[1]
    serve(json.loads(document))
    sys.stdout.flush()
    # Leaves without the interpreter's clean-up, in which the native library can abort or hang.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
