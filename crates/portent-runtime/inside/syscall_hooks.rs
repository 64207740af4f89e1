//! Hooks around system calls that a program makes by hand (LLVM's `sanitizer/linux_syscall_hooks.h`): before one, what the kernel
//! will read is read, and after it, what the kernel has written is written.
//!
//! That is done for calls that move the program's data: `read`, `write`, `recv`, `send` and their kin, `readlink`, `getcwd`, pipes and
//! times. The others are there so that programs link, and do nothing: paths and structures that only describe something are not
//! looked at.

use crate::entry::entry;
use crate::log::op;
use crate::state::{self, Thread};
use crate::{access, record};

/// The kernel's `struct iovec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Part {
    start: usize,
    length: usize,
}

/// The kernel's `struct msghdr`, as far as it is read.
#[repr(C)]
pub struct Message {
    name: usize,
    name_length: usize,
    parts: *const Part,
    count: usize,
}

/// More parts are an error to the kernel, too.
const MOST_PARTS: usize = 1024;

fn with(work: impl FnOnce(&mut Thread)) {
    if let Some(me) = state::enter() {
        work(me);
        state::leave(me);
    }
}

fn is_read(start: usize, size: usize, pc: usize) {
    if start != 0 && size > 0 {
        with(|me| access::read(me, op::READ, start, size, pc));
    }
}

fn is_written(start: usize, size: usize, pc: usize) {
    if start != 0 && size > 0 {
        with(|me| {
            access::write(me, op::WRITE, start, size, pc);
            record::read_back(me);
        });
    }
}

/// The parts of an array, as far as `size` bytes in all go.
unsafe fn each_part(parts: *const Part, count: usize, mut size: usize, mut work: impl FnMut(usize, usize)) {
    if parts.is_null() {
        return;
    }
    for at in 0..count.min(MOST_PARTS) {
        // SAFETY: the array that the program passes to the kernel.
        let Part { start, length } = unsafe { *parts.add(at) };
        let used = length.min(size);
        work(start, used);
        size -= used;
    }
}

/// Before `write(fd, buffer, size)`.
pub unsafe extern "C-unwind" fn sends(_fd: usize, buffer: usize, size: usize, pc: usize) {
    is_read(buffer, size, pc);
}

/// After `read(fd, buffer, size)`, which returned `result`.
pub unsafe extern "C-unwind" fn received(result: isize, _fd: usize, buffer: usize, size: usize, pc: usize) {
    is_written(buffer, usize::try_from(result).unwrap_or(0).min(size), pc);
}

pub unsafe extern "C-unwind" fn sends_parts(_fd: usize, parts: *const Part, count: usize, pc: usize) {
    // SAFETY: what the program passes to the kernel.
    unsafe { each_part(parts, count, usize::MAX, |start, size| is_read(start, size, pc)) };
}

pub unsafe extern "C-unwind" fn received_parts(result: isize, _fd: usize, parts: *const Part, count: usize, pc: usize) {
    // SAFETY: as above.
    unsafe { each_part(parts, count, usize::try_from(result).unwrap_or(0), |start, size| is_written(start, size, pc)) };
}

pub unsafe extern "C-unwind" fn sends_message(fd: usize, message: *const Message, _flags: usize, pc: usize) {
    // SAFETY: as above.
    if let Some(message) = unsafe { message.as_ref() } {
        // SAFETY: as above.
        unsafe { sends_parts(fd, message.parts, message.count, pc) };
    }
}

pub unsafe extern "C-unwind" fn received_message(result: isize, fd: usize, message: *const Message, pc: usize) {
    // SAFETY: as above.
    if let Some(message) = unsafe { message.as_ref() } {
        // SAFETY: as above.
        unsafe { received_parts(result, fd, message.parts, message.count, pc) };
    }
}

/// After `getcwd(buffer, size)`.
pub unsafe extern "C-unwind" fn filled(result: isize, buffer: usize, size: usize, pc: usize) {
    is_written(buffer, usize::try_from(result).unwrap_or(0).min(size), pc);
}

/// Two descriptors.
pub unsafe extern "C-unwind" fn got_pipe(result: isize, ends: usize, pc: usize) {
    if result == 0 {
        is_written(ends, 8, pc);
    }
}

/// Two numbers.
pub unsafe extern "C-unwind" fn got_time_of(result: isize, _clock: usize, time: usize, pc: usize) {
    if result == 0 {
        is_written(time, 16, pc);
    }
}

