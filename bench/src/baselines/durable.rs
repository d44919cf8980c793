//! The baseline of a durable request: an echo that writes and syncs the body before it answers. Requests that
//! arrive during a sync share the next one.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::mpsc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::post;
use tokio::sync::oneshot;

use super::disk::{PREALLOCATED_BYTES, preallocated};
use super::echo::serve_router;

/// Unit of writes in bytes. The kernel never has to read a page before writing it.
const PAGE_BYTES: usize = 4096;

/// A body, and the sender that is notified when the body is durable.
type Asked = (Bytes, oneshot::Sender<()>);

/// Starts the thread that writes bodies to a file in `folder`.
pub(super) fn start_writer(folder: &Path) -> Result<mpsc::Sender<Asked>, String> {
    let failed = |error| format!("cannot prepare a file in {}: {error}", folder.display());
    let file = preallocated(folder).map_err(failed)?;
    let (sender, asked) = mpsc::channel();
    std::thread::spawn(move || match keep_all(&file, &asked) {
        Ok(()) => {}
        // Dropping the senders closes the connections of the waiting requests.
        Err(error) => {
            eprintln!("bench: cannot write: {error}");
            std::process::exit(1);
        }
    });
    Ok(sender)
}

fn keep_all(file: &File, asked: &mpsc::Receiver<Asked>) -> io::Result<()> {
    let (mut pages, mut waiting, mut at) = (Vec::new(), Vec::new(), 0);
    while let Ok(first) = asked.recv() {
        for (body, answer) in std::iter::once(first).chain(asked.try_iter()) {
            pages.extend_from_slice(&body);
            waiting.push(answer);
        }
        pages.resize(pages.len().next_multiple_of(PAGE_BYTES), 0);
        if at + pages.len() as u64 > PREALLOCATED_BYTES {
            at = 0;
        }
        file.write_all_at(&pages, at)?;
        file.sync_data()?;
        at += pages.len() as u64;
        pages.clear();
        // A request whose connection is closed is ignored.
        waiting.drain(..).for_each(|answer| _ = answer.send(()));
    }
    Ok(())
}

/// Serves `POST /echo`; returns only on failure.
pub(super) fn serve(listener: TcpListener, writer: mpsc::Sender<Asked>) -> Result<(), String> {
    let router = Router::new().route("/echo", post(keep)).layer(DefaultBodyLimit::disable());
    serve_router(listener, router.with_state(writer))
}

async fn keep(State(writer): State<mpsc::Sender<Asked>>, body: Bytes) -> Result<Bytes, StatusCode> {
    let (answer, durable) = oneshot::channel();
    let sent = writer.send((body.clone(), answer));
    sent.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    durable.await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(body)
}
