//! The system's libpcap, loaded at run time: what its compiler makes of an expression, and what its interpreter answers.
//! For tests, benches and comparisons; nothing that captures needs it.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use libloading::Library;

/// An instruction of classic BPF: `code`, `jt`, `jf` and `k` of `struct bpf_insn` (pcap/bpf.h), which is laid out as
/// `struct sock_filter` (linux/filter.h).
pub type Instruction = (u16, u8, u8, u32);

/// `struct pcap_t`, of which nothing is known here.
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

/// Names are looked up in static buffers of the C library (getservbyname(3), getprotobyname(3)), and bpf_image writes to one.
static COMPILING: Mutex<()> = Mutex::new(());

/// Bytes of a buffer for messages (`PCAP_ERRBUF_SIZE`).
const ERROR_BUFFER: usize = 256;
/// No mask of an IPv4 network is known (`PCAP_NETMASK_UNKNOWN`).
const NETMASK_UNKNOWN: u32 = u32::MAX;

/// libpcap cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("libpcap cannot be loaded (Debian has it in libpcap0.8): {0}")]
pub struct LibpcapError(#[from] libloading::Error);

/// What libpcap compiles for.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// A `LINKTYPE_` number, as files have it.
    pub link_type: u16,
    /// Bytes that an accepted packet is cut to.
    pub snap_len: u32,
    /// The file comes from a machine of the other byte order.
    pub swapped: bool,
    /// Whether the optimiser runs.
    pub optimise: bool,
    /// Mask of the interface's IPv4 network.
    pub netmask: Option<u32>,
}

impl Setup {
    /// For files of this machine, without the optimiser.
    pub fn new(link_type: u16) -> Self {
        Self { link_type, snap_len: 262_144, swapped: false, optimise: false, netmask: None }
    }
}

/// A program that libpcap's interpreter can run: it neither jumps nor reaches out of itself.
#[derive(Clone, Debug)]
pub struct Program {
    instructions: Vec<libc::sock_filter>,
}

impl Program {
    /// Its instructions.
    pub fn instructions(&self) -> Vec<Instruction> {
        self.instructions.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect()
    }

    /// Whether it jumps back, as `protochain` does. Such a program may never end: behind an authentication header
    /// libpcap 1.10 forgets where it was, and can walk in a circle.
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
    /// What the functions above are in; it stays loaded as long as they can be called.
    _library: Library,
}

impl Libpcap {
    /// Loads it.
    ///
    /// # Errors
    ///
    /// It is not installed, or is not libpcap.
    pub fn open() -> Result<Self, LibpcapError> {
        // SAFETY: libpcap has no constructors with requirements.
        let debian = unsafe { Library::new("libpcap.so.0.8") };
        // SAFETY: as above.
        let library = debian.or_else(|_| unsafe { Library::new("libpcap.so.1") })?;
        Ok(Self {
            // SAFETY: the type is that of the function's declaration in pcap/pcap.h.
            open_file: *unsafe { library.get(b"pcap_fopen_offline\0") }?,
            // SAFETY: the type is that of the function's declaration in pcap/pcap.h.
            close: *unsafe { library.get(b"pcap_close\0") }?,
            // SAFETY: the type is that of the function's declaration in pcap/pcap.h.
            compile: *unsafe { library.get(b"pcap_compile\0") }?,
            // SAFETY: the type is that of the function's declaration in pcap/pcap.h.
            get_error: *unsafe { library.get(b"pcap_geterr\0") }?,
            // SAFETY: the type is that of the function's declaration in pcap/pcap.h.
            free_code: *unsafe { library.get(b"pcap_freecode\0") }?,
            // SAFETY: the type is that of the function's declaration in pcap/bpf.h.
            validate: *unsafe { library.get(b"bpf_validate\0") }?,
            // SAFETY: the type is that of the function's declaration in pcap/pcap.h.
            offline_filter: *unsafe { library.get(b"pcap_offline_filter\0") }?,
            // SAFETY: the type is that of the function's declaration in pcap/bpf.h.
            image: *unsafe { library.get(b"bpf_image\0") }?,
            // SAFETY: the type is that of the function's declaration in pcap/pcap.h.
            version: *unsafe { library.get(b"pcap_lib_version\0") }?,
            _library: library,
        })
    }

