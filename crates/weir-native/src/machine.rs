//! Machine code: generation, memory, calls, and the functions it calls back.

use std::mem;
use std::sync::{Arc, Mutex};

use cranelift_codegen::Context;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, Signature, Type};
use cranelift_codegen::settings::{self, Configurable as _};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module as _, default_libcall_names};
use weir_filter::graph::{Graph, KEY_WORDS};

use crate::code::{self, Question};
use crate::table::{Table, pair, quad};
use crate::{Error, Memory};

/// Maximum number of ranges to compare one by one.
const MOST_COMPARED: usize = 6;

/// The signature of a filter: packet, captured bytes, bytes on the wire, six words of metadata. Returns an
/// answer ([`code::verdict`]).
type Code = unsafe extern "C" fn(*const u8, u64, u32, *const u32) -> u64;

/// The code of one filter.
pub(crate) struct Machine {
    /// Owns the memory. The lock only makes this `Sync`; nothing ever takes it.
    _module: Mutex<Module>,
    function: Function,
    code_len: usize,
}

/// Code that may be called while its [`Machine`] exists.
#[derive(Clone, Copy)]
pub(crate) struct Function(Code);

impl Function {
    #[inline]
    pub(crate) fn call(self, data: &[u8], length: u32, metadata: &[u32; 6]) -> u64 {
        // SAFETY: N1, N2; the length is that of the slice, and no pointer is kept.
        unsafe { (self.0)(data.as_ptr(), data.len() as u64, length, metadata.as_ptr()) }
    }
}

impl Machine {
    pub(crate) fn new(graph: &Graph, questions: &[Option<Question>]) -> Result<Self, Error> {
        let mut module = Module::new()?;
        let (function, code_len) = fill(module.get(), graph, questions)?;
        Ok(Self { _module: Mutex::new(module), function, code_len })
    }

    #[inline]
    pub(crate) fn function(&self) -> Function {
        self.function
    }

    pub(crate) fn code_len(&self) -> usize {
        self.code_len
    }
}

/// Returns the code in the notation of Cranelift's assembler.
pub(crate) fn listing(graph: &Graph, questions: &[Option<Question>]) -> Result<String, Error> {
    let (_, context) = define(Module::new()?.get(), graph, questions, true)?;
    let listing = context.compiled_code().and_then(|code| code.vcode.clone());
    listing.ok_or_else(|| Error::Code("Cranelift gives no listing".to_owned()))
}

/// Memory for code, freed on drop.
struct Module(Option<JITModule>);

impl Module {
    fn new() -> Result<Self, Error> {
        Ok(Self(Some(JITModule::new(builder()?))))
    }

    fn get(&mut self) -> &mut JITModule {
        self.0.as_mut().expect("it is there until this is dropped")
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Some(module) = self.0.take() {
            // SAFETY: N1: either nothing has an address in it, or whatever could call the code borrowed from a
            // `Native`, which is gone.
            unsafe { module.free_memory() };
        }
    }
}

fn builder() -> Result<JITBuilder, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Processor(error.to_string());
    let mut flags = settings::builder();
    let verifier = if cfg!(debug_assertions) { "true" } else { "false" };
    let chosen = [
        ("opt_level", "speed"),
        ("enable_verifier", verifier),
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("unwind_info", "false"),
        // The function needs no more than the usual stack.
        ("enable_probestack", "false"),
    ];
    for (name, value) in chosen {
        flags.set(name, value).map_err(|error| failed(&error))?;
    }
    let target = cranelift_native::builder().map_err(|error| failed(&error))?;
    let target = target.finish(settings::Flags::new(flags)).map_err(|error| failed(&error))?;
    if target.pointer_type() != I64 {
        return Err(Error::Processor("addresses have no 64 bits".to_owned()));
    }
    Ok(JITBuilder::with_isa(target, default_libcall_names()))
}

