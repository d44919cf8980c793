"""A worker that serves HTTP with FastAPI: what it got, what it streams, and a WebSocket."""

import asyncio
import hashlib
import os

import uvicorn
from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, StreamingResponse

app = FastAPI()
WORKER = os.environ.get("RUNPOD_POD_ID", "")
running = 0


@app.get("/ping")
def ping():
    return Response(status_code=int(os.environ.get("PING_STATUS", "200")))


@app.api_route("/echo{rest:path}", methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def echo(request: Request):
    body = await request.body()
    return {
        "worker": WORKER,
        "version": os.environ.get("APP_VERSION", ""),
        "method": request.method,
        "path": request.scope["raw_path"].decode(),
        "query": request.scope["query_string"].decode(),
        "http": request.scope["http_version"],
        "headers": [[name.decode(), value.decode("latin-1")] for name, value in request.headers.raw],
        "body_bytes": len(body),
        "body_sha256": hashlib.sha256(body).hexdigest(),
    }


@app.get("/slow")
async def slow(ms: int):
    global running
    running += 1
    most = running
    await asyncio.sleep(ms / 1000)
    running -= 1
    return {"worker": WORKER, "running": most}


@app.post("/upload")
async def upload(request: Request):
    count, digest = 0, hashlib.sha256()
    async for piece in request.stream():
        count += len(piece)
        digest.update(piece)
    return {"bytes": count, "sha256": digest.hexdigest()}


@app.get("/download")
async def download(bytes: int):
    async def pieces():
        left, piece = bytes, b"x" * 65536
        while left > 0:
            yield piece[:left]
            left -= len(piece)

    return StreamingResponse(pieces(), media_type="application/octet-stream")


@app.get("/events")
async def events(count: int, pause_ms: int = 0):
    async def lines():
        for number in range(count):
            yield f"data: {number}\n\n"
            await asyncio.sleep(pause_ms / 1000)

    return StreamingResponse(lines(), media_type="text/event-stream")


@app.get("/redirect")
def redirect():
    return RedirectResponse("/echo")


@app.get("/page")
def page():
    """A page that tries to read the session of the console."""
    return HTMLResponse("""<!doctype html><title>page</title><p id="seen">waits</p><script>
      const tried = async (act) => { try { return String(await act()); } catch (error) { return error.name; } };
      (async () => {
        const session = await tried(async () => (await fetch("/console/session", {credentials: "include"})).text());
        const me = await tried(async () => (await fetch("/v1/me", {credentials: "include"})).text());
        const cookie = await tried(() => "cookies: " + document.cookie);
        const stored = await tried(() => "stored: " + localStorage.length);
        document.querySelector("#seen").textContent = JSON.stringify([self.origin, session, me, cookie, stored]);
      })();
    </script>""")


@app.get("/cookies")
def cookies():
    answer = Response("cookies")
    answer.set_cookie("mine", "1", path="/")
    answer.set_cookie("longshore-012345", "stolen", path="/")
    answer.headers["X-Longshore-Error"] = "forged"
    answer.headers["Service-Worker-Allowed"] = "/"
    answer.headers["Clear-Site-Data"] = '"*"'
    return answer


@app.get("/v1/models")
def models():
    return {"object": "list", "data": [{"id": "tiny", "object": "model", "created": 1, "owned_by": "e2e"}]}


@app.post("/v1/chat/completions")
async def chat(request: Request):
    asked = await request.json()
    text = asked["messages"][-1]["content"].upper()
    head = {"id": "c1", "created": 1, "model": asked["model"]}
    if not asked.get("stream"):
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        return JSONResponse({**head, "object": "chat.completion", "choices": [choice]})

    async def pieces():
        for word in text.split():
            choice = {"index": 0, "delta": {"role": "assistant", "content": word}, "finish_reason": None}
            chunk = JSONResponse({**head, "object": "chat.completion.chunk", "choices": [choice]}).body.decode()
            yield f"data: {chunk}\n\n"
        yield "data: [DONE]\n\n"

    return StreamingResponse(pieces(), media_type="text/event-stream")


@app.websocket("/ws")
async def socket(websocket: WebSocket):
    await websocket.accept()
    await websocket.send_json({"worker": WORKER, "headers": dict(websocket.headers)})
    async for message in websocket.iter_text():
        await websocket.send_text(message[::-1])


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")
