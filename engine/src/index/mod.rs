//! How do I find a position? Offset, time and transaction indexes.
