//! The baseline of a round trip: 100 bytes to a loopback connection and back, without a protocol.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::load::Times;

const BYTES: usize = 100;

/// Returns all bytes to their sender; runs until the process ends.
pub(super) fn serve(listener: &TcpListener) {
    for stream in listener.incoming() {
        let ended = stream.and_then(echo);
        if let Err(error) = ended {
            eprintln!("a connection ended: {error}");
        }
    }
}

fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; BYTES];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            count => stream.write_all(&buffer[..count])?,
        }
    }
}

/// Makes round trips with `address` for `span`. Returns the time of each.
pub fn measure(address: SocketAddr, span: Duration) -> Result<Times, String> {
    let exchange = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let (mut buffer, mut times, ends) = ([7; BYTES], Times::new(), Instant::now() + span);
        while Instant::now() < ends {
            let began = Instant::now();
            stream.write_all(&buffer)?;
            stream.read_exact(&mut buffer)?;
            times.add(began.elapsed());
        }
        Ok(times)
    };
    exchange().map_err(|error: std::io::Error| format!("loopback: {error}"))
}
