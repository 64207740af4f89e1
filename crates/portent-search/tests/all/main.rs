//! The search against enumeration, on little programs by chance: nothing missed, nothing invented, no run in vain.

mod complete;
mod little;
mod not_proven;
mod spinning;
