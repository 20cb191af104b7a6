//! versitygw, an S3 store on a directory. Its keys are `weir` and `a secret`.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The bucket, in the gateway a directory.
pub(crate) const BUCKET: &str = "lake";

pub(crate) struct Gateway {
    child: Child,
    pub(crate) port: u16,
}

impl Gateway {
    /// Starts it on a directory, and waits until it listens.
    pub(crate) fn start(store: &Path, port: Option<u16>) -> Self {
        let free = || TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = port.unwrap_or_else(|| free().expect("a free port").port());
        let program = std::env::var_os("VERSITYGW").expect("VERSITYGW: run `make test-s3`");
        let child = Command::new(program)
            .args(["--port", &format!("127.0.0.1:{port}"), "posix"])
            .arg(store)
            .envs([("ROOT_ACCESS_KEY", "weir"), ("ROOT_SECRET_KEY", "a secret")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "it does not listen");
            sleep(Duration::from_millis(20));
        }
        Self { child, port }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _over = self.child.kill().and_then(|()| self.child.wait());
    }
}
