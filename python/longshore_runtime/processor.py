"""Answers the SDK's only question about the processor without the programs that the package `cpuinfo` starts for it.

The SDK asks while it is imported. The package would use more processor time for its answer than the rest of the import.
"""

import os


def get_cpu_info():
    """Answers what `cpuinfo.get_cpu_info` answers: name, architecture and number of the processors, from
    `/proc/cpuinfo`; where the name is not there, as on ARM, the package's own answer."""
    name = _name_in("/proc/cpuinfo")
    if name is None:
        import cpuinfo

        return cpuinfo.get_cpu_info()
    return {"brand_raw": name, "arch_string_raw": os.uname().machine, "count": os.cpu_count()}


def _name_in(path):
    """The first model name in a file such as `/proc/cpuinfo`; `None` without one."""
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, colon, value = line.partition(":")
                if colon and key.strip() == "model name" and value.strip():
                    return value.strip()
    except OSError:
        pass
    return None
