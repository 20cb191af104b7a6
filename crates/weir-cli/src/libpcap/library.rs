//! Where the library is: it is installed with `weir`, or built next to it.

use std::env;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The name of the library's file.
pub(super) const FILE: &str = "libweir_pcap.so";

/// Returns the path of the library that belongs to this program.
pub(super) fn find() -> Result<PathBuf, Failure> {
    let weir = env::current_exe()
        .map_err(|error| Failure::new(format_args!("cannot find the weir program: {error}")))?;
    let places = places(&weir);
    places.iter().find(|place| place.is_file()).cloned().ok_or_else(|| {
        let [installed, built] = places.each_ref().map(|place| place.display());
        let copy =
            "copy target/release/libweir_pcap.so to one of these places, or install the Debian package";
        Failure::new(format_args!("cannot find weir's libpcap: neither {installed} nor {built} exists"))
            .hint(format!("run `cargo build --release -p weir-pcap` and {copy} (make deb)"))
    })
}

/// Returns the places for the library of the program `weir`: in an installation, and in a build tree.
fn places(weir: &Path) -> [PathBuf; 2] {
    let directory = weir.parent().unwrap_or(weir);
    let prefix = directory.parent().unwrap_or(directory);
    [prefix.join("lib/weir").join(FILE), directory.join(FILE)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_installed_or_built_beside_the_program() {
        let shown = |weir: &str| places(Path::new(weir)).map(|place| place.display().to_string());
        assert_eq!(shown("/usr/bin/weir"), ["/usr/lib/weir/libweir_pcap.so", "/usr/bin/libweir_pcap.so"]);
        assert_eq!(shown("/weir"), ["/lib/weir/libweir_pcap.so", "/libweir_pcap.so"]);
        let built = "/src/target/release/libweir_pcap.so";
        assert_eq!(shown("/src/target/release/weir")[1], built);
    }
}
