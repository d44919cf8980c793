"""The edits of the SDK's sources: which lines are replaced, and by what.

An edit never changes the number of lines, so that tracebacks name the lines of the installed file. Which edits a version
gets is generated into `known.py` by `python/make_known.py`.
"""

PACE = "longshore_pace"
"""The name of the module `pace` in the edited sources."""

EDITS = {
    # rp_scale.py
    "import": (
        "\nimport asyncio\n",
        "\nimport asyncio; from longshore_runtime import pace as " + PACE + "\n",
    ),
    # `get_jobs` has no room for another job.
    "full": (
        "await asyncio.sleep(1)  # don't go rapidly\n",
        "await " + PACE + ".until_room(1)\n",
    ),
    # `set_scale` waits until no job is in progress.
    "resize": (
        "# not safe to scale when jobs are in flight\n            await asyncio.sleep(1)\n",
        "# not safe to scale when jobs are in flight\n            await " + PACE + ".until_room(1)\n",
    ),
    # `get_jobs` puts a job where `run_jobs` finds it.
    "taken": (
        "await self.jobs_queue.put(job)\n",
        "await self.jobs_queue.put(job); " + PACE + ".job_taken()\n",
    ),
    # `handle_job` ends.
    "ended": (
        "job_progress.remove(job)\n",
        "job_progress.remove(job); " + PACE + ".job_ended()\n",
    ),
    # `kill_worker`: after SIGTERM, or after a job that asks for a new worker.
    "stopping": (
        "self._shutdown_event.set()\n",
        "self._shutdown_event.set(); " + PACE + ".stopping()\n",
    ),
    # `monitor_stop_signals` after an answer without jobs: a worker that is to end waits for it.
    "floor": (
        "instead of holding the poll open\n                    await asyncio.sleep(1)\n",
        "instead of holding the poll open\n                    await " + PACE + ".until_end(1)\n",
    ),
    # `run_jobs` with jobs in progress, from 1.9.1 on: looks for more jobs ten times a second.
    "progress": (
        "await asyncio.wait(\n                    tasks, return_when=asyncio.FIRST_COMPLETED, timeout=0.1\n",
        "await " + PACE + ".until_progress(\n                    tasks\n",
    ),
    # The same until 1.9.0: looks for more jobs when a job has ended.
    "progress_1_7": (
        "await asyncio.wait(\n                    tasks, return_when=asyncio.FIRST_COMPLETED\n",
        "await " + PACE + ".until_progress(\n                    tasks\n",
    ),
    # `run_jobs` without a job, from 1.9.1 on: looks for one ten times a second.
    "idle": (
        "# don't busy wait\n                await asyncio.sleep(0.1)\n",
        "# don't busy wait\n                await " + PACE + ".until_work()\n",
    ),
    # The same until 1.9.0: looks for one without a pause, and uses a whole processor.
    "idle_1_7": (
        "loop\n            await asyncio.sleep(0)\n\n        # Ensure all",
        "loop\n            await (" + PACE + ".until_work() if not tasks and self.jobs_queue.empty() else "
        "asyncio.sleep(0))\n\n        # Ensure all",
    ),
    # rp_debugger.py
    "processor": (
        "\nimport cpuinfo\n",
        "\nfrom longshore_runtime import processor as cpuinfo\n",
    ),
    # cli/groups/ssh/functions.py
    "paramiko": (
        "\nimport paramiko\n",
        "\nfrom longshore_runtime import deferred_paramiko as paramiko\n",
    ),
}
"""Each edit by its name: the text that occurs once in the source, and its replacement."""


def apply(source, names):
    """Answers `source` with the edits of these names."""
    for name in names:
        old, new = EDITS[name]
        source = source.replace(old, new)
    return source


def applicable(source):
    """Answers the names of the edits whose text occurs in `source`, in the order of `EDITS`. Raises `ValueError` if one
    occurs more than once."""
    counts = {name: source.count(old) for name, (old, _) in EDITS.items()}
    several = [name for name, count in counts.items() if count > 1]
    if several:
        raise ValueError(f"edits that match more than one place: {', '.join(several)}")
    return tuple(name for name, count in counts.items() if count == 1)
