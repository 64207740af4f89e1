//! The `portent` command; everything it does is in the library of the same name.

fn main() -> std::process::ExitCode {
    portent::run(std::env::args_os()).into()
}
