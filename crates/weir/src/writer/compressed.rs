//! Compression in front of an output: threads compress each request into a frame, and frames are written in order.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, available_parallelism};
use std::time::Duration;

use weir_sys::thread::spawn_deaf;

use super::frame::{Around, Codec};
use super::resume_point::ResumePoint;
use super::write_request::{Content, Data, WriteRequest};
use super::{Compression, Output, Written};

/// More threads would compress faster than a disk writes.
const MOST_THREADS: usize = 4;

pub(super) struct Compressed {
    output: Box<dyn Output>,
    /// `None` once the threads should end.
    jobs: Option<Sender<Job>>,
    done: Receiver<Done>,
    threads: Vec<JoinHandle<()>>,
    /// The requests being compressed, in order; a finished one waits here for its turn.
    waiting: VecDeque<Option<Done>>,
    /// Number of the first request in `waiting`.
    first: u64,
    around: Around,
    spare: Option<Vec<u8>>,
    /// The output is left alone.
    failed: bool,
}

struct Job {
    number: u64,
    request: WriteRequest,
    /// The buffer for the frame.
    out: Vec<u8>,
}

struct Done {
    number: u64,
    result: io::Result<()>,
    frame: Vec<u8>,
    /// Its size before compression.
    plain: u64,
    content: Content,
    /// The buffer of the request, if it had one; a chunk has gone back to its pool.
    buffer: Option<Vec<u8>>,
}

impl Compressed {
    /// `compression` is not [`Compression::None`].
    pub(super) fn new(output: Box<dyn Output>, compression: Compression) -> io::Result<Self> {
        let (jobs, queue) = channel();
        let (results, done) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let number = available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let threads = (0..number).map(|_| {
            let (queue, results) = (Arc::clone(&queue), results.clone());
            let codec = Codec::new(compression)?.ok_or(io::ErrorKind::InvalidInput)?;
            spawn_deaf("weir-compress", move || work(&queue, &results, codec))
        });
        let threads = threads.collect::<io::Result<_>>()?;
        Ok(Self {
            output,
            jobs: Some(jobs),
            done,
            threads,
            waiting: VecDeque::new(),
            first: 0,
            around: Around::of(compression),
            spare: None,
            failed: false,
        })
    }

    /// Continues a file, from [`Output::pause`].
    pub(super) fn with_around(mut self, around: Option<Around>) -> Self {
        if let Some(around) = around {
            self.around = around;
        }
        self
    }

    /// Waits until at most `most` requests are in progress.
    fn wait(&mut self, most: usize) -> io::Result<()> {
        while self.waiting.len() > most {
            let done = self.done.recv().map_err(|_| io::Error::other("a compression thread has ended"))?;
            self.place(done)?;
        }
        Ok(())
    }

    /// Stores a finished frame, and writes all frames whose turn it is.
    fn place(&mut self, done: Done) -> io::Result<()> {
        let at = usize::try_from(done.number - self.first).expect("numbers of requests on their way");
        self.waiting[at] = Some(done);
        while let Some(Some(_)) = self.waiting.front() {
            let Some(Some(mut done)) = self.waiting.pop_front() else { unreachable!("it was looked at") };
            self.first += 1;
            self.spare = done.buffer.or_else(|| self.spare.take());
            done.result?;
            self.around.push(&mut done.frame, done.plain);
            let data = Data::Frame { bytes: done.frame, plain: done.plain };
            self.output.put(WriteRequest { data, content: done.content })?;
        }
        Ok(())
    }
}

/// Runs one thread, until there are no more jobs.
fn work(queue: &Mutex<Receiver<Job>>, results: &Sender<Done>, mut codec: Codec) {
    loop {
        // The thread waiting for a job holds the lock; the others wait for the lock.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { number, mut request, mut out }) = job else { return };
        let plain = request.data.as_ref().len() as u64;
        // If a panic ended the thread, its frame would never arrive.
        let result = catch_unwind(AssertUnwindSafe(|| codec.frame(request.data.as_ref(), &mut out)))
            .unwrap_or_else(|_| Err(io::Error::other("a compression thread died")));
        let content = std::mem::take(&mut request.content);
        let done = Done { number, result, frame: out, plain, content, buffer: request.into_buffer() };
        if results.send(done).is_err() {
            return;
        }
    }
}

impl Output for Compressed {
    fn put(&mut self, request: WriteRequest) -> io::Result<()> {
        while let Ok(done) = self.done.try_recv() {
            self.place(done)?;
        }
        self.wait(self.threads.len() * 2)?;
        let job = Job { number: self.first + self.waiting.len() as u64, request, out: self.output.buffer() };
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        assert!(sent, "the queue is there as long as this is");
        self.waiting.push_back(None);
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        self.wait(0)?;
        self.output.settle()
    }

    fn settle_within(&mut self, longest: Duration) -> io::Result<()> {
        self.wait(0)?;
        self.output.settle_within(longest)
    }

    fn is_behind(&self) -> bool {
        self.output.is_behind()
    }

    fn close(&mut self) -> io::Result<()> {
        self.settle()?;
        if let Some(bytes) = std::mem::replace(&mut self.around, Around::Nothing).end() {
            self.output.put(Data::Frame { bytes, plain: 0 }.into())?;
        }
        self.output.close()
    }

    fn pause(&mut self) -> io::Result<Option<ResumePoint>> {
        self.settle()?;
        let state = self.output.pause()?;
        let around = std::mem::replace(&mut self.around, Around::Nothing);
        Ok(state.map(|state| ResumePoint { around: Some(around), ..state }))
    }

    fn empty(&mut self) -> io::Result<bool> {
        self.settle()?;
        let emptied = self.output.empty()?;
        if emptied {
            self.around.clear();
        }
        Ok(emptied)
    }

    fn recover(&mut self) -> bool {
        while self.waiting.iter().any(Option::is_none) {
            let Ok(done) = self.done.recv() else { return false };
            let at = usize::try_from(done.number - self.first).expect("numbers of requests on their way");
            self.waiting[at] = Some(done);
        }
        self.first += self.waiting.len() as u64;
        self.waiting.clear();
        let recovered = self.output.recover();
        self.around.keep(self.output.written().bytes);
        recovered
    }

    fn give_up(&mut self) {
        self.failed = true;
        if let Some(bytes) = self.around.cut() {
            let _ = self.output.put(Data::Frame { bytes, plain: 0 }.into());
        }
    }

    fn written(&self) -> &Written {
        self.output.written()
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.spare.take().unwrap_or_default()
    }
}

impl Drop for Compressed {
    /// Leaves whole frames, even if the writer was not finished.
    fn drop(&mut self) {
        if !self.failed
            && self.settle().is_ok()
            && let Some(bytes) = self.around.cut()
        {
            let _ = self.output.put(Data::Frame { bytes, plain: 0 }.into());
        }
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
