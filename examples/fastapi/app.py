"""A web application as a worker: any path, any method, answered directly and without a queue."""

import asyncio
import os

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

app = FastAPI()


@app.get("/ping")
def ping() -> dict:
    """The health check. Load your model before this answers 200; 204 says that you are not ready yet."""
    return {"healthy": True}


@app.get("/")
def hello(name: str = "world") -> dict:
    return {"greeting": f"Hello, {name}!"}


@app.get("/count")
def count(to: int = 5) -> StreamingResponse:
    """Server-sent events, which the client reads one by one."""

    async def events():
        for number in range(1, to + 1):
            yield f"data: {number}\n\n"
            await asyncio.sleep(0.2)

    return StreamingResponse(events(), media_type="text/event-stream")


if __name__ == "__main__":
    # The server chooses a free port for each worker.
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]))
