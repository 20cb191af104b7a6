//! Compiles each `src/*.bpf.c` with clang, with the numbers of protocols that `weir-packet` has, and generates its typed
//! skeleton.

use std::path::{Path, PathBuf};
use std::{env, fs};

use libbpf_cargo::SkeletonBuilder;

/// What only the feature `lab` has.
const LAB: [&str; 6] = ["bare", "inline", "lab", "limit", "tag", "xsk"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    println!("cargo:rerun-if-changed=src");
    fs::write(out.join("numbers.h"), weir_packet::c_header()).expect("OUT_DIR can be written to");
    for entry in fs::read_dir("src").expect("src is readable") {
        let source = entry.expect("src is readable").path();
        let Some(name) = source.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".bpf.c"))
        else {
            continue;
        };
        if LAB.contains(&name) && env::var_os("CARGO_FEATURE_LAB").is_none() {
            continue;
        }
        build(&source, &out.join(format!("{name}.bpf.o")), &out.join(format!("{name}.skel.rs")));
    }
}

/// Debian keeps `asm/types.h`, which `linux/bpf.h` includes, in a folder that is named for the machine.
fn include() -> String {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target for build scripts");
    format!("-I/usr/include/{arch}-linux-gnu")
}

/// `numbers.h` is beside the object. `-mcpu=v3` (Linux 5.12) gives the atomic exchange that the pool's hand-over needs.
fn build(source: &Path, object: &Path, skeleton: &Path) {
    let numbers = format!("-I{}", object.parent().expect("a folder").display());
    SkeletonBuilder::new()
        .source(source)
        .obj(object)
        .clang_args([
            &include(),
            &numbers,
            "-mcpu=v3",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
        ])
        // A path without a program leaves the skeleton unformatted: not every toolchain has rustfmt.
        .rustfmt("no-rustfmt")
        .build_and_generate(skeleton)
        .unwrap_or_else(|error| panic!("compiling {} with clang: {error:#}", source.display()));
}