/// Compiles a graph; returns the function and its length in bytes.
fn fill(
    module: &mut JITModule,
    graph: &Graph,
    questions: &[Option<Question>],
) -> Result<(Function, usize), Error> {
    let (id, context) = define(module, graph, questions, false)?;
    let code_len = context.compiled_code().map_or(0, |code| code.code_buffer().len());
    // The code is complete by now. What is left is to protect its memory.
    module.finalize_definitions().map_err(|_| Error::NotExecutable)?;
    let address = module.get_finalized_function(id);
    // SAFETY: N1: the function was declared with this signature, in the C calling convention of this machine.
    let code = unsafe { mem::transmute::<*const u8, Code>(address) };
    Ok((Function(code), code_len))
}

/// Defines the function, whose memory is not executable yet; with a listing if requested.
fn define(
    module: &mut JITModule,
    graph: &Graph,
    questions: &[Option<Question>],
    listing: bool,
) -> Result<(FuncId, Context), Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Code(error.to_string());
    let mut context = module.make_context();
    context.set_disasm(listing);
    context.func.signature = signature(module, &[I64, I64, I32, I64], I64);
    let id = module.declare_anonymous_function(&context.func.signature).map_err(|error| failed(&error))?;
    let mut parts = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut parts);
    let calls: Vec<_> = (0..=KEY_WORDS)
        .map(|words| {
            let signature = signature(module, &[&[I64][..], &[I32; KEY_WORDS][..words]].concat(), I32);
            builder.import_signature(signature)
        })
        .collect();
    code::emit(graph, questions, &mut builder, &calls);
    builder.finalize(module.isa().frontend_config());
    module.define_function(id, &mut context).map_err(|error| failed(&error))?;
    Ok((id, context))
}

fn signature(module: &JITModule, parameters: &[Type], returns: Type) -> Signature {
    let mut signature = module.make_signature();
    signature.params.extend(parameters.iter().map(|&kind| AbiParam::new(kind)));
    signature.returns.push(AbiParam::new(returns));
    signature
}

/// Chooses how code looks a set up, and returns the memory that must be kept for it.
pub(crate) fn question(table: Table) -> (Option<Question>, Option<Memory>) {
    if let Table::Words(ranges) = &table {
        if ranges.iter().len() <= MOST_COMPARED {
            return (Some(Question::Ranges(ranges.iter().collect())), None);
        }
        if ranges.iter().all(|(_, end)| end <= 0xffff) {
            let mut bits = [0_u32; 1 << 11];
            for number in ranges.iter().flat_map(|(start, end)| start..=end) {
                bits[(number >> 5) as usize] |= 1 << (number & 31);
            }
            let bits = Arc::new(bits);
            return (Some(Question::Bit(address(Arc::as_ptr(&bits)))), Some(bits));
        }
    }
    let (function, words) = match &table {
        Table::Words(_) => (address(has_word as *const ()), 1),
        Table::Pairs(_) => (address(has_pair as *const ()), 2),
        Table::Quads(_) => (address(has_quad as *const ()), 4),
    };
    let table = Arc::new(table);
    (Some(Question::Call { function, table: address(Arc::as_ptr(&table)), words }), Some(table))
}

fn address<T>(pointer: *const T) -> i64 {
    (pointer.expose_provenance() as u64).cast_signed()
}

// N2: code calls these with a table of its own filter, which is alive.

extern "C" fn has_word(table: &Table, key: u32) -> u32 {
    matches!(table, Table::Words(ranges) if ranges.contains(key)).into()
}

extern "C" fn has_pair(table: &Table, first: u32, second: u32) -> u32 {
    matches!(table, Table::Pairs(ranges) if ranges.contains(pair([first, second]))).into()
}

extern "C" fn has_quad(table: &Table, first: u32, second: u32, third: u32, fourth: u32) -> u32 {
    matches!(table, Table::Quads(ranges) if ranges.contains(quad([first, second, third, fourth]))).into()
}
