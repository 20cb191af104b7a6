//! The cost of an expression in instructions, with weir's and libpcap's compilers.

use serde::Serialize;
use weir::filter::Compiled;
use weir_filter::cbpf::Program;
use weir_native::Native;
use weir_native::libpcap::{Libpcap, Setup};

use super::{emit, print, print_json};
use crate::failure::Failure;
use crate::{link_types, style};

#[derive(Serialize)]
struct Costs<'a> {
    expression: &'a str,
    link_type: u16,
    /// Null: the expression is too large for classic BPF.
    cbpf: Option<Cost>,
    /// Null: libpcap is not installed, or rejects the expression.
    libpcap: Option<Cost>,
    /// Cost without libpcap's optimiser, which is known to miscompile.
    libpcap_unoptimised: Option<Cost>,
    /// Why there is no result from libpcap.
    libpcap_error: Option<String>,
    /// eBPF instructions, for XDP.
    ebpf_instructions: Option<usize>,
    native_bytes: Option<usize>,
    /// Number of tests in the graph from which all programs are generated.
    questions: usize,
}

/// Numbers of classic BPF instructions.
#[derive(Clone, Copy, Serialize)]
struct Cost {
    instructions: usize,
    /// Instructions executed on the longest path; null: the program has a loop.
    longest: Option<usize>,
    /// Average number of instructions executed, if both results of each test are equally likely.
    typical: Option<f64>,
}

pub(super) fn run(compiled: &Compiled, link_type: u16, json: bool, plainly: bool) -> Result<(), Failure> {
    let theirs = |optimise| libpcap(&compiled.text, &Setup { optimise, ..Setup::new(link_type) });
    let (optimised, unoptimised) = (theirs(true), theirs(false));
    let costs = Costs {
        expression: &compiled.text,
        link_type,
        cbpf: emit::program(compiled, plainly).ok().map(|program| Cost::of(&program, false)),
        libpcap_error: optimised.as_ref().err().cloned(),
        libpcap: optimised.ok(),
        libpcap_unoptimised: unoptimised.ok(),
        ebpf_instructions: emit::ebpf(compiled).ok().map(|program| program.instructions.len()),
        native_bytes: Native::new(&compiled.graph, &compiled.ast.sets).ok().map(|native| native.code_len()),
        questions: compiled.graph.nodes().len() - 2,
    };
    if json { print_json(&costs) } else { print(&costs.text()) }
}

fn libpcap(text: &str, setup: &Setup) -> Result<Cost, String> {
    let libpcap = Libpcap::open().map_err(|error| error.to_string())?;
    let program = libpcap.compile(text, setup).map_err(|error| format!("libpcap: {error}"))?;
    Ok(Cost::of(&program.classic(), program.may_loop()))
}

impl Cost {
    fn of(program: &Program, loops: bool) -> Self {
        let cost = program.cost();
        Self {
            instructions: program.len(),
            longest: (!loops).then_some(cost.longest),
            typical: (!loops).then_some(cost.typical),
        }
    }
}

impl Costs<'_> {
    fn text(&self) -> String {
        let paint = style::stdout();
        let mut lines = vec![
            format!("{} for {}", paint.bold(self.expression), link_types::name(self.link_type)),
            String::new(),
            paint.dim(format!(
                "{:30} {:>12} {:>13} {:>13}",
                "classic BPF", "instructions", "longest path", "typical path"
            )),
        ];
        let rows = [
            ("weir", self.cbpf),
            ("libpcap", self.libpcap),
            ("libpcap without its optimiser", self.libpcap_unoptimised),
        ];
        for (name, cost) in rows {
            if let Some(Cost { instructions, longest, typical }) = cost {
                let longest = longest.map_or_else(|| "a loop".to_owned(), |longest| longest.to_string());
                let typical = typical.map_or_else(String::new, |typical| format!("{typical:.1}"));
                lines.push(format!("{name:30} {instructions:>12} {longest:>13} {typical:>13}"));
            }
        }
        if self.cbpf.is_none() {
            lines.push(format!("{:30} too large", "weir"));
        }
        lines.extend(self.libpcap_error.as_ref().map(|error| paint.yellow(error)));
        lines.push(String::new());
        let others = [
            ("tests", Some(self.questions)),
            ("eBPF instructions, for XDP", self.ebpf_instructions),
            ("bytes of native code", self.native_bytes),
        ];
        for (name, count) in others {
            let count = count.map_or_else(|| "too large".to_owned(), |count| count.to_string());
            lines.push(format!("{name:30} {count:>12}"));
        }
        lines.join("\n") + "\n"
    }
}
