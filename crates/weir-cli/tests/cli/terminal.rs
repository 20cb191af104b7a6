//! A terminal for programs that look at theirs.

use std::process::Command;

use weir_lab::Network;

use crate::harness::{output, until};

/// A terminal: tmux, in which a command runs.
pub(crate) struct Terminal<'a> {
    network: &'a Network,
    socket: String,
}

impl<'a> Terminal<'a> {
    /// Returns whether tmux is installed; if not, the test is skipped.
    pub(crate) fn is_there() -> bool {
        let version = Command::new("tmux").arg("-V").output();
        version.map_err(|error| weir_skip::this_test(format_args!("tmux: {error}"))).is_ok()
    }

    pub(crate) fn start(network: &'a Network, socket: String, size: (u32, u32), command: &str) -> Self {
        let terminal = Self { network, socket };
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows, command]);
        terminal.tmux(&["set-option", "remain-on-exit", "on"]);
        terminal
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        let output = output(self.network, tmux.env_remove("TMUX").args(["-S", &self.socket]).args(args));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Presses keys, by the names that tmux has for them, or types text.
    pub(crate) fn types(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Its title.
    pub(crate) fn title(&self) -> String {
        self.tmux(&["display-message", "-p", "#{pane_title}"])
    }

    /// What it shows.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J"])
    }

    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_for_one_of(&[text]);
    }

    pub(crate) fn wait_for_one_of(&self, texts: &[&str]) {
        until(&format!("one of {texts:?} on the screen"), || {
            let screen = self.screen();
            if texts.iter().any(|text| screen.contains(text)) { Ok(()) } else { Err(screen) }
        });
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
