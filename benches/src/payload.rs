//! Bytes that compress as the records of real topics do.

use std::io::Write;

const WORDS: [&str; 16] = [
    "order", "customer", "amount", "currency", "shipped", "pending", "region", "payment",
    "invoice", "status", "created", "updated", "item", "quantity", "discount", "express",
];
const EVENT_SIZE: usize = 200;

/// `size` bytes of JSON events of about 200 bytes each; another `seed` gives others.
#[must_use]
pub fn json_events(size: usize, seed: u64) -> Vec<u8> {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 8) % below
    };
    let word = |index: u64| WORDS.iter().cycle().nth(usize::try_from(index).unwrap_or(0));
    let mut events = Vec::with_capacity(size + EVENT_SIZE * 2);
    while events.len() < size {
        let end = events.len() + EVENT_SIZE;
        // Writing to memory does not fail.
        let _ = write!(events, "{{\"id\":{}", next(1_000_000_000));
        while events.len() < end {
            let name = word(next(16)).unwrap_or(&"");
            let _ = if next(4) == 0 {
                write!(events, ",\"{name}\":\"{}\"", word(next(16)).unwrap_or(&""))
            } else {
                write!(events, ",\"{name}\":{}", next(1_000_000))
            };
        }
        events.push(b'}');
    }
    events.truncate(size);
    events
}
