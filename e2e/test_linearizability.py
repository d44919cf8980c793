"""The checker of linearizability finds planted violations, and accepts what may happen."""

import random

from harness.linearizability import ABSENT, QUEUED, RUNNING, Operation, effects, violations

DONE = ("COMPLETED", "a")
CANCELLED = ("CANCELLED", None)


def op(kind: str, called: float, answered: float | None, told=None, job: str = "j") -> Operation:
    return Operation(job, kind, called, answered, told, "a")


def is_fine(*history: Operation, **more) -> bool:
    return not violations(list(history), **more)


LIFE = [op("submit", 0, 1), op("take", 2, 3), op("done", 4, 5, DONE)]


def test_a_life_in_order_is_linearizable():
    reads = [op("status", 1.1, 1.2, QUEUED), op("status", 3.1, 3.2, RUNNING), op("status", 5.1, 5.2, DONE)]
    assert is_fine(*LIFE, *reads, drifts_alone=False)
    assert is_fine(*LIFE, *reads)


def test_a_read_during_a_change_may_see_either_state():
    for told in (RUNNING, DONE):
        assert is_fine(*LIFE, op("status", 4.2, 4.8, told), drifts_alone=False)
    # Of two reads in order, the second one sees no earlier state.
    assert is_fine(*LIFE, op("status", 4.1, 4.2, RUNNING), op("status", 4.3, 4.4, DONE), drifts_alone=False)
    assert not is_fine(*LIFE, op("status", 4.1, 4.2, DONE), op("status", 4.3, 4.4, RUNNING))


def test_a_stale_read_after_a_newer_one_is_found():
    stale = op("status", 6, 7, RUNNING)
    found = violations([*LIFE, op("status", 5.1, 5.2, DONE), stale])
    assert len(found) == 1 and str(stale) in found[0], found
    # A job returns to the queue if its worker is lost; who knows that none was lost can exclude it.
    back = [*LIFE[:2], op("status", 3.1, 3.2, RUNNING), op("status", 3.3, 3.4, QUEUED)]
    assert is_fine(*back) and not is_fine(*back, drifts_alone=False)


def test_an_end_that_changes_is_found():
    assert not is_fine(*LIFE, op("status", 6, 7, DONE), op("status", 8, 9, ("COMPLETED", "b")))
    assert not is_fine(*LIFE, op("status", 6, 7, DONE), op("status", 8, 9, CANCELLED))
    assert not is_fine(*LIFE, op("cancel", 6, 7, CANCELLED))
    # A second result is accepted and changes nothing.
    second = op("done", 6, 7, ("COMPLETED", "b"))
    assert is_fine(*LIFE, second, op("status", 8, 9, DONE))
    assert not is_fine(*LIFE, second, op("status", 8, 9, ("COMPLETED", "b")))


def test_a_lost_submit_is_found():
    assert not is_fine(op("submit", 0, 1), op("status", 2, 3, ABSENT))
    assert is_fine(op("submit", 0, 3), op("status", 1, 2, ABSENT), op("status", 4, 5, QUEUED))
    # It was there, and is gone.
    assert not is_fine(op("submit", 0, None), op("status", 1, 2, QUEUED), op("status", 3, 4, ABSENT))


def test_an_unknown_outcome_takes_effect_at_any_later_time_or_never():
    submit = op("submit", 0, None)
    assert is_fine(submit, op("status", 1, 2, ABSENT))
    assert is_fine(submit, op("status", 1, 2, ABSENT), op("status", 3, 4, QUEUED))
    cancel = op("cancel", 1.5, None)
    for told in (RUNNING, CANCELLED):
        assert is_fine(op("submit", 0, 1), cancel, op("status", 5, 6, told))
    assert is_fine(op("submit", 0, 1), cancel, op("status", 2, 3, RUNNING), op("status", 4, 5, CANCELLED))
    assert not is_fine(op("submit", 0, 1), cancel, op("status", 2, 3, CANCELLED), op("status", 4, 5, RUNNING))
    # Not before it was called.
    assert not is_fine(op("submit", 0, 1), op("status", 1.1, 1.2, CANCELLED), cancel)
    done = op("done", 3, None, DONE)
    assert is_fine(*LIFE[:2], done, op("status", 4, 5, RUNNING), op("status", 6, 7, DONE))
    assert not is_fine(*LIFE[:2], done, op("status", 4, 5, ("COMPLETED", "b")))
    # The cancel had no effect after all, because the result was first.
    assert is_fine(*LIFE, op("cancel", 4.5, None), op("status", 6, 7, DONE))


def test_jobs_are_checked_separately():
    other = [op(one.kind, one.called, one.answered, one.told, "k") for one in LIFE]
    found = violations([*LIFE, *other, op("status", 6, 7, QUEUED, "k")])
    assert len(found) == 1 and "job k " in found[0], found


def test_histories_of_a_correct_server_are_accepted_and_spoiled_ones_are_not():
    rng = random.Random(7)
    spoiled = 0
    for _ in range(200):
        history = correct_history(rng)
        assert not violations(history), violations(history)[0]
        ends = [at for at, one in enumerate(history) if one.kind == "status" and one.told == DONE]
        if ends:
            at = ends[-1]
            late = Operation("j", "status", history[at].answered + 1, history[at].answered + 2, QUEUED)
            assert violations([*history, late])
            spoiled += 1
    assert spoiled > 50


def correct_history(rng: random.Random) -> list[Operation]:
    """What overlapping callers of one correct register are told: each operation takes effect at a random moment of its own."""
    kinds = ["submit", *rng.choices(["take", "done", "cancel", "status"], [2, 1, 1, 8], k=18)]
    moments = sorted(rng.uniform(0, 20) for _ in kinds)
    state, history = ABSENT, []
    for kind, moment in zip(kinds, moments):
        called, answered = moment - rng.uniform(0, 3), moment + rng.uniform(0, 3)
        told = {"done": DONE, "status": state}.get(kind)
        is_unknown = kind != "status" and rng.random() < 0.2
        takes_effect = not is_unknown or rng.random() < 0.5
        after = effects(state, op(kind, called, answered, told))
        if after is None:
            continue
        if kind == "cancel":
            told = (after[0], None)
        state = after if takes_effect else state
        history.append(op(kind, called, None if is_unknown else answered, told))
    return history
