//! The beginning: finding the session, claiming the recording, reading the plan.

use crate::log::note;
use crate::plan::{Header, MAGIC};
use crate::{answers, family, one_core, process, record, sched, server, signals, sys, threads};
use std::sync::atomic::{AtomicBool, Ordering};

/// The plan, in mapped memory that is only read.
pub struct MappedPlan {
    pub header: Header,
    pub family: *const [u64; 2],
    pub steps: *const [u64; 2],
    pub goal_threads: *const u64,
    pub answers: *const u64,
}

static STARTED: AtomicBool = AtomicBool::new(false);

/// Called by every instrumented module, several times, the first time before anything of the program runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_init() {
    if STARTED.swap(true, Ordering::SeqCst) {
        return;
    }
    // SAFETY: the first call comes before there are threads.
    unsafe { start() };
    crate::sanitizer::on_initialize();
}

/// Room for a path of the session with a file's name.
pub const PATH: usize = 4096;

/// The session's directory, and its length; 0 while there is none.
static mut SESSION: ([u8; PATH], usize) = ([0; PATH], 0);
static mut PLAN: Option<MappedPlan> = None;

/// The plan of the session, if there is one.
pub fn plan() -> Option<&'static MappedPlan> {
    // SAFETY: set once, before there are threads.
    unsafe { (*&raw const PLAN).as_ref() }
}

/// Copies the session's directory; its length.
pub fn session_path(path: &mut [u8; PATH]) -> Option<usize> {
    // SAFETY: set once, before there are threads.
    let (from, length) = unsafe { &*&raw const SESSION };
    for (to, from) in path.iter_mut().zip(&from[..*length]) {
        *to = *from;
    }
    (*length > 0).then_some(*length)
}

unsafe fn start() {
    let mut path = [0u8; PATH];
    // At this time `getenv` may not work yet.
    let Some(length) = session(&mut path) else { return };
    // SAFETY: paths end with a zero; maps are of files that the command made for us and leaves alone; nobody else runs.
    unsafe {
        SESSION = (path, length);
        PLAN = open_plan(&mut path, length).and_then(|fd| map_plan(fd));
        let Some(plan) = plan() else { return };
        if plan.header.serve != 0 {
            return serve(plan.header.serve as isize);
        }
        if plan.header.lineage != 0 {
            // For a child that is yet to be forked.
            crate::real::find_all();
            process::prepare();
            crate::heap::prepare();
            return;
        }
        let Some(fd) = open(b"/log\0") else {
            sys::say(&["portent: the session's recording cannot be opened: nothing is recorded\n"]);
            return;
        };
        if record::open(fd) {
            family::describe(false);
        } else {
            sys::call3(sys::SYS_CLOSE, fd as usize, 0, 0);
            // Another process was first.
            let Some(fd) = family::own_log(false) else {
                crate::real::find_all();
                return;
            };
            if !record::open(fd) {
                return;
            }
        }
        prepare();
        begin(plan);
    }
}

/// What is the same for every run of a program. Called once, before there are threads.
unsafe fn prepare() {
    crate::real::find_all();
    // SAFETY: as the caller says.
    unsafe {
        crate::heap::prepare();
        process::prepare();
        threads::prepare();
        signals::prepare();
    }
}

/// The recording is open: from here on this is a run that follows the plan.
unsafe fn begin(plan: &'static MappedPlan) {
    // SAFETY: nobody else runs yet.
    unsafe {
        if plan.header.one_core != 0 {
            one_core::stay();
        }
        sched::lock().follow(plan);
        answers::follow(plan);
        modules();
        threads::adopt_main();
        threads::arm();
    }
}

/// Waits for orders, and comes back in every run that is made by one, as if the program had just been started for it.
unsafe fn serve(orders: isize) {
    // SAFETY: nobody else runs yet; the plan of the server is not looked at again.
    unsafe {
        if !server::is_orders(orders) {
            // A program that a run has started: nobody records it.
            return crate::real::find_all();
        }
        prepare();
        let order = server::serve(orders);
        sys::call3(sys::SYS_MUNMAP, PLAN_AT, 4096, 0);
        PLAN = map_plan(order.plan);
        let log = out_of_the_way(order.log);
        if let Some(plan) = plan()
            && record::open_memory(log)
        {
            begin(plan);
        }
    }
}

/// Opens a file of the session for reading and writing, out of the program's way.
pub fn open(name: &[u8]) -> Option<isize> {
    let mut path = [0u8; PATH];
    let length = session_path(&mut path)?;
    append(&mut path, length, name);
    // SAFETY: the path ends with a zero.
    let fd = unsafe { sys::call3(sys::SYS_OPEN, path.as_ptr() as usize, 0o2000002, 0) };
    (fd >= 0).then(|| out_of_the_way(fd))
}

