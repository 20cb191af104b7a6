//! Shell commands in messages. Pasted into a shell, they work on the right interface, in its network namespace.

use std::path::Path;

/// Directories with named namespaces: of `ip netns`, and of Docker's containers.
pub(crate) const DIRECTORIES: [&str; 2] = ["/run/netns", "/var/run/docker/netns"];

/// Returns the words that run a command in the namespace of the interface that a capture calls `label` (`eth0`,
/// `web/eth0`, `4711/eth0`, `/run/netns/web/eth0`), followed by a space if there are any. Also returns the interface's
/// own name, as a word of the shell.
///
/// ```
/// let (inside, name) = weir::parts::command::place("4711/eth0");
/// assert_eq!(format!("{inside}ip link set {name} up"), "nsenter -t 4711 -n ip link set eth0 up");
/// ```
pub fn place(label: &str) -> (String, String) {
    place_among(DIRECTORIES.map(Path::new), label)
}

/// Does the same for named namespaces in these directories: the one of `ip netns`, and Docker's.
fn place_among(directories: [&Path; 2], label: &str) -> (String, String) {
    let Some((namespace, interface)) = label.rsplit_once('/') else { return (String::new(), word(label)) };
    let [of_ip, of_docker] = directories.map(|directory| directory.join(namespace));
    let inside = if is_process(namespace) {
        format!("nsenter -t {namespace} -n ")
    } else if namespace.contains('/') {
        format!("nsenter {} ", word(&format!("--net={namespace}")))
    } else if !of_ip.exists() && of_docker.exists() {
        format!("nsenter {} ", word(&format!("--net={}", of_docker.display())))
    } else {
        format!("ip netns exec {} ", word(namespace))
    };
    (inside, word(interface))
}

/// Returns whether `name` is a process ID.
pub(crate) fn is_process(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Quotes `text` as one word of a shell, if necessary.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:+=,%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_for_the_namespace() {
        let told = |label| {
            let (inside, name) = place(label);
            format!("{inside}ip link show {name}")
        };
        assert_eq!(told("eth0"), "ip link show eth0");
        assert_eq!(told("web/eth0"), "ip netns exec web ip link show eth0");
        assert_eq!(told("47/eth0"), "nsenter -t 47 -n ip link show eth0");
        assert_eq!(told("/run/x/web/eth0"), "nsenter --net=/run/x/web ip link show eth0");
    }

    #[test]
    fn those_that_ip_does_not_know_are_entered_by_their_file() {
        let (ip, docker) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let inside = || place_among([ip.path(), docker.path()], "1a2b/eth0").0;
        assert_eq!(inside(), "ip netns exec 1a2b ");
        std::fs::write(docker.path().join("1a2b"), "").unwrap();
        assert_eq!(inside(), format!("nsenter --net={}/1a2b ", docker.path().display()));
        std::fs::write(ip.path().join("1a2b"), "").unwrap();
        assert_eq!(inside(), "ip netns exec 1a2b ");
    }

    #[test]
    fn names_are_one_word_each_whatever_is_in_them() {
        for (text, told) in
            [("eth0.5", "eth0.5"), ("br-a_b@c", "br-a_b@c"), ("", "''"), ("a;reboot", "'a;reboot'")]
        {
            assert_eq!(word(text), told);
        }
        assert_eq!(word("$(a)'b"), r"'$(a)'\''b'");
        assert_eq!(place("/a b/c/x&y"), ("nsenter '--net=/a b/c' ".to_owned(), "'x&y'".to_owned()));
    }
}