    /// What it says of itself: "libpcap version 1.10.3 (with TPACKET_V3)".
    pub fn version(&self) -> String {
        // SAFETY: the function takes nothing, and the library is loaded.
        let version = unsafe { (self.version)() };
        // SAFETY: it answers a string that is never freed.
        unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
    }

    /// Compiles `text`, as for a file of the link type.
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
            // SAFETY: it answers a string in the handle, which is open until the end of this function.
            return Err(unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned());
        }
        // SAFETY: a call that succeeds has set both to the instructions, which belong to `program` until they are freed.
        let made = unsafe { std::slice::from_raw_parts(program.instructions, program.length as usize) };
        let instructions = made.to_vec();
        // SAFETY: `program` was filled by `pcap_compile`, and `made` is not used any more.
        unsafe { (self.free_code)(&raw mut program) };
        Ok(Program { instructions })
    }

    /// Takes a program of another compiler.
    ///
    /// # Errors
    ///
    /// libpcap does not hold it for valid.
    pub fn program(&self, instructions: &[Instruction]) -> Result<Program, String> {
        let instructions = raw(instructions);
        let length = c_int::try_from(instructions.len()).map_err(|_| "too many instructions".to_owned())?;
        // SAFETY: the pointer is to `length` instructions.
        let valid = unsafe { (self.validate)(instructions.as_ptr(), length) };
        if valid == 0 {
            return Err("libpcap rejects the program".to_owned());
        }
        Ok(Program { instructions })
    }

    /// What the program answers for a packet of `length` bytes, `data` of which were captured: 0 if it is refused. It takes
    /// as long as the program does: see [`Program::may_loop`].
    pub fn run(&self, program: &Program, length: u32, data: &[u8]) -> u32 {
        let captured = u32::try_from(data.len()).expect("a packet is shorter than 4 GiB");
        let time = libc::timeval { tv_sec: 0, tv_usec: 0 };
        let header = PacketHeader { time, captured, length };
        let count = c_uint::try_from(program.instructions.len()).expect("its length was an `int`");
        let program = BpfProgram { length: count, instructions: program.instructions.as_ptr().cast_mut() };
        // SAFETY: the interpreter reads the program, which is valid (of `pcap_compile`, or checked), and of the packet what
        // the header allows; it writes neither.
        let answer = unsafe { (self.offline_filter)(&raw const program, &raw const header, data.as_ptr()) };
        answer.cast_unsigned()
    }

    /// The instruction, which is a program's `at`-th, as `tcpdump -d` prints it.
    pub fn image(&self, instruction: Instruction, at: u16) -> String {
        let _one_at_a_time = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
        let instruction = raw(&[instruction]);
        // SAFETY: the pointer is to one instruction; the text is written to a buffer of libpcap's, under the lock.
        let text = unsafe { (self.image)(instruction.as_ptr(), at.into()) };
        // SAFETY: it is a string with its end, and nobody writes another while the lock is held.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    /// Opens a file of which there is only the header.
    fn open_file(&self, header: &mut [u8]) -> Result<Handle<'_>, String> {
        let start: *mut c_void = header.as_mut_ptr().cast();
        // SAFETY: `header` is as long as said, and outlives the handle: see `compile`.
        let file = unsafe { libc::fmemopen(start, header.len(), c"rb".as_ptr()) };
        if file.is_null() {
            return Err("no memory for a file".to_owned());
        }
        let mut message: [c_char; ERROR_BUFFER] = [0; ERROR_BUFFER];
        // SAFETY: the file is open, and the buffer as long as libpcap demands.
        let pcap = unsafe { (self.open_file)(file, message.as_mut_ptr()) };
        if pcap.is_null() {
            // SAFETY: libpcap leaves a file open that it does not take.
            unsafe { libc::fclose(file) };
            // SAFETY: libpcap writes a string with its end.
            return Err(unsafe { CStr::from_ptr(message.as_ptr()) }.to_string_lossy().into_owned());
        }
        Ok(Handle { libpcap: self, pcap })
    }
}

/// An open `pcap_t`, which is closed at the end, and its file with it.
struct Handle<'a> {
    libpcap: &'a Libpcap,
    pcap: *mut Pcap,
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nobody uses it any more.
        unsafe { (self.libpcap.close)(self.pcap) }
    }
}

/// The header of a pcap file (<https://www.tcpdump.org/manpages/pcap-savefile.5.html>). By way of a file libpcap takes link
/// types by the numbers that files have, and either byte order.
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
