//! Names the library as Debian's programs ask for it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libpcap.so.0.8");
}