/// The same file under a number that is out of the way of the program's own, and not for its children.
pub fn out_of_the_way(fd: isize) -> isize {
    // SAFETY: our own descriptor.
    unsafe {
        let high = sys::call3(sys::SYS_FCNTL, fd as usize, 1030, 900);
        if high >= 0 {
            sys::call3(sys::SYS_CLOSE, fd as usize, 0, 0);
            return high;
        }
    }
    fd
}

/// Writes a file's name behind the session's path.
fn append(path: &mut [u8; PATH], length: usize, name: &[u8]) {
    for (i, &byte) in name.iter().enumerate() {
        path[length + i] = byte;
    }
}

/// The session's directory from the environment; its length.
fn session(path: &mut [u8; PATH]) -> Option<usize> {
    const NAME: &[u8] = b"PORTENT_SESSION=";
    let mut buffer = [0u8; 1 << 16];
    let mut filled = 0;
    // SAFETY: the path ends with a zero; the kernel fills the buffer.
    let fd = unsafe { sys::call3(sys::SYS_OPEN, c"/proc/self/environ".as_ptr() as usize, 0o2000000, 0) };
    if fd < 0 {
        return None;
    }
    let mut found = None;
    loop {
        // SAFETY: room for what is asked for.
        let got = unsafe {
            sys::call3(sys::SYS_READ, fd as usize, buffer.as_mut_ptr().add(filled) as usize, buffer.len() - filled)
        };
        filled += got.max(0) as usize;
        let mut start = 0;
        while let Some(length) = buffer[start..filled].iter().position(|&byte| byte == 0) {
            let line = &buffer[start..start + length];
            if line.starts_with(NAME) && line.len() - NAME.len() < PATH - 16 {
                let value = &line[NAME.len()..];
                for (to, from) in path.iter_mut().zip(value) {
                    *to = *from;
                }
                found = Some(value.len());
            }
            start += length + 1;
        }
        // What is left of an unfinished line goes to the front; one longer than the buffer is passed over.
        let rest = filled - start;
        buffer.copy_within(start..filled, 0);
        filled = if rest == buffer.len() { 0 } else { rest };
        if got <= 0 || found.is_some() {
            break;
        }
    }
    // SAFETY: our own file descriptor.
    unsafe { sys::call3(sys::SYS_CLOSE, fd as usize, 0, 0) };
    found
}

/// Where the plan is mapped.
const PLAN_AT: usize = 0x1000_0000_0000;

fn open_plan(path: &mut [u8; PATH], length: usize) -> Option<isize> {
    append(path, length, b"/plan\0");
    // SAFETY: the path ends with a zero.
    let fd = unsafe { sys::call3(sys::SYS_OPEN, path.as_ptr() as usize, 0o2000000, 0) };
    (fd >= 0).then_some(fd)
}

/// Maps the plan that a file holds, and closes the file.
unsafe fn map_plan(fd: isize) -> Option<MappedPlan> {
    // SAFETY: as in `start`; sizes are checked against the file's before anything is read.
    unsafe {
        let mut status = [0u64; 18];
        sys::call3(sys::SYS_FSTAT, fd as usize, status.as_mut_ptr() as usize, 0);
        let size = status[6] as usize;
        // Far from where the kernel puts the program's own maps: plans differ in size, and the program's addresses must not.
        let base = sys::map_at(PLAN_AT, size.max(4096), 1, 2, fd);
        sys::call3(sys::SYS_CLOSE, fd as usize, 0, 0);
        if base.is_null() || size < size_of::<Header>() {
            return None;
        }
        let header = *base.cast::<Header>();
        let words = header.threads.checked_add(header.steps)?.checked_mul(2)?;
        let words = words.checked_add(header.goal_threads)?.checked_add(header.answers)?;
        if header.magic != MAGIC || words > ((size - size_of::<Header>()) / 8) as u64 {
            sys::say(&["portent: the session's plan is damaged: nothing is recorded\n"]);
            return None;
        }
        let family = base.add(size_of::<Header>()).cast::<[u64; 2]>();
        let steps = family.add(header.threads as usize);
        let goal_threads = steps.add(header.steps as usize).cast::<u64>();
        let answers = goal_threads.add(header.goal_threads as usize);
        Some(MappedPlan { header, family, steps, goal_threads, answers })
    }
}

/// What `dl_iterate_phdr` tells about a module, as far as it is used.
#[repr(C)]
struct Module {
    bias: usize,
    name: *const u8,
    headers: *const [u64; 7],
    count: u16,
}

