"""Finds the SDK's modules that the runtime edits, and loads them with the edits."""

import importlib.machinery
import os
import sys

SCALER = "runpod.serverless.modules.rp_scale"
"""The module with the pauses."""

MODULES = (SCALER, "runpod.serverless.utils.rp_debugger", "runpod.cli.groups.ssh.functions")
"""The modules that are edited."""


class EditingFinder:
    """The first entry of `sys.meta_path`: leaves all modules but `MODULES` to the other entries."""

    def find_spec(self, name, path=None, target=None):
        """Answers the spec of a module in `MODULES`, `None` for any other."""
        if name not in MODULES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and hasattr(spec.loader, "get_source"):
            spec.loader = EditingLoader(spec.loader)
        return spec


class EditingLoader:
    """Loads one module with the edits for its source, or as it is if the source is unknown."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        """Creates the module as the module's own loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module):
        """Runs the module's source, edited if it is known. The compiled edit is stored nowhere: Python's cache of compiled
        modules belongs to the unchanged source."""
        name = module.__spec__.name
        # From here on the module looks as if its own loader had loaded it.
        module.__spec__.loader = module.__loader__ = self._loader
        edited = _edited_source(self._loader.get_source(name))
        if edited is None:
            if name == SCALER:
                _say_unknown(name)
            self._loader.exec_module(module)
        else:
            exec(compile(edited, module.__spec__.origin, "exec", dont_inherit=True), module.__dict__)


def _edited_source(source):
    """Answers the source with its edits; `None` if it is unknown."""
    import hashlib

    from . import edits
    from .known import KNOWN

    # Without a source there is only a compiled module.
    if source is None:
        return None
    edit_names = KNOWN.get(hashlib.sha256(source.encode()).hexdigest())
    return None if edit_names is None else edits.apply(source, edit_names)


def _say_unknown(name):
    """Says once in the worker's log that the SDK is not sped up, and why."""
    from . import SWITCH

    if os.environ.get(SWITCH, "").strip().lower() == "off":
        return
    # Also for the processes that this one starts: they would say the same again.
    os.environ[SWITCH] = "off"
    print(
        f"longshore: the worker runtime leaves {_sdk_version()} as it is, because it does not know the source of {name}."
        " Jobs start up to a second later than they could. Another version of the SDK, or a newer Longshore, helps;"
        f" {SWITCH}=off in the environment of the worker silences this line.",
        file=sys.stderr,
        flush=True,
    )


def _sdk_version():
    from importlib import metadata

    try:
        return f"runpod {metadata.version('runpod')}"
    except metadata.PackageNotFoundError:
        return "runpod of unknown version"
