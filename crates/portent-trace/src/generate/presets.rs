//! Presets: traces with the shape of the papers' benchmarks.
//!
//! Threads, events, variables, locks and blocks are those of the published tables; the rest is plausible.

use super::config::{Config, Locations};

/// Every preset: its name, and what it is in one line.
pub const PRESETS: &[(&str, &str)] = &[
    ("tsp", "travelling salesman: 20 threads, 11 M events, 1,510 variables, 2 locks, 106 huge atomic blocks"),
    ("tsp-tiny", "travelling salesman: 3 threads, 97 events, 30 variables, 2 locks, 5 blocks"),
    ("tsp-small", "travelling salesman: 8 threads, 18 K events, 50 variables, 2 locks, 10 blocks"),
    ("tsp-medium", "travelling salesman: 5 threads, 1.4 M events, 140 variables, 2 locks, 17 blocks"),
    ("tsp-large", "travelling salesman: 10 threads, 2.5 M events, 140 variables, 2 locks, 31 blocks"),
    ("elevator", "discrete-event simulation: 5 threads, 78 K events, 200 variables, 50 locks, 273 blocks"),
    ("elevator-small", "discrete-event simulation: 3 threads, 9 K events, 32 variables, 8 locks, 140 blocks"),
    ("elevator-medium", "discrete-event simulation: 5 threads, 29 K events, 32 variables, 8 locks, 423 blocks"),
    ("daisy", "file system: 3 threads, 2,998 events, 45 variables, 10 locks; 128 K pairs of a read and another write"),
    (
        "thrift",
        "RPC server: 6 threads, 20,640 events, 519 variables, 158 locks; 160 K pairs of a read and another write",
    ),
    ("thrift-small", "RPC server: 4 threads, 2,406 events, 62 variables, 12 locks"),
    ("thrift-medium", "RPC server: 4 threads, 11,357 events, 171 variables, 48 locks"),
    ("compressor", "parallel compressor: 6 threads, 20 M events, 60,000 variables, nearly all of one thread; 8 locks"),
    ("raytracer", "10 threads, 86 events, 1 variable under 10 different locks, 10 blocks"),
    ("stack", "synchronized stack: 2 threads, 105 events, 4 variables, 2 locks, 2 blocks"),
    ("vector", "synchronized vector: 2 threads, 107 events, 4 variables, 2 locks, 2 blocks"),
    ("hedc", "web crawler: 10 threads, 176 events, 6 variables, 2 locks, 10 blocks"),
    ("conpool", "connection pool: 4 threads, 97 events, 5 variables, 1 lock"),
    ("liveness", "7 threads, 283 events, 12 variables, 9 locks"),
    ("synchbench", "synchronisation benchmark: 16 threads, 1,510 events, 15 variables, 2 locks"),
    ("barrier", "barrier benchmark: 10 threads, 653 events, 12 variables, 2 locks, barrier rounds"),
    ("account", "bank accounts: 11 threads, 902 events, 42 variables, 21 locks"),
    ("philo", "dining philosophers: 6 threads, 1,141 events, 23 variables, 6 locks taken two at a time"),
];

fn shape(threads: u32, events: u64, variables: u32, locks: u32, blocks: u64) -> Config {
    Config { threads, events, variables, locks, blocks, locations: Locations::Named, ..Config::default() }
}

impl Config {
    /// The preset of this name; [`PRESETS`] lists them.
    pub fn preset(name: &str) -> Option<Config> {
        // Mostly private work, with short sections on one global bound.
        let tsp = |threads, events, variables, blocks| Config {
            local: 0.7,
            guarded: 0.05,
            section: 4,
            nesting: 1,
            unguarded: 0.02,
            quantum: 60,
            ..shape(threads, events, variables, 2, blocks)
        };
        let elevator = |threads, events, variables, locks, blocks| Config {
            local: 0.2,
            guarded: 0.8,
            section: 6,
            conditions: 1,
            waits: 0.01,
            quantum: 12,
            ..shape(threads, events, variables, locks, blocks)
        };
        let server = |threads, events, variables, locks| Config {
            conditions: 3,
            wait_events: Some(events * 17 / 1000),
            accesses: Some(events * 43 / 100),
            lock_events: Some(events * 83 / 1000),
            section: 4,
            values: 1.0,
            branches: 0.15,
            calls: 0.1,
            local: 0.2,
            ..shape(threads, events, variables, locks, 0)
        };
        let small = |threads, events, variables, locks, blocks| Config {
            section: 3,
            quantum: 6,
            local: 0.0,
            unguarded: 0.1,
            ..shape(threads, events, variables, locks, blocks)
        };
        Some(match name {
            "tsp" => tsp(20, 11_000_000, 1_510, 106),
            "tsp-tiny" => Config { quantum: 6, ..tsp(3, 97, 30, 5) },
            "tsp-small" => tsp(8, 18_000, 50, 10),
            "tsp-medium" => tsp(5, 1_400_000, 140, 17),
            "tsp-large" => tsp(10, 2_500_000, 140, 31),
            "elevator" => elevator(5, 78_000, 200, 50, 273),
            "elevator-small" => elevator(3, 9_000, 32, 8, 140),
            "elevator-medium" => elevator(5, 29_000, 32, 8, 423),
            "daisy" => Config {
                accesses: Some(2_003),
                lock_events: Some(422),
                wait_events: Some(15),
                conditions: 1,
                time_outs: 0.0,
                notify_all: 0.0,
                blocks: 60,
                section: 8,
                local: 0.0,
                hot: 0.7,
                hot_variables: 2,
                ..server(3, 2_998, 45, 10)
            },
            "thrift" => Config {
                accesses: Some(8_818),
                lock_events: Some(1_724),
                wait_events: Some(349),
                time_outs: 0.0,
                notify_all: 0.0,
                section: 8,
                hot: 0.46,
                hot_variables: 4,
                ..server(6, 20_640, 519, 158)
            },
            "thrift-small" => server(4, 2_406, 62, 12),
            "thrift-medium" => server(4, 11_357, 171, 48),
            // As recorded of lbzip2: 97 of 100 accesses are to memory of one thread, and blocks go round in queues.
            "compressor" => Config {
                local: 0.97,
                guarded: 0.04,
                unguarded: 0.0,
                section: 6,
                quantum: 200,
                values: 1.0,
                calls: 0.02,
                conditions: 3,
                waits: 0.0005,
                ..shape(6, 20_000_000, 60_000, 8, 0)
            },
            "raytracer" => Config { guarded: 0.9, ..small(10, 86, 1, 10, 10) },
            "stack" => small(2, 105, 4, 2, 2),
            "vector" => small(2, 107, 4, 2, 2),
            "hedc" => small(10, 176, 6, 2, 10),
            "conpool" => Config { conditions: 1, waits: 0.06, ..small(4, 97, 5, 1, 0) },
            "liveness" => Config { conditions: 2, waits: 0.04, ..small(7, 283, 12, 9, 0) },
            "synchbench" => Config { guarded: 0.9, ..small(16, 1_510, 15, 2, 0) },
            "barrier" => Config { barriers: 1, barrier_events: 0.2, ..small(10, 653, 12, 2, 0) },
            "account" => Config { nesting: 2, guarded: 0.8, ..small(11, 902, 42, 21, 0) },
            "philo" => Config { nesting: 2, guarded: 0.95, unguarded: 0.02, ..small(6, 1_141, 23, 6, 0) },
            _ => return None,
        })
    }
}
