"""The worker runtime of Longshore: takes the pauses out of workers that use the official SDK.

The official SDK sleeps between jobs, for up to a second. The runtime edits these lines when the SDK is imported, so that
its loops wait for events: a job arrived, a job ended, the worker stops. It edits only sources that it knows by their hash
(`known.py`), and leaves every other source as it is. `LONGSHORE_RUNTIME=off` turns it off.
"""

import os
import sys

SWITCH = "LONGSHORE_RUNTIME"
"""The variable that turns the runtime off."""


def install():
    """Edits the SDK's modules that this process imports from now on. A second call changes nothing."""
    if os.environ.get(SWITCH, "").strip().lower() == "off":
        return
    from . import imports
    from .finder import EditingFinder

    imports.expect()
    if not any(isinstance(finder, EditingFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, EditingFinder())
