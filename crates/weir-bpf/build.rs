//! Compiles each `.bpf.c` below `bpf` with clang, with the numbers of protocols that `weir-packet` has, and generates its typed
//! skeleton.

use std::path::{Path, PathBuf};
use std::{env, fs};

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    let headers = env::current_dir().expect("cargo starts build scripts in the crate").join("bpf");
    println!("cargo::rerun-if-changed=bpf");
    fs::write(out.join("numbers.h"), weir_packet::c_header()).expect("OUT_DIR can be written to");
    let arguments = arguments(&[&headers, &out]);
    // For the build of weir-lab, which has programs of its own.
    println!("cargo::metadata=headers={}", headers.display());
    println!("cargo::metadata=clang={}", arguments.join("\t"));
    build_all(Path::new("bpf"), &arguments, &out);
}

/// Builds the programs in a folder and in those below it.
fn build_all(folder: &Path, arguments: &[String], out: &Path) {
    for entry in fs::read_dir(folder).expect("bpf is readable") {
        let path = entry.expect("bpf is readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            build_all(&path, arguments, out);
        } else if let Some(name) = name.strip_suffix(".bpf.c") {
            let (object, skeleton) = (format!("{name}.bpf.o"), format!("{name}.skel.rs"));
            build(&path, arguments, &out.join(object), &out.join(skeleton));
        }
    }
}

/// Returns clang's arguments. Debian keeps `asm/types.h`, which `linux/bpf.h` includes, in a folder that is named for the
/// machine. `-mcpu=v3` (Linux 5.12) gives the atomic exchange that the pool's hand-over needs.
fn arguments(headers: &[&Path]) -> Vec<String> {
    let machine = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target for build scripts");
    let system = format!("-I/usr/include/{machine}-linux-gnu");
    let ours = headers.iter().map(|folder| format!("-I{}", folder.display()));
    let others = ["-mcpu=v3", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"].map(str::to_owned);
    [system].into_iter().chain(ours).chain(others).collect()
}

fn build(source: &Path, arguments: &[String], object: &Path, skeleton: &Path) {
    SkeletonBuilder::new()
        .source(source)
        .obj(object)
        .clang_args(arguments)
        // A path without a program leaves the skeleton unformatted: not every toolchain has rustfmt.
        .rustfmt("no-rustfmt")
        .build_and_generate(skeleton)
        .unwrap_or_else(|error| panic!("compiling {} with clang: {error:#}", source.display()));
}
