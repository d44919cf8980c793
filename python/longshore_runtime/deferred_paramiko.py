"""Stands for the package `paramiko` in the SDK's command line, and imports it when it is first used.

The SDK imports its command line with everything else, and no worker opens an SSH connection by it.
"""


def __getattr__(name):
    import paramiko

    return getattr(paramiko, name)
