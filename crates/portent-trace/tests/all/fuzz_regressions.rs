//! Replays everything fuzzing ever found (fuzz/regressions) through both readers, whichever it broke.

use crate::readers;
use std::path::Path;

fn inputs(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions").join(target);
    let files = std::fs::read_dir(directory).into_iter().flatten();
    let paths = files.map(|file| file.unwrap().path()).filter(|path| !path.ends_with(".gitkeep"));
    paths.map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn inputs_that_once_broke_a_reader_no_longer_do() {
    let all: Vec<Vec<u8>> = ["std_text", "portent_file"].into_iter().flat_map(inputs).collect();
    assert!(!all.is_empty(), "the inputs are where the test looks for them");
    for bytes in &all {
        readers::std_text(bytes);
        readers::portent_file(bytes);
    }
}

/// The harness itself: it must get past the checks of real files, or it tests nothing.
#[test]
fn the_golden_files_go_through_the_same_checks() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    readers::std_text(&std::fs::read(golden.join("v1.std")).unwrap());
    readers::portent_file(&std::fs::read(golden.join("v1.portent")).unwrap());
}
