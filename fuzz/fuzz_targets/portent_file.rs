#![no_main]

#[path = "../../crates/portent-trace/tests/all/readers.rs"]
#[allow(dead_code)]
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::portent_file(bytes));
