//! Running programs: a look into them first, their sessions with plan and recording, and the runtime that is loaded into them.

#[cfg(target_os = "linux")]
pub mod descriptors;
#[cfg(target_os = "linux")]
pub mod examine;
#[cfg(target_os = "linux")]
pub mod family;
#[cfg(target_os = "linux")]
mod follow;
#[cfg(target_os = "linux")]
pub mod launch;
pub mod library;
#[cfg(target_os = "linux")]
pub mod log_file;
#[cfg(target_os = "linux")]
pub mod output;
#[cfg(target_os = "linux")]
pub mod owner;
#[cfg(target_os = "linux")]
pub mod server;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
pub mod tail;
#[cfg(target_os = "linux")]
mod watch;
