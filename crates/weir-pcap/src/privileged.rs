//! Programs with more rights than their users: setuid, setgid, or with file capabilities.
//!
//! libpcap lets such a program pass on what its user names as a device. So nothing that libpcap would not do may be asked
//! for by a name or a variable: no XDP program on the interface, no packets taken from the host, no file opened.

/// Returns whether this process is such a program (`AT_SECURE`).
pub(crate) fn is() -> bool {
    // SAFETY: it reads what the kernel told the process at its start.
    let secure = unsafe { libc::getauxval(libc::AT_SECURE) };
    secure != 0
}

/// Refuses to open a file that a source string or a filter names: the user may not be allowed to.
///
/// # Errors
///
/// This process is such a program.
pub(crate) fn refuse_file(name: &[u8]) -> Result<(), String> {
    if is() {
        let name = String::from_utf8_lossy(name);
        return Err(format!(
            "cannot open {name}: this program has more privileges than its user, who must not choose a file"
        ));
    }
    Ok(())
}
