//! The programs that make the frames of `BPF_PROG_TEST_RUN`.

pub mod frames;
pub mod trace;
