"""Whether what callers and workers were told of jobs fits one order of events: a checker of linearizability.

Each job is a register. An operation takes effect at one moment between its call and its answer; one whose answer is unknown takes
effect at any moment after its call, or never. The checker looks for such moments for each job separately, which is as good as for
all jobs together, and names the first operation for which there is none.

    submit ──► IN_QUEUE ◄──► IN_PROGRESS ──► COMPLETED, FAILED, TIMED_OUT
                   └─────────────┴── cancel ──► CANCELLED
"""

from collections import defaultdict
from dataclasses import dataclass

ABSENT = ("ABSENT", None)
QUEUED = ("IN_QUEUE", None)
RUNNING = ("IN_PROGRESS", None)
TERMINAL = ("COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT")

State = tuple[str, object]
"""The status of a job, and its output if it is over."""


@dataclass(frozen=True)
class Operation:
    """One operation on a job."""

    job: str
    kind: str
    """`submit`, `take`, `done`, `cancel` or `status`."""
    called: float
    answered: float | None
    """`None`: the answer is unknown."""
    told: State | None = None
    """What the answer says of the job; for `submit`, `take` and `done` what the call makes of it."""
    node: str = ""

    @property
    def is_unknown(self) -> bool:
        return self.answered is None

    def __str__(self) -> str:
        answer = "unknown" if self.is_unknown else f"{self.answered:.4f}"
        said = "" if self.told is None else f" {self.told[0]} {'' if self.told[1] is None else self.told[1]}".rstrip()
        return f"{self.kind} [{self.called:.4f}, {answer}] at {self.node or '?'}:{said}"


def effects(state: State, operation: Operation) -> State | None:
    """The state after an operation that takes effect in `state`; `None` if its answer does not fit."""
    status, told = state[0], operation.told
    match operation.kind:
        case "submit":
            # A repetition under the same id finds the first one.
            return QUEUED if state == ABSENT else state
        case "take":
            return RUNNING if state == QUEUED else None
        case "done":
            if status in TERMINAL:
                # The first result counts, and the second one is accepted.
                return state
            return told if state != ABSENT else None
        case "cancel":
            if status in TERMINAL:
                return state if told is None or told[0] == status else None
            cancels = state != ABSENT and (told is None or told[0] == "CANCELLED")
            return ("CANCELLED", None) if cancels else None
        case "status":
            return state if state == told else None
    raise ValueError(f"there is no operation {operation.kind}")


def drifts(state: State) -> list[State]:
    """States that a job reaches by itself: a worker that got no answer, or was lost, leaves no operation."""
    if state == QUEUED:
        return [state, RUNNING]
    if state == RUNNING:
        return [state, QUEUED]
    return [state]


def unplaceable(operations: list[Operation], drifts_alone: bool = True) -> Operation | None:
    """The operation of one job that has no moment after those that can be placed before it; `None` if all have one. Without
    `drifts_alone` a job changes only by the operations.

    The search of Wing and Gong: the next operation is any that was called before the first answer of those that wait. Positions
    that failed once are not tried again (Lowe)."""
    waiting = sorted(operations, key=lambda operation: (operation.called, operation.is_unknown))
    known = sum(1 << at for at, operation in enumerate(waiting) if not operation.is_unknown)
    stack = [(0, ABSENT)]
    seen = {(0, ABSENT)}
    deepest, stuck = -1, None
    while stack:
        placed, state = stack.pop()
        if placed & known == known:
            return None
        rest = [(at, operation) for at, operation in enumerate(waiting) if not placed >> at & 1]
        first_answer = min(operation.answered for _, operation in rest if not operation.is_unknown)
        depth = (placed & known).bit_count()
        if depth > deepest:
            deepest = depth
            stuck = next(operation for _, operation in rest if operation.answered == first_answer)
        for at, operation in rest:
            if operation.called > first_answer:
                break
            for before in drifts(state) if drifts_alone else [state]:
                after = effects(before, operation)
                position = (placed | 1 << at, after)
                if after is not None and position not in seen:
                    seen.add(position)
                    stack.append(position)
    return stuck


def violations(history: list[Operation], drifts_alone: bool = True) -> list[str]:
    """What of a history is not linearizable: a text for each job."""
    by_job = defaultdict(list)
    for operation in history:
        by_job[operation.job].append(operation)
    found = []
    for job, operations in by_job.items():
        stuck = unplaceable(operations, drifts_alone)
        if stuck is not None:
            shown = "\n  ".join(str(one) for one in sorted(operations, key=lambda one: one.called))
            found.append(f"job {job} is not linearizable, there is no moment for {stuck}:\n  {shown}")
    return found
