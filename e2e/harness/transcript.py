"""Sessions of a terminal in the documents: what they type, and what they say is printed.

Three kinds of blocks count, in the order of the page:

- ```` ```console run ````: lines after `$ ` are commands, lines after `> ` continue them, the others are their output.
  `terminal=N` types into another terminal; `stays` says that the last command goes on running, and a later block of
  that terminal without a command shows what it prints next. A command `^C` interrupts it.
- ```` ```LANGUAGE save=FILE ````: the block is saved as this file.
- `<!-- run` … `-->`, with the same options: commands that are not shown. Their output does not count.

In outputs, a line `…` stands for any lines, and `…` within a line for any text.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(
    r"^```console run(?P<options>[^\n]*)\n(?P<session>.*?)^```$"
    r"|^```\w+ save=(?P<file>\S+)\n(?P<content>.*?)^```$"
    r"|^<!-- run(?P<where>[^\n]*)\n(?P<hidden>.*?)^-->$",
    re.MULTILINE | re.DOTALL,
)
VARYING = (
    (r"(sync-)?[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "JOB"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"(\d+ (min|h) )?[\d.]+ (m?s|min|h)\b( ago)?|\bnow\b", "SPAN"),
    (r"\d[\d.]* ([kMGT]?B|bytes)\b", "SIZE"),
    (r"\bls_\w+", "KEY"),
    # Ids of endpoints and templates have 14 characters, one in a hundred of them no digit.
    (r"\b([a-z0-9]{14}|(?=[a-z]*\d)[a-z0-9]{12,64})\b", "ID"),
    (r"\b\d+(\.\d+)?\b", "N"),
    (r"(?m)^[a-z]{8}(?= )", "WORKER"),
    (r" +", " "),
    (r"(?m) $", ""),
)


@dataclass
class Step:
    """A command and its output, as the page shows them; a command of None is output that comes later."""

    command: str | None
    output: str


@dataclass
class Block:
    """One block of a page, and where it stands there."""

    start: int
    end: int
    terminal: str = "1"
    stays: bool = False
    hidden: bool = False
    save: str = ""
    content: str = ""
    steps: list[Step] = field(default_factory=list)


def pages() -> list[Path]:
    """The documents that have sessions to run."""
    documents = [ROOT / "README.md", *sorted((ROOT / "docs" / "manual").glob("*.md"))]
    return [page for page in documents if "```console run" in page.read_text()]


def blocks(text: str) -> list[Block]:
    """The blocks of a page that count, in their order."""
    return [_block(found) for found in BLOCK.finditer(text)]


def _block(found: re.Match) -> Block:
    if found["file"]:
        return Block(found.start(), found.end(), save=found["file"], content=found["content"])
    is_hidden = found["hidden"] is not None
    options = found["where"] if is_hidden else found["options"]
    options = dict(option.partition("=")[::2] for option in options.split())
    unknown = options.keys() - {"terminal", "stays"}
    assert not unknown, f"unknown options of a session: {unknown}"
    part = "hidden" if is_hidden else "session"
    terminal, stays = options.get("terminal", "1"), "stays" in options
    return Block(found.start(part), found.end(part), terminal, stays, is_hidden, steps=_steps(found[part]))


def _steps(session: str) -> list[Step]:
    steps: list[Step] = []
    for line in session.splitlines(keepends=True):
        if line.startswith("$ ") or line == "^C\n":
            steps.append(Step(line.removeprefix("$ "), ""))
        elif line.startswith("> ") and steps and not steps[-1].output:
            steps[-1].command += line.removeprefix("> ")
        elif steps:
            steps[-1].output += line
        else:
            steps.append(Step(None, line))
    return steps


def session(steps: list[Step]) -> str:
    """The text of a block with these steps."""
    text = ""
    for step in steps:
        if step.command is not None:
            first, *more = step.command.splitlines(keepends=True)
            text += first if first == "^C\n" else f"$ {first}"
            text += "".join(f"> {line}" for line in more)
        text += step.output
    return text


def recorded(printed: str) -> str:
    """What a page shows of an output: whole lines, without the progress of slow steps, which comes and goes."""
    lines = [line for line in printed.splitlines() if not line.startswith("  … ")]
    return "".join(f"{line}\n" for line in lines)


def steady(text: str) -> str:
    """The text without what differs from run to run: ids, times, sizes, and the width of columns."""
    text = recorded(text)
    for what, name in VARYING:
        text = re.sub(what, name, text)
    return text.strip()


def matches(shown: str, seen: str, goes_on: bool = False) -> bool:
    """Whether a command printed what the page shows; one that goes on may have printed more since."""
    return _match(steady(shown).splitlines(), steady(seen).splitlines(), goes_on)


def _match(shown: list[str], seen: list[str], goes_on: bool) -> bool:
    if not shown:
        return goes_on or not seen
    if shown[0] == "…":
        return any(_match(shown[1:], seen[at:], goes_on) for at in range(len(seen) + 1))
    return bool(seen) and _is_line(shown[0], seen[0]) and _match(shown[1:], seen[1:], goes_on)


def _is_line(shown: str, seen: str) -> bool:
    pattern = ".*?".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, seen) is not None
