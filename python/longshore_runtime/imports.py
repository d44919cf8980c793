"""Notes what a worker has imported, so that later workers can be forks of a process that has imported it too.

The launcher names a file in `VARIABLE`. The note is written once, after the worker's first job: then the modules that the
handler imports late are there as well.
"""

import os
import sys

VARIABLE = "LONGSHORE_IMPORTS"
"""The variable with the path of the note."""

NEVER = ("bitsandbytes", "onnxruntime")
"""Packages that break a fork by their import: the first asks for GPUs, the second starts a thread that a fork lacks."""

_OWN = ("__main__", "__mp_main__", "longshore_runtime", "sitecustomize", "usercustomize")
"""Names that mean something else in each process."""

_SDK = "runpod"
"""Reads its environment when it is imported, so each worker imports it for itself."""

_path = None


def expect():
    """Takes the path of the note from the environment, so that programs which this worker starts do not see it."""
    global _path
    _path = os.environ.pop(VARIABLE, None)


def job_ended():
    """Writes the note if one is expected. The second and later calls do nothing."""
    global _path
    path, _path = _path, None
    if path is None:
        return
    import json

    try:
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(note(), file)
        os.replace(path + ".new", path)
    except (OSError, ValueError):
        # The next worker starts as this one did.
        pass


def note():
    """Answers what this process runs, and what it has imported, as the launcher reads it."""
    with open("/proc/self/cmdline", "rb") as file:
        command = [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
    names, files = imported()
    return {
        "pid": os.getpid(),
        "executable": sys.executable,
        "command": command,
        "argv": list(sys.argv),
        "modules": names,
        "files": files,
    }


def imported():
    """Answers the names of the imported modules, in the order of their import, and the files of those that are no part of
    Python. Modules of the worker's own folders are left out, because they can change with each start; packages that are installed
    below them, as in a virtual environment there, are not."""
    own = {os.path.realpath(os.getcwd())}
    script = os.path.realpath(sys.argv[0]) if sys.argv else ""
    if os.path.isfile(script):
        own.add(os.path.dirname(script))
    library = os.path.dirname(os.path.realpath(os.__file__))
    names, files = [], []
    for name, module in list(sys.modules.items()):
        package = name.partition(".")[0]
        if package in _OWN or package in NEVER or package == _SDK:
            continue
        # Some packages put objects here that are no modules, or modules under a name that cannot be imported.
        spec = getattr(module, "__dict__", {}).get("__spec__")
        if spec is None or getattr(spec, "name", None) != name:
            continue
        origin = getattr(spec, "origin", None)
        if origin in ("built-in", "frozen"):
            names.append(name)
        elif isinstance(origin, str) and os.path.isfile(origin):
            real = os.path.realpath(origin)
            if any(_is_below(real, folder) and not _is_installed(real[len(folder) :]) for folder in own):
                continue
            names.append(name)
            if not _is_below(real, library) or _is_installed(real):
                files.append(real)
    return names, files


def _is_installed(path):
    """Whether a path leads through a folder of installed packages, such as `site-packages`."""
    return "-packages" + os.sep in path


def _is_below(path, folder):
    return path.startswith(folder.rstrip(os.sep) + os.sep)
