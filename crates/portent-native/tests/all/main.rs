//! Programs that are built, run and looked at through the library: what their runs are said to have done.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

mod faults;