pub unsafe extern "C-unwind" fn got_time(result: isize, time: usize, pc: usize) {
    if result == 0 {
        is_written(time, 16, pc);
    }
}

pub unsafe extern "C-unwind" fn sleeps(time: usize, pc: usize) {
    is_read(time, 16, pc);
}

// Arguments behind those that are needed may be overwritten by the return address.
entry! {
    __sanitizer_syscall_pre_impl_write(3) => sends;
    __sanitizer_syscall_pre_impl_pwrite64(3) => sends;
    __sanitizer_syscall_pre_impl_send(3) => sends;
    __sanitizer_syscall_pre_impl_sendto(3) => sends;
    __sanitizer_syscall_pre_impl_writev(3) => sends_parts;
    __sanitizer_syscall_pre_impl_pwritev(3) => sends_parts;
    __sanitizer_syscall_pre_impl_sendmsg(3) => sends_message;
    __sanitizer_syscall_pre_impl_nanosleep(1) => sleeps;
    __sanitizer_syscall_post_impl_read(4) => received;
    __sanitizer_syscall_post_impl_pread64(4) => received;
    __sanitizer_syscall_post_impl_recv(4) => received;
    __sanitizer_syscall_post_impl_recvfrom(4) => received;
    __sanitizer_syscall_post_impl_readlink(4) => received;
    __sanitizer_syscall_post_impl_readv(4) => received_parts;
    __sanitizer_syscall_post_impl_preadv(4) => received_parts;
    __sanitizer_syscall_post_impl_recvmsg(3) => received_message;
    __sanitizer_syscall_post_impl_getcwd(3) => filled;
    __sanitizer_syscall_post_impl_getrandom(3) => filled;
    __sanitizer_syscall_post_impl_pipe(2) => got_pipe;
    __sanitizer_syscall_post_impl_pipe2(2) => got_pipe;
    __sanitizer_syscall_post_impl_clock_gettime(3) => got_time_of;
    __sanitizer_syscall_post_impl_gettimeofday(2) => got_time;
}

/// Hooks of these names that do nothing.
macro_rules! without_effect {
    ($prefix:literal: $($call:tt)*) => {
        $(
            const _: () = {
                #[unsafe(export_name = concat!($prefix, stringify!($call)))]
                pub extern "C" fn hook() {}
            };
        )*
    };
}

without_effect! {
    "__sanitizer_syscall_pre_impl_":
    accept accept4 access acct add_key adjtimex alarm bdflush bind brk capget capset chdir chmod chown chown16 chroot
    clock_adjtime clock_getres clock_gettime clock_nanosleep clock_settime close connect creat delete_module dup dup2
    dup3 epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 exit exit_group
    faccessat fanotify_init fanotify_mark fchdir fchmod fchmodat fchown fchown16 fchownat fcntl fcntl64 fdatasync
    fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate
    futimesat get_mempolicy get_robust_list getcpu getcwd getdents getdents64 getegid getegid16 geteuid geteuid16
    getgid getgid16 getgroups getgroups16 gethostname getitimer getpeername getpgid getpgrp getpid getppid getpriority
    getrandom getresgid getresgid16 getresuid getresuid16 getrlimit getrusage getsid getsockname getsockopt gettid
    gettimeofday getuid getuid16 getxattr init_module inotify_add_watch inotify_init inotify_init1 inotify_rm_watch
    io_cancel io_destroy io_getevents io_setup io_submit ioctl ioperm ioprio_get ioprio_set ipc kexec_load keyctl kill
    lchown lchown16 lgetxattr link linkat listen listxattr llistxattr llseek lookup_dcookie lremovexattr lseek
    lsetxattr lstat lstat64 madvise mbind migrate_pages mincore mkdir mkdirat mknod mknodat mlock mlockall mmap_pgoff
    mount move_pages mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap msgctl
    msgget msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at newfstat newfstatat newlstat newstat
    newuname ni_syscall nice old_getrlimit old_mmap old_readdir old_select oldumount olduname open open_by_handle_at
    openat pause pciconfig_iobase pciconfig_read pciconfig_write perf_event_open personality pipe pipe2 pivot_root
    poll ppoll pread64 preadv prlimit64 process_vm_readv process_vm_writev pselect6 ptrace quotactl read readlink
    readlinkat readv reboot recv recvfrom recvmmsg recvmsg remap_file_pages removexattr rename renameat request_key
    restart_syscall rmdir rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigtimedwait rt_tgsigqueueinfo
    sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getparam sched_getscheduler
    sched_rr_get_interval sched_setaffinity sched_setparam sched_setscheduler sched_yield select semctl semget semop
    semtimedop sendfile sendfile64 sendmmsg set_mempolicy set_robust_list set_tid_address setdomainname setfsgid
    setfsgid16 setfsuid setfsuid16 setgid setgid16 setgroups setgroups16 sethostname setitimer setns setpgid
    setpriority setregid setregid16 setresgid setresgid16 setresuid setresuid16 setreuid setreuid16 setrlimit setsid
    setsockopt settimeofday setuid setuid16 setxattr sgetmask shmat shmctl shmdt shmget shutdown sigaction sigaltstack
    signal signalfd signalfd4 sigpending sigprocmask socket socketcall socketpair splice spu_create spu_run ssetmask
    stat stat64 statfs statfs64 stime swapoff swapon symlink symlinkat sync syncfs sysctl sysfs sysinfo syslog tee
    tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime
    timerfd_settime times tkill truncate umask umount uname unlink unlinkat unshare uselib ustat utime utimensat
    utimes vfork vhangup vmsplice wait4 waitid waitpid
}

