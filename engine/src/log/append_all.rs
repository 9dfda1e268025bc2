//! How does a leader append what waits for one log, as one write?

use super::AppendInfo;
use super::append_error::AppendError;
use super::append_leader::{AppendScratch, LeaderAppend};
use super::append_many::{AppendAs, AppendRequest, append_many};
use super::log::Log;

impl Log {
    /// Appends the batches of many producers in order, each as
    /// [`append_as_leader`](Self::append_as_leader) does, but with one write where that is
    /// possible: many small writes cost more than a large one. [`append_many`] does the same for
    /// many logs.
    ///
    /// There is an answer for each of `all`; what is refused does not keep out the others.
    pub fn append_all_as_leader(
        &self,
        all: &mut [&mut [u8]],
        append: &LeaderAppend,
        scratch: &mut AppendScratch,
    ) -> Vec<Result<AppendInfo, AppendError>> {
        let append = AppendAs::Leader(*append);
        let requests = all.iter_mut().map(|records| AppendRequest { log: self, records, append });
        append_many(&mut requests.collect::<Vec<_>>(), scratch)
    }
}
