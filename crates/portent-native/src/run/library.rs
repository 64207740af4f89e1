//! The runtime on disk: the embedded library, unpacked once into a private directory named after its contents.
//!
//! Programs built with `portent cc` find the runtime there by their run path, `record` and `replay` by LD_LIBRARY_PATH. A
//! directory is never removed: a program built long ago may still point to it.
//!
//! Invariants: every file appears under its name whole or not at all (written beside, then renamed), and is compared with
//! what it should be before its first use in a process. So builds may run at the same time, and a damaged file repairs itself.

use crate::Error;
use crate::private::{self, Folder, Others};
use portent_runtime::{LIBRARY, LIBRARY_HASH};
use std::ffi::OsString;
use std::io::{self, Result as IoResult, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fs};

/// What the library is called; `-lportent_runtime` finds it.
const NAME: &str = "libportent_runtime.so";

/// The names of libtsan, which a program that was not built with `portent cc` loads; the first is for `-ltsan`.
const ALIASES: [&str; 4] = ["libtsan.so", "libtsan.so.0", "libtsan.so.1", "libtsan.so.2"];

/// The file of [`SPECS`].
pub(crate) const SPECS_NAME: &str = "gcc.specs";

/// Makes gcc's compiler proper instrument while its driver, which would link libtsan, knows nothing of it. Needed where
/// one command compiles and links, link-time optimisation included. The empty substitution ends the word: whatever
/// follows in gcc's own specs would be glued to it.
const SPECS: &str = "\
*cc1_options:
+ -fsanitize=thread %{pipe:}

*cpp_options:
+ -fsanitize=thread %{pipe:}

";

/// The header with the marks, which a program may include as `<portent.h>`.
const HEADER: &str = include_str!("portent.h");
const HEADER_NAME: &str = "portent.h";

/// The directory with the runtime; unpacks it if need be.
pub fn directory() -> Result<PathBuf, Error> {
    static READY: OnceLock<PathBuf> = OnceLock::new();
    if let Some(directory) = READY.get() {
        return Ok(directory.clone());
    }
    let directory = unpacked()?;
    Ok(READY.get_or_init(|| directory).clone())
}

fn unpacked() -> Result<PathBuf, Error> {
    available()?;
    let mut refused = Vec::new();
    for folder in folders(|name| env::var_os(name))? {
        match unpack(&folder) {
            Ok(directory) => return Ok(directory),
            Err(error) => refused.push(format!("{}: {error}", folder.path.display())),
        }
    }
    Err(Error::refused(
        format!("the runtime could not be unpacked: {}", refused.join("; ")),
        "set PORTENT_CACHE to a directory of yours that can be written to",
    ))
}

/// Whether this build has a runtime at all.
pub fn available() -> Result<(), Error> {
    if LIBRARY.is_empty() {
        return Err(Error::refused(
            "this build of portent cannot build, record or replay programs",
            "that needs Linux on x86-64 with glibc (the Rust target x86_64-unknown-linux-gnu); traces work everywhere",
        ));
    }
    Ok(())
}

/// Where to unpack: what names the directory, and else where the XDG rules have it.
const PLACES: [&str; 3] = ["PORTENT_CACHE", "XDG_CACHE_HOME", ".cache"];

fn folders(variable: impl Fn(&str) -> Option<OsString>) -> Result<Vec<Folder>, Error> {
    private::folders(variable, PLACES)
        .map_err(|error| Error::refused(format!("PORTENT_CACHE: {error}"), "name a directory"))
}

fn unpack(folder: &Folder) -> IoResult<PathBuf> {
    if folder.path.as_os_str().as_bytes().contains(&b':') {
        return Err(io::Error::other("a directory with ':' in its name cannot be searched for libraries"));
    }
    private::create(&folder.path)?;
    // A directory of somebody's own may be a link, and its group may write there.
    let (place, others) = match folder.in_public {
        true => (folder.path.clone(), Others::Read),
        false => (folder.path.canonicalize()?, Others::GroupWrites),
    };
    private::check(&place, others)?;
    let directory = folder.path.join(format!("runtime-{}", hash()));
    private::create(&directory)?;
    private::check(&directory, Others::Read)?;
    provide_file(&directory, NAME, LIBRARY)?;
    provide_file(&directory, SPECS_NAME, SPECS.as_bytes())?;
    provide_file(&directory, HEADER_NAME, HEADER.as_bytes())?;
    for alias in ALIASES {
        provide_alias(&directory, alias)?;
    }
    Ok(directory)
}

