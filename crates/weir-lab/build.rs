//! Compiles each `bpf/*.bpf.c` as weir-bpf compiles its programs, whose headers they include, and generates its typed
//! skeleton.

use std::path::PathBuf;
use std::{env, fs};

use libbpf_cargo::SkeletonBuilder;

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    if cfg!(not(feature = "hooks")) {
        return;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    println!(
        "cargo::rerun-if-changed={}",
        env::var("DEP_WEIR_BPF_HEADERS").expect("weir-bpf says where they are")
    );
    let arguments = env::var("DEP_WEIR_BPF_CLANG").expect("weir-bpf says how it compiles");
    for entry in fs::read_dir("bpf").expect("bpf is readable") {
        let source = entry.expect("bpf is readable").path();
        let name = source.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".bpf.c"));
        let Some(name) = name else { continue };
        SkeletonBuilder::new()
            .source(&source)
            .obj(out.join(format!("{name}.bpf.o")))
            .clang_args(arguments.split('\t'))
            .rustfmt("no-rustfmt")
            .build_and_generate(out.join(format!("{name}.skel.rs")))
            .unwrap_or_else(|error| panic!("compiling {} with clang: {error:#}", source.display()));
    }
}
