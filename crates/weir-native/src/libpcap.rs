//! The system's libpcap, loaded at run time: its filter compiler and interpreter, to compare weir's with. Nothing else
//! needs it.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use libloading::Library;
use weir_filter::cbpf;

/// A classic BPF instruction: `code`, `jt`, `jf` and `k` of `struct bpf_insn` (pcap/bpf.h), which has the layout of
/// `struct sock_filter` (linux/filter.h).
pub type Instruction = (u16, u8, u8, u32);

/// `struct pcap_t`, opaque here.
type Pcap = c_void;

/// `struct bpf_program` (pcap/bpf.h).
#[repr(C)]
struct BpfProgram {
    length: c_uint,
    instructions: *mut libc::sock_filter,
}

/// `struct pcap_pkthdr` (pcap/pcap.h).
#[repr(C)]
struct PacketHeader {
    time: libc::timeval,
    captured: u32,
    length: u32,
}

type OpenFile = unsafe extern "C" fn(*mut libc::FILE, *mut c_char) -> *mut Pcap;
type Close = unsafe extern "C" fn(*mut Pcap);
type Compile = unsafe extern "C" fn(*mut Pcap, *mut BpfProgram, *const c_char, c_int, u32) -> c_int;
type GetError = unsafe extern "C" fn(*mut Pcap) -> *mut c_char;
type FreeCode = unsafe extern "C" fn(*mut BpfProgram);
type Validate = unsafe extern "C" fn(*const libc::sock_filter, c_int) -> c_int;
type OfflineFilter = unsafe extern "C" fn(*const BpfProgram, *const PacketHeader, *const u8) -> c_int;
type Image = unsafe extern "C" fn(*const libc::sock_filter, c_int) -> *const c_char;
type Version = unsafe extern "C" fn() -> *const c_char;

/// Serializes calls: name lookups use static buffers of the C library (getservbyname(3), getprotobyname(3)), and
/// bpf_image writes to one of its own.
static COMPILING: Mutex<()> = Mutex::new(());

/// Bytes of a message buffer (`PCAP_ERRBUF_SIZE`).
const ERROR_BUFFER: usize = 256;
/// The IPv4 netmask is unknown (`PCAP_NETMASK_UNKNOWN`).
const NETMASK_UNKNOWN: u32 = u32::MAX;

/// An error loading libpcap.
#[derive(Debug, thiserror::Error)]
#[error("cannot load libpcap: {0}; try apt-get install libpcap0.8")]
pub struct LibpcapError(#[from] libloading::Error);

/// The target that libpcap compiles for.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// A `LINKTYPE_` number, as used in files.
    pub link_type: u16,
    /// Bytes to which a matching packet is cut.
    pub snap_len: u32,
    /// The file comes from a machine with the other byte order.
    pub swapped: bool,
    /// Whether the optimiser runs.
    pub optimise: bool,
    /// Netmask of the interface's IPv4 network.
    pub netmask: Option<u32>,
}

impl Setup {
    /// Returns a setup for files of this machine, without the optimiser.
    pub fn new(link_type: u16) -> Self {
        Self { link_type, snap_len: 262_144, swapped: false, optimise: false, netmask: None }
    }
}

/// A program that libpcap's interpreter can run: its jumps and memory accesses are valid.
#[derive(Clone, Debug)]
pub struct Program {
    instructions: Vec<libc::sock_filter>,
}

impl Program {
    /// Returns the program's instructions.
    pub fn instructions(&self) -> Vec<Instruction> {
        self.instructions.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect()
    }

    /// Returns the program as weir's own, to list it or to count what it costs.
    pub fn classic(&self) -> cbpf::Program {
        let instruction =
            |i: &libc::sock_filter| cbpf::Instruction { code: i.code, jt: i.jt, jf: i.jf, k: i.k };
        cbpf::Program { instructions: self.instructions.iter().map(instruction).collect() }
    }

    /// Returns whether the program jumps back, as `protochain` does. Such a program may never end: after an
    /// authentication header, libpcap 1.10 loses its position and can loop forever.
    pub fn may_loop(&self) -> bool {
        const JUMP: u16 = 0x05;
        self.instructions.iter().any(|i| i.code == JUMP && i.k.cast_signed() < 0)
    }
}

