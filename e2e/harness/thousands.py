"""The answers of a recorded server, as one gives them that has thousands of everything: endpoints, jobs, workers, calls, keys.

What is listed is repeated under other ids, names and times. What was recorded itself stays, so that the addresses of the
record are those of something that is there; what is asked about another is answered as for the one that it was made from.
"""

import json
import re
from datetime import datetime, timedelta

from .recorded import Record
from .reverse_proxy import Answer

JSON = [("Content-Type", "application/json")]
# How many a list has that is read as a whole; lists with pages have as many as a page was asked for.
ROWS = {"endpoints": 120, "apikeys": 320, "machines": 40, "workers": 300, "networkvolumes": 120, "containerregistryauth": 120, "templates": 160, "attention": 12, "failures": 40, "sessions": 60}
# How many there are of what a server with one of them lists.
TIMES = 1209
LATER_BY = timedelta(seconds=7)
MADE = re.compile(r"~\d+")
# What has the times of an item.
TIME = re.compile(r"^20\d\d-.*Z$")
ENDED = {"status": "EXITED", "endedAt": "2026-11-26T22:33:59.000Z", "exit": {"code": 1, "signal": None}}


def answer(record: Record, method: str, path: str) -> Answer | None:
    """The answer for a page; None where the server itself answers."""
    kept = record.answer(method, as_recorded(path))
    if kept is None or kept.is_open or kept.status != 200:
        return kept
    data = json.loads(kept.body)
    address, _, query = path.partition("?")
    name = address.rsplit("/", 1)[-1]
    if name == "health":
        data = data | {"jobs": many_jobs(data["jobs"], path)}
    elif isinstance(data, list) and name in ROWS:
        # One endpoint has many workers, the others have few.
        data = many(data, 6 if name == "workers" and MADE.search(address) else ROWS[name])
        data = [item | ENDED if name == "workers" and number > ROWS[name] / 3 else item for number, item in enumerate(data)]
        if "includeHealth=true" in query:
            data = [item | {"health": health(record, item["id"])} for item in data]
    elif isinstance(data, list) and name == "audit":
        data = many(data, 100)
    elif isinstance(data, dict) and data.get(name):
        data = of_pages(data, name, int((re.search(r"limit=(\d+)", query) or ("", "120"))[1]))
    return Answer(kept.status, json.dumps(data).encode(), JSON)


def as_recorded(path: str) -> str:
    """The address for what was recorded; that of a further page for its first one."""
    return re.sub(r"&cursor=[^&]*|[?&]includeHealth=true", "", MADE.sub("", path))


def health(record: Record, endpoint: str) -> dict:
    """The counts of an endpoint, as its own address gives them."""
    return json.loads(answer(record, "GET", f"/v2/{endpoint}/health").body)


def many_jobs(counts: dict, path: str) -> dict:
    return {state: count * TIMES + number_of(path) for state, count in counts.items()}


def number_of(path: str) -> int:
    return int((MADE.search(path) or ["~0"])[0][1:])


def of_pages(data: dict, name: str, limit: int) -> dict:
    """One page of many, and the counts of all."""
    made = many(data[name], limit)
    more = {"cursor": made[-1]["id"], "complete": False} if "cursor" in data else {}
    counts = {key: value * TIMES for key, value in data.items() if key in ("of", "searched")}
    if "counts" in data:
        counts["counts"] = {state: (count + 1) * TIMES for state, count in data["counts"].items()}
    return data | counts | more | {name: made}


def many(found: list[dict], count: int) -> list[dict]:
    """This number of items, made from recorded ones in turn."""
    return [another(found[number % len(found)], number // len(found), number) for number in range(count if found else 0)]


def another(item: dict, turn: int, number: int) -> dict:
    """An item as in the first turn, with an id, a name and times of its own in the others."""
    if turn == 0:
        return item
    made = {name: earlier(value, number) for name, value in item.items()}
    named = "id" if "id" in item else "endpointId"
    if isinstance(item[named], int):
        made[named] = item[named] - number
    elif len(item[named]) == 36:
        made[named] = job_id(item[named], number)
    else:
        made[named] = f"{item[named]}~{turn}"
    if "job" in item and "receiver" in item:
        made["job"] = job_id(item["job"], number)
    if "name" in item and "endpointId" not in item:
        made["name"] = f"{item['name']} {turn}"
    return made


def job_id(first: str, number: int) -> str:
    """The id of an earlier job: it begins with the time, and ends with what looks drawn."""
    ms = int(first[:8] + first[9:13], 16) - number * LATER_BY // timedelta(milliseconds=1)
    time = f"{ms:012x}"
    return f"{time[:8]}-{time[8:]}{first[13:-8]}{number * 2654435761 % 2**32:08x}"


def earlier(value, number: int):
    """A time before another one; what is no time stays."""
    if not isinstance(value, str) or not TIME.match(value):
        return value
    at = datetime.fromisoformat(value.replace("Z", "+00:00")) - number * LATER_BY
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
