//! What the black-box tests share: fixtures, cases and builders.