/// The system's libpcap.
#[derive(Debug)]
pub struct Libpcap {
    open_file: OpenFile,
    close: Close,
    compile: Compile,
    get_error: GetError,
    free_code: FreeCode,
    validate: Validate,
    offline_filter: OfflineFilter,
    image: Image,
    version: Version,
    /// The library with the functions above; it stays loaded while they can be called.
    _library: Library,
}

impl Libpcap {
    /// Loads libpcap.
    ///
    /// # Errors
    ///
    /// libpcap is not installed, or the library is not libpcap.
    pub fn open() -> Result<Self, LibpcapError> {
        // SAFETY: libpcap has no constructors with requirements.
        let debian = unsafe { Library::new("libpcap.so.0.8") };
        // SAFETY: as above.
        let library = debian.or_else(|_| unsafe { Library::new("libpcap.so.1") })?;
        Ok(Self {
            // SAFETY: the type matches the function's declaration in pcap/pcap.h.
            open_file: *unsafe { library.get(b"pcap_fopen_offline\0") }?,
            // SAFETY: the type matches the function's declaration in pcap/pcap.h.
            close: *unsafe { library.get(b"pcap_close\0") }?,
            // SAFETY: the type matches the function's declaration in pcap/pcap.h.
            compile: *unsafe { library.get(b"pcap_compile\0") }?,
            // SAFETY: the type matches the function's declaration in pcap/pcap.h.
            get_error: *unsafe { library.get(b"pcap_geterr\0") }?,
            // SAFETY: the type matches the function's declaration in pcap/pcap.h.
            free_code: *unsafe { library.get(b"pcap_freecode\0") }?,
            // SAFETY: the type matches the function's declaration in pcap/bpf.h.
            validate: *unsafe { library.get(b"bpf_validate\0") }?,
            // SAFETY: the type matches the function's declaration in pcap/pcap.h.
            offline_filter: *unsafe { library.get(b"pcap_offline_filter\0") }?,
            // SAFETY: the type matches the function's declaration in pcap/bpf.h.
            image: *unsafe { library.get(b"bpf_image\0") }?,
            // SAFETY: the type matches the function's declaration in pcap/pcap.h.
            version: *unsafe { library.get(b"pcap_lib_version\0") }?,
            _library: library,
        })
    }

    /// Returns libpcap's version string, such as "libpcap version 1.10.3 (with TPACKET_V3)".
    pub fn version(&self) -> String {
        // SAFETY: the function takes no arguments, and the library is loaded.
        let version = unsafe { (self.version)() };
        // SAFETY: it returns a string that is never freed.
        unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
    }

    /// Compiles `text` for files with the setup's link type.
    ///
    /// # Errors
    ///
    /// libpcap's message.
    pub fn compile(&self, text: &str, setup: &Setup) -> Result<Program, String> {
        let text = CString::new(text).map_err(|_| "a zero byte in the text".to_owned())?;
        let mut header = file_header(setup);
        let handle = self.open_file(&mut header)?;
        let mut program = BpfProgram { length: 0, instructions: ptr::null_mut() };
        let netmask = setup.netmask.unwrap_or(NETMASK_UNKNOWN);
        let guard = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the handle is open, the text ends with a zero, and `program` is valid for the call to write to.
        let status = unsafe {
            (self.compile)(handle.pcap, &raw mut program, text.as_ptr(), setup.optimise.into(), netmask)
        };
        drop(guard);
        if status != 0 {
            // SAFETY: the handle is open.
            let message = unsafe { (self.get_error)(handle.pcap) };
            // SAFETY: it returns a string in the handle, which is open until the end of this function.
            return Err(unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned());
        }
        // SAFETY: a successful call has set both fields; `program` owns the instructions until they are freed.
        let made = unsafe { std::slice::from_raw_parts(program.instructions, program.length as usize) };
        let instructions = made.to_vec();
        // SAFETY: `program` was filled by `pcap_compile`, and `made` is not used any more.
        unsafe { (self.free_code)(&raw mut program) };
        Ok(Program { instructions })
    }

