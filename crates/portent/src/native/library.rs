//! The runtime on disk: the embedded library, unpacked into a private directory.

use crate::failure::Failure;
use portent_runtime::LIBRARY;
use portent_trace::TraceError;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::PathBuf;

/// The directory with the runtime; unpacks it if need be.
pub(crate) fn directory() -> Result<PathBuf, Failure> {
    let mut hasher = DefaultHasher::new();
    LIBRARY.hash(&mut hasher);
    let cache = std::env::var_os("PORTENT_CACHE").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::home_dir().map(|home| home.join(".cache/portent")));
    let directory = cache.unwrap_or_else(std::env::temp_dir).join(format!("runtime-{:016x}", hasher.finish()));
    let library = directory.join("libportent_runtime.so");
    let unpack = || {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let file = tempfile::NamedTempFile::new_in(&directory)?;
        std::fs::write(file.path(), LIBRARY)?;
        file.persist(&library)?;
        symlink("libportent_runtime.so", directory.join("libtsan.so.2"))
    };
    if !library.exists() {
        unpack().map_err(|error| TraceError::whole(error).in_input(&directory.display().to_string()))?;
    }
    Ok(directory)
}
