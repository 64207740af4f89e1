//! A directory for one test.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A new directory with the files of one test; gone with it.
#[derive(Debug)]
pub struct Scratch {
    directory: TempDir,
}

impl Scratch {
    /// An empty one.
    #[allow(clippy::new_without_default)] // It makes a directory.
    pub fn new() -> Self {
        Self { directory: TempDir::with_prefix("portent-test-").expect("there is room for temporary files") }
    }
    /// One with a file.
    pub fn with(name: &str, contents: impl AsRef<[u8]>) -> Self {
        Self::new().and(name, contents)
    }
    /// The same, with a file more.
    pub fn and(self, name: &str, contents: impl AsRef<[u8]>) -> Self {
        self.write(name, contents);
        self
    }
    /// The directory itself.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
    /// Where a file of this name is or will be.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
    /// Writes a file, and the directories that its name has.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        let folder = path.parent().expect("it is below the directory");
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, contents));
        written.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    /// The text of a file; bytes that are none are replaced.
    pub fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        String::from_utf8_lossy(&bytes).into_owned()
    }
    /// The names of what is there, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory()).expect("it is ours");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("it is ours").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

#[test]
fn a_scratch_directory_has_its_files_and_goes() {
    let scratch = Scratch::with("a", "1").and("b/c", "2");
    assert_eq!((scratch.read("b/c").as_str(), scratch.names()), ("2", vec!["a".to_owned(), "b".to_owned()]));
    let path = scratch.path("a");
    drop(scratch);
    assert!(!path.exists());
}