/// Notes every module that is mapped now. Called at the start, and after a module was loaded.
pub fn modules() {
    // SAFETY: a callback of the right type.
    unsafe { crate::real::dl_iterate_phdr(note_module as *const () as *mut _, std::ptr::null_mut()) };
}

/// Where modules are mapped. What is beyond has objects that end, or is taken for that.
static mut MAPPED: [(usize, usize); 64] = [(0, 0); 64];
static mut MAPPED_COUNT: usize = 0;

/// # Safety
/// By the holder of the token, or before there are threads.
unsafe fn remember(low: u64, high: u64) {
    let range = (low as usize, high as usize);
    // SAFETY: as the caller says.
    unsafe {
        let mapped = &mut *&raw mut MAPPED;
        if MAPPED_COUNT < mapped.len() && !mapped[..MAPPED_COUNT].contains(&range) {
            mapped[MAPPED_COUNT] = range;
            MAPPED_COUNT += 1;
        }
    }
}

/// Whether an address lies in the program itself, which the loader names first.
pub fn is_in_program(address: usize) -> bool {
    // SAFETY: set before there are threads.
    let (low, high) = unsafe { MAPPED[0] };
    (low..high).contains(&address)
}

/// Whether an address lies in a module: what is there lives as long as the program.
pub fn is_in_module(address: usize) -> bool {
    // SAFETY: only the holder of the token comes here and changes it.
    let mapped = unsafe { &(&*&raw const MAPPED)[..MAPPED_COUNT] };
    mapped.iter().any(|&(low, high)| (low..high).contains(&address))
}

unsafe extern "C" fn note_module(module: *const Module, _size: usize, _data: *mut u8) -> i32 {
    // SAFETY: the loader passes a module with its headers; ELF program headers are seven words: type and flags, offset,
    // address, physical address, size in the file, size in memory, alignment.
    unsafe {
        let module = &*module;
        let (mut low, mut high) = (u64::MAX, 0);
        for i in 0..module.count as usize {
            let header = *module.headers.add(i);
            if header[0] as u32 == 1 {
                low = low.min(module.bias as u64 + header[2]);
                high = high.max(module.bias as u64 + header[2] + header[5]);
            }
        }
        remember(low, high);
        let mut size = record::text_size(module.name as usize, 4096) - 1;
        let mut name = module.name;
        let mut path = [0u8; 4096];
        if size == 0 {
            // The program itself.
            let link = c"/proc/self/exe".as_ptr() as usize;
            size = sys::call3(sys::SYS_READLINK, link, path.as_mut_ptr() as usize, path.len()).max(0) as usize;
            name = path.as_ptr();
        }
        record::told(note::MODULE, &[module.bias as u64, low, high], std::slice::from_raw_parts(name, size));
    }
    0
}

#[unsafe(link_section = "portent_real")]
static DLOPEN: crate::real::Real = crate::real::Real::versioned(b"dlopen\0", b"GLIBC_2.34\0");

/// A return instruction shortly behind an address, so in the same module.
fn return_in_module_of(pc: usize) -> Option<usize> {
    const RETURN: u64 = 0xc3;
    (pc..pc + (1 << 16))
        .map_while(|at| Some((at, record::load(at, 1)?)))
        .find(|found| found.1 == RETURN)
        .map(|found| found.0)
}

/// Calls `open` so that it returns by way of `gadget`, a return instruction in the program's caller: the C library searches
/// where the module says that its return address lies in (DT_RUNPATH, `$ORIGIN`).
#[unsafe(naked)]
unsafe extern "C-unwind" fn open_from(
    path: *const i8,
    flags: i32,
    open: crate::real::Ptr,
    gadget: usize,
) -> *mut std::ffi::c_void {
    std::arch::naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "and rsp, -16",
        "sub rsp, 8",
        "lea rax, [rip + 2f]",
        "push rax",
        "push rcx",
        "jmp rdx",
        "2:",
        "mov rsp, rbp",
        "pop rbp",
        "ret",
    );
}

/// After a module was loaded, its symbols have names too. Constructors of the module run inside.
pub unsafe extern "C-unwind" fn dlopen(path: *const i8, flags: i32, pc: usize) -> *mut std::ffi::c_void {
    type Open = unsafe extern "C-unwind" fn(*const i8, i32) -> *mut std::ffi::c_void;
    // SAFETY: the C library's function.
    let handle = unsafe {
        match return_in_module_of(pc) {
            Some(gadget) => open_from(path, flags, DLOPEN.required(), gadget),
            None => std::mem::transmute::<crate::real::Ptr, Open>(DLOPEN.required())(path, flags),
        }
    };
    if let Some(me) = crate::state::enter() {
        modules();
        crate::state::leave(me);
    }
    handle
}

crate::entry::entry! {
    dlopen(2) => dlopen;
}
