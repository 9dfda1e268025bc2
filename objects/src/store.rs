//! A store behind a URL, one call at a time.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, GetResult, MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload,
};
use siltstone::tier::{ObjectBytes, ObjectInfo, ObjectTarget};
use siltstone::{Error, Kind, Result};
use tokio::runtime::{Builder, Runtime};

use crate::chunks::Chunks;
use crate::connect::connect;
use crate::failure::error_of;
use crate::options::StoreOptions;
use crate::place::Place;
use crate::versions::{Version, Versions};

/// The objects below a URL.
///
/// Names of objects begin behind the URL: with `s3://bucket/folder`, the name `a/b.log` is that of
/// the object `folder/a/b.log`. Reads of one object are of one version of it: as soon as it is
/// another one, a read fails with `Conflict`, and only the next one is of the new version.
pub struct RemoteStore {
    runtime: Runtime,
    store: Box<dyn ObjectStore>,
    shown: String,
    /// In front of every name, with its `/`.
    prefix: String,
    options: StoreOptions,
    versions: Mutex<Versions>,
}

/// The body of an answer was not what its head had promised; the next try may be better.
struct BadBody(Error);

/// The bytes of an answer.
type Body = std::result::Result<Vec<u8>, BadBody>;

impl RemoteStore {
    /// The objects below the URL, such as `s3://bucket/folder`. Nothing is asked of the store yet.
    ///
    /// Address and credentials come from the environment as the store's own tools have them:
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`,
    /// `AWS_ENDPOINT_URL` and so on; `GOOGLE_APPLICATION_CREDENTIALS`; `AZURE_STORAGE_ACCOUNT_NAME`
    /// and so on.
    ///
    /// # Errors
    /// `InvalidArgument` for a URL that names no such store, and for settings it does not take.
    pub fn open(place: &Place, options: StoreOptions) -> Result<Self> {
        let store = connect(place, &options)?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| {
            Error::new(Kind::Io, format!("start a runtime for {}: {error}", place.shown()))
        })?;
        let prefix = match place.path() {
            "" => String::new(),
            path => format!("{path}/"),
        };
        let (shown, versions) = (place.shown(), Mutex::default());
        Ok(RemoteStore { runtime, store, shown, prefix, options, versions })
    }

    fn path(&self, name: &str) -> Result<Path> {
        let full = format!("{}{name}", self.prefix);
        let is_odd = name.is_empty() || name.starts_with('/') || name.ends_with('/');
        match Path::parse(&full) {
            Ok(path) if !is_odd => Ok(path),
            _ => {
                let why = format!("{name:?} is no name of an object");
                Err(Error::new(Kind::InvalidArgument, why))
            }
        }
    }

    /// Waits for an answer, but not for ever.
    fn wait<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let time = self.options.call_time();
        self.runtime.block_on(async {
            tokio::time::timeout(time, work).await.unwrap_or_else(|_| {
                let why = format!("no answer within {} s", time.as_secs_f32());
                Err(Error::new(Kind::Io, why))
            })
        })
    }

    fn versions(&self) -> MutexGuard<'_, Versions> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says which object an error is of.
    fn of<'a>(&'a self, operation: &'a str, name: &'a str) -> impl Fn(Error) -> Error + 'a {
        move |error| error.context(format!("{operation} {}/{name}", self.shown))
    }

    /// The head of an answer, checked to be of the version that is known.
    async fn ask(&self, name: &str, options: GetOptions) -> Result<GetResult> {
        let path = self.path(name)?;
        let options = GetOptions { if_match: self.versions().tag(name), ..options };
        let answer = self.store.get_opts(&path, options).await.map_err(|error| {
            let error = error_of(&error, Kind::Io);
            if matches!(error.kind(), Kind::Conflict | Kind::NotFound) {
                self.versions().forget(name);
            }
            if error.kind() == Kind::Conflict { changed() } else { error }
        })?;
        if !self.versions().is_same(name, Version::of(&answer.meta)) {
            return Err(changed());
        }
        Ok(answer)
    }

    async fn head(&self, name: &str) -> Result<u64> {
        Ok(self.ask(name, GetOptions { head: true, ..GetOptions::default() }).await?.meta.size)
    }

    /// The bytes of an object, asked for again when their transfer fails.
    async fn read(&self, name: &str, range: Option<Range<u64>>, limit: u64) -> Result<Vec<u8>> {
        let begin = Instant::now();
        let mut tries = 0;
        loop {
            match self.read_once(name, range.clone(), limit).await? {
                Ok(bytes) => return Ok(bytes),
                Err(BadBody(error)) => {
                    let is_over = begin.elapsed() >= self.options.retry_time;
                    if tries >= self.options.retries_max || is_over {
                        return Err(error);
                    }
                    tokio::time::sleep(self.options.pause(tries)).await;
                    tries += 1;
                }
            }
        }
    }

    async fn read_once(
        &self,
        name: &str,
        range: Option<Range<u64>>,
        limit_bytes: u64,
    ) -> Result<Body> {
        let asked = range.clone().map(GetRange::Bounded);
        let options = GetOptions { range: asked, ..GetOptions::default() };
        let answer = match self.ask(name, options).await {
            // A range behind the end is an error of many names; the size tells.
            Err(error) if error.kind() == Kind::Io && range.is_some() => {
                if let Ok(size_bytes) = self.head(name).await {
                    check_range(range.as_ref(), size_bytes)?;
                }
                return Err(error);
            }
            answer => answer?,
        };
        check_range(range.as_ref(), answer.meta.size)?;
        let range = range.unwrap_or(0..answer.meta.size);
        let wanted_bytes = range.end.saturating_sub(range.start);
        let wanted = usize::try_from(wanted_bytes).ok().filter(|_| wanted_bytes <= limit_bytes);
        let Some(wanted) = wanted else {
            let why = format!("{wanted_bytes} bytes are above the limit of {limit_bytes}");
            return Err(Error::new(Kind::Limit, why));
        };
        Ok(collect(answer, range.start, wanted).await)
    }

    async fn put_parts(&self, name: &str, parts: &[ObjectBytes<'_>]) -> Result<()> {
        let path = self.path(name)?;
        let mut chunks = Chunks::new(parts, self.options.part_bytes);
        if chunks.is_single() {
            let bytes = chunks.next()?.unwrap_or_default();
            let put = self.store.put(&path, PutPayload::from(bytes));
            return self.within(put).await.map(|_| ());
        }
        let mut upload = self.within(self.store.put_multipart(&path)).await?;
        let outcome = self.upload(&mut *upload, &mut chunks).await;
        if outcome.is_err() {
            // What is left of it is no object; the store's own rules remove it in the end.
            upload.abort().await.ok();
        }
        outcome
    }

    async fn upload(
        &self,
        upload: &mut dyn MultipartUpload,
        chunks: &mut Chunks<'_>,
    ) -> Result<()> {
        while let Some(part) = chunks.next()? {
            self.within(upload.put_part(PutPayload::from(part))).await?;
        }
        self.within(upload.complete()).await.map(|_| ())
    }

    /// One step of many, bounded in time by itself.
    async fn within<T>(&self, step: impl Future<Output = object_store::Result<T>>) -> Result<T> {
        let time = self.options.call_time();
        match tokio::time::timeout(time, step).await {
            Ok(outcome) => outcome.map_err(|error| error_of(&error, Kind::Io)),
            Err(_) => {
                let why = format!("no answer within {} s", time.as_secs_f32());
                Err(Error::new(Kind::Io, why))
            }
        }
    }

    async fn list_all(&self, prefix: &str) -> Result<Vec<ObjectInfo>> {
        let full = format!("{}{prefix}", self.prefix);
        // A store lists folders.
        let folder = full.rsplit_once('/').map(|(folder, _)| folder);
        let folder = folder.map(Path::parse).transpose().map_err(|_| {
            let why = format!("{prefix:?} is no prefix of names of objects");
            Error::new(Kind::InvalidArgument, why)
        })?;
        let mut stream = self.store.list(folder.as_ref());
        let mut objects = Vec::new();
        while let Some(found) = self.within(next(&mut stream)).await? {
            let name = found.location.as_ref();
            if let Some(name) = name.strip_prefix(&self.prefix).filter(|it| it.starts_with(prefix))
            {
                objects.push(ObjectInfo { name: name.to_owned(), size_bytes: found.size });
            }
        }
        objects.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(objects)
    }
}

/// The next of a stream.
async fn next<T>(
    stream: &mut (impl futures_util::Stream<Item = object_store::Result<T>> + Unpin),
) -> object_store::Result<Option<T>> {
    stream.next().await.transpose()
}

/// The body of an answer, which must have just so many bytes.
async fn collect(answer: GetResult, position: u64, wanted: usize) -> Body {
    let mut bytes = Vec::new();
    let mut stream = answer.into_stream();
    loop {
        let piece = next(&mut stream).await.map_err(|error| {
            let at = position.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            BadBody(error_of(&error, Kind::Io).at_position(at))
        })?;
        let is_end = piece.is_none();
        bytes.extend_from_slice(&piece.unwrap_or_default());
        if bytes.len() > wanted || (is_end && bytes.len() < wanted) {
            let count = bytes.len();
            let more = if is_end { "" } else { " or more" };
            let why = format!("the store gave {count}{more} bytes of the {wanted} asked for");
            return Err(BadBody(Error::corrupt(why).at_position(position)));
        }
        if is_end {
            return Ok(bytes);
        }
    }
}

fn check_range(range: Option<&Range<u64>>, size_bytes: u64) -> Result<()> {
    match range {
        Some(range) if range.start > range.end || range.end > size_bytes => {
            let Range { start, end } = range;
            let why = format!("bytes {start} to {end} of an object of {size_bytes}");
            Err(Error::new(Kind::OutOfRange, why))
        }
        _ => Ok(()),
    }
}

fn changed() -> Error {
    Error::new(Kind::Conflict, "the object is another one than it was before")
}

impl fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteStore").field("url", &self.shown).finish_non_exhaustive()
    }
}

impl ObjectTarget for RemoteStore {
    fn get(&self, name: &str, range: Option<Range<u64>>, size_limit_bytes: u64) -> Result<Vec<u8>> {
        let work = async {
            // No request can ask for nothing.
            if range.as_ref().is_some_and(|range| range.is_empty()) {
                let size_bytes = self.head(name).await?;
                return check_range(range.as_ref(), size_bytes).map(|()| Vec::new());
            }
            self.read(name, range, size_limit_bytes).await
        };
        self.wait(work).map_err(self.of("read", name))
    }

    fn size(&self, name: &str) -> Result<u64> {
        self.wait(self.head(name)).map_err(self.of("examine", name))
    }

    fn put(&self, name: &str, parts: &[ObjectBytes<'_>]) -> Result<()> {
        self.versions().forget(name);
        let outcome = self.runtime.block_on(self.put_parts(name, parts));
        self.versions().forget(name);
        outcome.map_err(self.of("put", name))
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.versions().forget(name);
        let work = async {
            let path = self.path(name)?;
            self.store.delete(&path).await.map_err(|error| error_of(&error, Kind::Io))
        };
        match self.wait(work) {
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            outcome => outcome.map_err(self.of("delete", name)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>> {
        let outcome = self.runtime.block_on(self.list_all(prefix));
        outcome.map_err(self.of("list", prefix))
    }
}
