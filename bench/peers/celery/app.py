"""Takes jobs over HTTP and puts them into a Celery queue; the task completes them immediately."""

import os

import redis
from celery import Celery
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

URL = os.environ["REDIS_URL"]
app = Celery("bench", broker=f"{URL}/0", backend=f"{URL}/1")
# A worker that dies must not take its jobs with it.
app.conf.task_acks_late = True
api = FastAPI()
results = redis.Redis.from_url(f"{URL}/1")


class Job(BaseModel):
    input: dict


@app.task
def work(input: dict) -> dict:
    return {"ok": True}


@api.post("/run")
def run(job: Job) -> dict:
    return {"id": work.delay(job.input).id, "status": "IN_QUEUE"}


@api.get("/finished", response_class=PlainTextResponse)
def finished() -> str:
    """Results have a database to themselves."""
    return str(results.dbsize())