    /// Accepts a program from another compiler.
    ///
    /// # Errors
    ///
    /// libpcap considers the program invalid.
    pub fn program(&self, instructions: &[Instruction]) -> Result<Program, String> {
        let instructions = raw(instructions);
        let length = c_int::try_from(instructions.len()).map_err(|_| "too many instructions".to_owned())?;
        // SAFETY: the pointer refers to `length` instructions.
        let valid = unsafe { (self.validate)(instructions.as_ptr(), length) };
        if valid == 0 {
            return Err("libpcap rejects the program".to_owned());
        }
        Ok(Program { instructions })
    }

    /// Runs the program on a packet of `length` bytes, of which `data` was captured. Returns 0 if the packet does not
    /// match. This takes as long as the program runs, possibly forever: see [`Program::may_loop`].
    pub fn run(&self, program: &Program, length: u32, data: &[u8]) -> u32 {
        let captured = u32::try_from(data.len()).expect("a packet is shorter than 4 GiB");
        let time = libc::timeval { tv_sec: 0, tv_usec: 0 };
        let header = PacketHeader { time, captured, length };
        let count = c_uint::try_from(program.instructions.len()).expect("its length was an `int`");
        let program = BpfProgram { length: count, instructions: program.instructions.as_ptr().cast_mut() };
        // SAFETY: the interpreter reads the program, which is valid (from `pcap_compile`, or checked), and the packet
        // within the lengths in the header. It writes to neither.
        let answer = unsafe { (self.offline_filter)(&raw const program, &raw const header, data.as_ptr()) };
        answer.cast_unsigned()
    }

    /// Formats the `at`-th instruction of a program, as `tcpdump -d` prints it.
    pub fn image(&self, instruction: Instruction, at: u16) -> String {
        let _one_at_a_time = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
        let instruction = raw(&[instruction]);
        // SAFETY: the pointer refers to one instruction; the text is written to a buffer of libpcap, under the lock.
        let text = unsafe { (self.image)(instruction.as_ptr(), at.into()) };
        // SAFETY: the string is terminated, and no other is written while the lock is held.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    /// Opens a file that consists of the header alone.
    fn open_file(&self, header: &mut [u8]) -> Result<Handle<'_>, String> {
        let start: *mut c_void = header.as_mut_ptr().cast();
        // SAFETY: `header` has this length, and outlives the handle: see `compile`.
        let file = unsafe { libc::fmemopen(start, header.len(), c"rb".as_ptr()) };
        if file.is_null() {
            return Err("no memory for a file".to_owned());
        }
        let mut message: [c_char; ERROR_BUFFER] = [0; ERROR_BUFFER];
        // SAFETY: the file is open, and the buffer is as long as libpcap requires.
        let pcap = unsafe { (self.open_file)(file, message.as_mut_ptr()) };
        if pcap.is_null() {
            // SAFETY: libpcap leaves a file open that it rejects.
            unsafe { libc::fclose(file) };
            // SAFETY: libpcap writes a terminated string.
            return Err(unsafe { CStr::from_ptr(message.as_ptr()) }.to_string_lossy().into_owned());
        }
        Ok(Handle { libpcap: self, pcap })
    }
}

/// An open `pcap_t`. Dropping this closes it and its file.
struct Handle<'a> {
    libpcap: &'a Libpcap,
    pcap: *mut Pcap,
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and no longer used.
        unsafe { (self.libpcap.close)(self.pcap) }
    }
}

/// Returns the header of a pcap file (<https://www.tcpdump.org/manpages/pcap-savefile.5.html>). Going through a file
/// makes libpcap accept link types by their numbers in files, and either byte order.
fn file_header(setup: &Setup) -> Vec<u8> {
    let word = |number: u32| if setup.swapped { number.swap_bytes() } else { number }.to_ne_bytes();
    let half = |number: u16| if setup.swapped { number.swap_bytes() } else { number }.to_ne_bytes();
    let mut header = Vec::with_capacity(24);
    header.extend(word(0xa1b2_c3d4));
    header.extend(half(2));
    header.extend(half(4));
    header.extend(word(0));
    header.extend(word(0));
    header.extend(word(setup.snap_len));
    header.extend(word(setup.link_type.into()));
    header
}

fn raw(instructions: &[Instruction]) -> Vec<libc::sock_filter> {
    instructions.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect()
}
