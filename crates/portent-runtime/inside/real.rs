//! The functions that this library stands in for, as the C library (or libstdc++) defines them.

use crate::sys;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of another library. All that are there when recording begins are looked up then ([`find_all`]): later the
/// loader's lock may be held by a thread that waits for us (in a constructor that `dlopen` runs). The rest, those of
/// libraries that are loaded later, when they are first needed.
///
/// Every one of these lies in the section `portent_real`, and nothing else does.
#[repr(C)]
pub struct Real {
    name: &'static [u8],
    version: &'static [u8],
    only_c_library: bool,
    found: AtomicPtr<c_void>,
}

impl Real {
    /// The next definition of `name`, which ends with a zero.
    pub const fn new(name: &'static [u8]) -> Self {
        Self::versioned(name, b"")
    }
    /// The definition with this version, which ends with a zero: for names of which the C library has several.
    pub const fn versioned(name: &'static [u8], version: &'static [u8]) -> Self {
        Self { name, version, only_c_library: false, found: AtomicPtr::new(std::ptr::null_mut()) }
    }
    /// The C library's definition, whoever else defines the name.
    pub const fn of_c_library(name: &'static [u8]) -> Self {
        Self { name, version: b"", only_c_library: true, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address; null if there is none.
    #[inline]
    pub fn address(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if found.is_null() { self.find() } else { found }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        const NEXT: *mut c_void = -1isize as *mut c_void;
        // SAFETY: both names end with a zero.
        let found = unsafe {
            let mut found = std::ptr::null_mut();
            if self.only_c_library {
                // Only finds what is loaded.
                const LAZY_NOLOAD: i32 = 1 | 4;
                #[unsafe(link_section = "portent_real")]
                static OPEN: Real = Real::versioned(b"dlopen\0", b"GLIBC_2.34\0");
                type Open = unsafe extern "C" fn(*const i8, i32) -> *mut c_void;
                let open = std::mem::transmute::<*mut c_void, Open>(OPEN.required());
                let library = open(c"libc.so.6".as_ptr(), LAZY_NOLOAD);
                if !library.is_null() {
                    found = sys::dlsym(library, self.name.as_ptr().cast());
                }
            } else if !self.version.is_empty() {
                found = sys::dlvsym(NEXT, self.name.as_ptr().cast(), self.version.as_ptr().cast());
            }
            if found.is_null() {
                found = sys::dlsym(NEXT, self.name.as_ptr().cast());
            }
            found
        };
        self.found.store(found, Ordering::Relaxed);
        found
    }

    /// Its address, or the end of the process with a message: the caller cannot go on without it.
    #[inline]
    pub fn required(&self) -> *mut c_void {
        let found = self.address();
        if found.is_null() {
            self.missing();
        }
        found
    }

    #[cold]
    fn missing(&self) -> ! {
        let name = std::str::from_utf8(self.name).unwrap_or("?").trim_end_matches('\0');
        sys::say(&["portent: the C library of this system has no ", name, "\n"]);
        sys::kill_process()
    }
}

unsafe extern "C" {
    // The bounds of the section, from the linker.
    #[allow(improper_ctypes, reason = "only the address counts")]
    static __start_portent_real: Real;
    #[allow(improper_ctypes, reason = "only the address counts")]
    static __stop_portent_real: Real;
}

/// Looks everything up.
pub fn find_all() {
    // SAFETY: the section holds nothing but these, one after the other.
    let all = unsafe {
        let (start, stop) = (&raw const __start_portent_real, &raw const __stop_portent_real);
        std::slice::from_raw_parts(start, stop.offset_from(start) as usize)
    };
    for one in all {
        one.address();
    }
}

/// Declares functions in `real::` under their own names, with their types.
macro_rules! real {
    ($($name:ident $(@ $version:literal)? ( $($arg:ident : $type:ty),* ) $(-> $result:ty)?;)*) => {
        $(
            #[inline]
            pub unsafe fn $name($($arg: $type),*) $(-> $result)? {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::versioned(
                    concat!(stringify!($name), "\0").as_bytes(), real!(@version $($version)?));
                // SAFETY: the C library defines the function with this type.
                unsafe {
                    let function: unsafe extern "C-unwind" fn($($type),*) $(-> $result)? =
                        std::mem::transmute(REAL.required());
                    function($($arg),*)
                }
            }
        )*
    };
    (@version) => { b"" };
    (@version $version:literal) => { concat!("GLIBC_", $version, "\0").as_bytes() };
}

pub type Ptr = *mut c_void;

real! {
    pthread_create @ "2.34" (thread: *mut usize, attributes: Ptr, routine: Ptr, argument: Ptr) -> i32;
    pthread_join @ "2.34" (thread: usize, result: *mut Ptr) -> i32;
    pthread_tryjoin_np (thread: usize, result: *mut Ptr) -> i32;
    pthread_timedjoin_np (thread: usize, result: *mut Ptr, until: Ptr) -> i32;
    pthread_detach @ "2.34" (thread: usize) -> i32;
    pthread_setname_np (thread: usize, name: *const i8) -> i32;
    pthread_cancel (thread: usize) -> i32;
    pthread_testcancel ();
    pthread_setcancelstate (new: i32, old: *mut i32) -> i32;
    pthread_setcanceltype (new: i32, old: *mut i32) -> i32;
    pthread_self () -> usize;
    pthread_key_create (key: *mut u32, destructor: Ptr) -> i32;
    pthread_setspecific (key: u32, value: *const c_void) -> i32;
    pthread_mutex_lock (mutex: Ptr) -> i32;
    pthread_mutex_trylock (mutex: Ptr) -> i32;
    pthread_mutex_timedlock (mutex: Ptr, until: Ptr) -> i32;
    pthread_mutex_clocklock (mutex: Ptr, clock: i32, until: Ptr) -> i32;
    pthread_mutex_unlock (mutex: Ptr) -> i32;
    pthread_mutex_destroy (mutex: Ptr) -> i32;
    pthread_rwlock_rdlock (lock: Ptr) -> i32;
    pthread_rwlock_wrlock (lock: Ptr) -> i32;
    pthread_rwlock_tryrdlock (lock: Ptr) -> i32;
    pthread_rwlock_trywrlock (lock: Ptr) -> i32;
    pthread_rwlock_timedrdlock (lock: Ptr, until: Ptr) -> i32;
    pthread_rwlock_timedwrlock (lock: Ptr, until: Ptr) -> i32;
    pthread_rwlock_clockrdlock (lock: Ptr, clock: i32, until: Ptr) -> i32;
    pthread_rwlock_clockwrlock (lock: Ptr, clock: i32, until: Ptr) -> i32;
    pthread_rwlock_unlock (lock: Ptr) -> i32;
    pthread_rwlock_destroy (lock: Ptr) -> i32;
    pthread_spin_lock (lock: Ptr) -> i32;
    pthread_spin_trylock (lock: Ptr) -> i32;
    pthread_spin_unlock (lock: Ptr) -> i32;
    pthread_spin_destroy (lock: Ptr) -> i32;
    pthread_cond_wait @ "2.3.2" (condition: Ptr, mutex: Ptr) -> i32;
    pthread_cond_timedwait @ "2.3.2" (condition: Ptr, mutex: Ptr, until: Ptr) -> i32;
    pthread_cond_clockwait (condition: Ptr, mutex: Ptr, clock: i32, until: Ptr) -> i32;
    pthread_cond_signal @ "2.3.2" (condition: Ptr) -> i32;
    pthread_cond_broadcast @ "2.3.2" (condition: Ptr) -> i32;
    pthread_cond_destroy @ "2.3.2" (condition: Ptr) -> i32;
    pthread_barrier_init (barrier: Ptr, attributes: Ptr, count: u32) -> i32;
    pthread_barrier_destroy (barrier: Ptr) -> i32;
    pthread_barrier_wait (barrier: Ptr) -> i32;
    pthread_once (once: Ptr, routine: Ptr) -> i32;
    sem_init (semaphore: Ptr, shared: i32, value: u32) -> i32;
    sem_wait (semaphore: Ptr) -> i32;
    sem_trywait (semaphore: Ptr) -> i32;
    sem_timedwait (semaphore: Ptr, until: Ptr) -> i32;
    sem_clockwait (semaphore: Ptr, clock: i32, until: Ptr) -> i32;
    sem_post (semaphore: Ptr) -> i32;
    sem_destroy (semaphore: Ptr) -> i32;
    sem_close (semaphore: Ptr) -> i32;
    sem_getvalue (semaphore: Ptr, value: *mut i32) -> i32;
    __register_atfork (prepare: Ptr, parent: Ptr, child: Ptr, module: Ptr) -> i32;
    dl_iterate_phdr (callback: Ptr, data: Ptr) -> i32;
    sigaction (signal: i32, new: Ptr, old: Ptr) -> i32;
}