/// Names all that is in the directory: other contents, other directory.
fn hash() -> String {
    let start = u64::from_str_radix(LIBRARY_HASH, 16).unwrap_or_default();
    let hash = SPECS
        .bytes()
        .chain(HEADER.bytes())
        .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}

fn provide_file(directory: &Path, name: &str, contents: &[u8]) -> IoResult<()> {
    let path = directory.join(name);
    if fs::read(&path).is_ok_and(|found| found == contents) {
        return Ok(());
    }
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(contents)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o600))?;
    file.persist(path)?;
    Ok(())
}

fn provide_alias(directory: &Path, name: &str) -> IoResult<()> {
    let path = directory.join(name);
    if fs::read_link(&path).is_ok_and(|target| target == Path::new(NAME)) {
        return Ok(());
    }
    let beside = tempfile::Builder::new().make_in(directory, |path| symlink(NAME, path))?;
    beside.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn named(pairs: &[(&str, &str)]) -> Vec<PathBuf> {
        let pairs: Vec<_> = pairs.iter().map(|&(name, value)| (name.to_owned(), OsString::from(value))).collect();
        let look = |name: &str| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.clone());
        folders(look).unwrap().into_iter().map(|folder| folder.path).collect()
    }

    fn private(path: PathBuf) -> Folder {
        Folder { path, in_public: false }
    }

    #[test]
    fn the_cache_is_where_the_environment_says() {
        let last = PathBuf::from(format!("/tmp/portent-of-{}", private::user().unwrap()));
        assert_eq!(named(&[("PORTENT_CACHE", "/a"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), [Path::new("/a")]);
        assert_eq!(named(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), [Path::new("/x/portent"), &last]);
        assert_eq!(named(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]), [Path::new("/h/.cache/portent"), &last]);
        assert_eq!(named(&[("PORTENT_CACHE", ""), ("HOME", "")]), [last]);
    }

    #[test]
    fn a_damaged_library_is_repaired_and_a_good_one_is_left_alone() {
        let cache = tempfile::tempdir().unwrap();
        let folder = private(cache.path().join("not/yet/there"));
        let directory = unpack(&folder).unwrap();
        let library = directory.join(NAME);
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::read(&library).unwrap(), LIBRARY);
        assert_eq!(fs::read(directory.join("libtsan.so.2")).unwrap(), LIBRARY);
        let before = fs::metadata(&library).unwrap().ino();
        assert_eq!(unpack(&folder).unwrap(), directory);
        assert_eq!(fs::metadata(&library).unwrap().ino(), before);
        fs::write(&library, &LIBRARY[..LIBRARY.len() / 2]).unwrap();
        fs::remove_file(directory.join("libtsan.so.2")).unwrap();
        unpack(&folder).unwrap();
        assert_eq!(fs::read(directory.join("libtsan.so.2")).unwrap(), LIBRARY);
        let left: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 3 + ALIASES.len(), "{left:?}");
    }

    #[test]
    fn many_builds_unpack_at_once() {
        let cache = tempfile::tempdir().unwrap();
        let folder = private(cache.path().join("portent"));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let directory = unpack(&folder).unwrap();
                    assert_eq!(fs::read(directory.join(NAME)).unwrap(), LIBRARY);
                });
            }
        });
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let cache = tempfile::tempdir().unwrap();
        let folder = Folder { path: cache.path().join("portent-of-0"), in_public: true };
        fs::create_dir(&folder.path).unwrap();
        fs::set_permissions(&folder.path, fs::Permissions::from_mode(0o777)).unwrap();
        for folder in [&folder, &Folder { in_public: false, ..folder.clone() }] {
            let refused = unpack(folder).unwrap_err().to_string();
            assert!(refused.ends_with("is not a directory that only this user can write to"), "{refused}");
        }
        fs::set_permissions(&folder.path, fs::Permissions::from_mode(0o700)).unwrap();
        unpack(&folder).unwrap();
        let elsewhere = Folder { path: cache.path().join("link"), in_public: true };
        symlink(&folder.path, &elsewhere.path).unwrap();
        unpack(&elsewhere).unwrap_err();
    }

    #[test]
    fn a_cache_that_is_no_directory_or_has_a_colon_is_refused() {
        let cache = tempfile::tempdir().unwrap();
        fs::write(cache.path().join("file"), "").unwrap();
        unpack(&private(cache.path().join("file"))).unwrap_err();
        unpack(&private(cache.path().join("a:b"))).unwrap_err();
    }
}
