"""Installs the worker runtime when Python starts, then runs the `sitecustomize` that this file stands in front of.

The folder of this file is the first entry of PYTHONPATH in every worker that a Longshore server starts.
"""

import sys


def _run_next():
    """Imports the `sitecustomize` that Python would have found without this folder."""
    import os

    own = os.path.dirname(os.path.abspath(__file__))
    entry = next((entry for entry in sys.path if os.path.abspath(entry) == own), None)
    if entry is None:
        return
    at = sys.path.index(entry)
    this = sys.modules.pop("sitecustomize")
    del sys.path[at]
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this
    finally:
        sys.path.insert(at, entry)


# A worker may start programs in older versions of Python, which cannot read the package.
if sys.version_info >= (3, 8):
    import longshore_runtime

    longshore_runtime.install()
    _run_next()
