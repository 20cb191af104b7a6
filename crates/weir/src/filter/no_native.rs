//! Replaces `weir-native` without the feature `jit`: every filter is interpreted.

use weir_filter::graph::Graph;
use weir_filter::interpret::Packet;
use weir_filter::set::Set;

/// Machine code, which never exists in this build.
#[derive(Debug)]
pub(super) enum Native {}

impl Native {
    pub(super) fn new(_: &Graph, _: &[Set]) -> Result<Self, &'static str> {
        Err("the program was built without the feature `jit` of the library weir")
    }

    pub(super) fn run(&self, _: &Packet<'_>) -> u32 {
        match *self {}
    }
}