without_effect! {
    "__sanitizer_syscall_post_impl_":
    accept accept4 access acct add_key adjtimex alarm bdflush bind brk capget capset chdir chmod chown chown16 chroot
    clock_adjtime clock_getres clock_nanosleep clock_settime close connect creat delete_module dup dup2 dup3
    epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 exit exit_group
    faccessat fanotify_init fanotify_mark fchdir fchmod fchmodat fchown fchown16 fchownat fcntl fcntl64 fdatasync
    fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate
    futimesat get_mempolicy get_robust_list getcpu getdents getdents64 getegid getegid16 geteuid geteuid16 getgid
    getgid16 getgroups getgroups16 gethostname getitimer getpeername getpgid getpgrp getpid getppid getpriority
    getresgid getresgid16 getresuid getresuid16 getrlimit getrusage getsid getsockname getsockopt gettid
    getuid getuid16 getxattr init_module inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel
    io_destroy io_getevents io_setup io_submit ioctl ioperm ioprio_get ioprio_set ipc kexec_load keyctl kill lchown
    lchown16 lgetxattr link linkat listen listxattr llistxattr llseek lookup_dcookie lremovexattr lseek lsetxattr
    lstat lstat64 madvise mbind migrate_pages mincore mkdir mkdirat mknod mknodat mlock mlockall mmap_pgoff mount
    move_pages mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap msgctl msgget
    msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep newfstat newfstatat newlstat newstat
    newuname ni_syscall nice old_getrlimit old_mmap old_readdir old_select oldumount olduname open open_by_handle_at
    openat pause pciconfig_iobase pciconfig_read pciconfig_write perf_event_open personality pivot_root poll ppoll
    prlimit64 process_vm_readv process_vm_writev pselect6 ptrace pwrite64 pwritev quotactl readlinkat reboot recvmmsg
    remap_file_pages removexattr rename renameat request_key restart_syscall rmdir rt_sigaction rt_sigpending
    rt_sigprocmask rt_sigqueueinfo rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min
    sched_getaffinity sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setparam
    sched_setscheduler sched_yield select semctl semget semop semtimedop send sendfile sendfile64 sendmmsg sendmsg
    sendto set_mempolicy set_robust_list set_tid_address setdomainname setfsgid setfsgid16 setfsuid setfsuid16 setgid
    setgid16 setgroups setgroups16 sethostname setitimer setns setpgid setpriority setregid setregid16 setresgid
    setresgid16 setresuid setresuid16 setreuid setreuid16 setrlimit setsid setsockopt settimeofday setuid setuid16
    setxattr sgetmask shmat shmctl shmdt shmget shutdown sigaction sigaltstack signal signalfd signalfd4 sigpending
    sigprocmask socket socketcall socketpair splice spu_create spu_run ssetmask stat stat64 statfs statfs64 stime
    swapoff swapon symlink symlinkat sync syncfs sysctl sysfs sysinfo syslog tee tgkill time timer_create timer_delete
    timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate
    umask umount uname unlink unlinkat unshare uselib ustat utime utimensat utimes vfork vhangup vmsplice wait4 waitid
    waitpid write writev
}
