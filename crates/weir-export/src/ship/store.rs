//! Where objects go: an S3 store, or a directory.

use std::error::Error;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use object_store::aws::{AmazonS3Builder, Checksum};
use object_store::local::LocalFileSystem;
use object_store::path::{Path as ObjectPath, PathPart};
use object_store::{
    ClientOptions, Error as Failed, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, RetryConfig,
    WriteMultipart,
};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::files::Finished;

/// Larger files go in pieces of this size.
const PIECE: usize = 16 << 20;
/// A request with a piece on a slow line.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long a request is tried again at once.
const AGAIN: Duration = Duration::from_secs(5);

/// Why a file is not shipped.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error("cannot ship to {0}: allowed: s3://BUCKET, s3://BUCKET/PREFIX or file:///DIR")]
    Url(String),
    #[error("cannot ship to {0}: {1}")]
    Unusable(String, String),
    /// The store cannot be reached, or refuses whatever it is sent: later it may not.
    #[error("{0}")]
    Unreachable(String),
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("its name is not UTF-8")]
    Name,
    #[error("{0} holds something else, and is never overwritten; rename one of them")]
    Taken(String),
    #[error("{0} has other bytes than were sent; check the store")]
    Damaged(String),
    /// Somebody writes to the file: it was not finished.
    #[error("it has changed meanwhile")]
    Changed,
}

/// What has become of a file.
#[derive(Debug)]
pub(super) struct Shipped {
    /// The object, as a URL.
    pub(super) object: String,
    pub(super) bytes: u64,
    /// In hexadecimal.
    pub(super) sha256: String,
    pub(super) was_there: bool,
}

/// A store.
#[derive(Debug)]
pub(super) struct Store {
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    /// What stands in front of the names of objects.
    url: String,
}

impl Store {
    /// Opens the store of this URL; `endpoint`: where an S3 store is that is not Amazon's.
    pub(super) fn open(text: &str, endpoint: Option<&str>) -> Result<Self, StoreError> {
        let wrong = || StoreError::Url(text.to_owned());
        let unusable = |why: Failed| StoreError::Unusable(text.to_owned(), reason(&why));
        let url = Url::parse(text).map_err(|_| wrong())?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong());
        }
        match (url.scheme(), url.host_str()) {
            ("s3", Some(bucket)) => {
                // The first one wins; somebody else's may be there already.
                let _first = rustls::crypto::ring::default_provider().install_default();
                let again = RetryConfig { max_retries: 3, retry_timeout: AGAIN, ..RetryConfig::default() };
                let mut builder = AmazonS3Builder::from_env()
                    .with_bucket_name(bucket)
                    .with_checksum_algorithm(Checksum::SHA256)
                    .with_retry(again);
                let is_plain = |at: &str| at.starts_with("http://");
                let known = std::env::var("AWS_ENDPOINT_URL").ok();
                let options = ClientOptions::new()
                    .with_timeout(PATIENCE)
                    .with_allow_http(endpoint.or(known.as_deref()).is_some_and(is_plain));
                builder = builder.with_client_options(options);
                if let Some(endpoint) = endpoint {
                    builder = builder.with_endpoint(endpoint);
                }
                let prefix = ObjectPath::from_url_path(url.path()).map_err(|_| wrong())?;
                let store = Arc::new(builder.build().map_err(unusable)?);
                Ok(Self { store, prefix, url: format!("s3://{bucket}") })
            }
            ("file", None) => {
                let dir = url.to_file_path().map_err(|()| wrong())?;
                if !dir.is_dir() {
                    // It may be where a disk is to be mounted, so nothing is made there.
                    let why = "there is no such directory; make it, or mount its disk, first".to_owned();
                    return Err(StoreError::Unusable(text.to_owned(), why));
                }
                let store = LocalFileSystem::new_with_prefix(dir).map_err(unusable)?.with_fsync(true);
                Ok(Self {
                    store: Arc::new(store),
                    prefix: ObjectPath::default(),
                    url: text.trim_end_matches('/').to_owned(),
                })
            }
            _ => Err(wrong()),
        }
    }

    /// Ships a file below `dir`.
    pub(super) async fn ship(&self, dir: &Path, file: &Finished) -> Result<Shipped, StoreError> {
        let mut object = self.prefix.clone();
        for part in &file.path {
            object = object.join(PathPart::from(part.to_str().ok_or(StoreError::Name)?));
        }
        let name = format!("{}/{object}", self.url);
        let mut source = File::open(dir.join(&file.path))?;
        let check = |source: &File| match file.is(&source.metadata()?) {
            true => Ok(()),
            false => Err(StoreError::Changed),
        };
        check(&source)?;
        let (sha256, was_there) = match usize::try_from(file.size) {
            Ok(size) if size <= PIECE => self.put(&mut source, size, &object).await?,
            _ => self.put_pieces(&mut source, &object).await?,
        };
        check(&source)?;
        let found = self.read_back(&object).await?;
        match found == (file.size, sha256) {
            true => Ok(Shipped { object: name, bytes: file.size, sha256: hex(&sha256), was_there }),
            false if was_there => Err(StoreError::Taken(name)),
            false => Err(StoreError::Damaged(name)),
        }
    }

    /// Writes an object at once. Returns the hash of the file, and whether an object was there.
    async fn put(
        &self,
        source: &mut File,
        size: usize,
        object: &ObjectPath,
    ) -> Result<([u8; 32], bool), StoreError> {
        let mut bytes = Vec::with_capacity(size);
        source.read_to_end(&mut bytes)?;
        if bytes.len() != size {
            return Err(StoreError::Changed);
        }
        let sha256 = Sha256::digest(&bytes).into();
        match self.store.put_opts(object, PutPayload::from(bytes), PutMode::Create.into()).await {
            Ok(_) => Ok((sha256, false)),
            Err(Failed::AlreadyExists { .. } | Failed::Precondition { .. }) => Ok((sha256, true)),
            Err(error) => Err(unreachable(&error)),
        }
    }

    /// Writes an object in pieces.
    async fn put_pieces(
        &self,
        source: &mut File,
        object: &ObjectPath,
    ) -> Result<([u8; 32], bool), StoreError> {
        // Whoever writes the same object between this look and the end of the upload loses it: that can only be
        // another weir ship with the same names.
        let was_there = match self.store.head(object).await {
            Ok(_) => true,
            Err(Failed::NotFound { .. }) => false,
            Err(error) => return Err(unreachable(&error)),
        };
        let mut upload = match was_there {
            true => None,
            false => {
                let upload = self.store.put_multipart(object).await.map_err(|error| unreachable(&error))?;
                Some(WriteMultipart::new_with_chunk_size(upload, PIECE))
            }
        };
        let (mut hash, mut piece) = (Sha256::new(), vec![0; PIECE]);
        let read = loop {
            let length = match source.read(&mut piece) {
                Ok(0) => break Ok(()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => break Err(error.into()),
            };
            hash.update(&piece[..length]);
            if let Some(upload) = &mut upload {
                if let Err(error) = upload.wait_for_capacity(2).await {
                    break Err(unreachable(&error));
                }
                upload.write(&piece[..length]);
            }
        };
        match (upload, read) {
            (None, read) => read?,
            (Some(upload), Ok(())) => drop(upload.finish().await.map_err(|error| unreachable(&error))?),
            (Some(upload), Err(error)) => {
                // The reason is the first one.
                let _second = upload.abort().await;
                return Err(error);
            }
        }
        Ok((hash.finalize().into(), was_there))
    }

    /// Returns the size and the hash of an object.
    async fn read_back(&self, object: &ObjectPath) -> Result<(u64, [u8; 32]), StoreError> {
        let result = self.store.get(object).await.map_err(|error| unreachable(&error))?;
        let (mut hash, mut size) = (Sha256::new(), 0);
        let mut stream = result.into_stream();
        while let Some(bytes) = stream.try_next().await.map_err(|error| unreachable(&error))? {
            hash.update(&bytes);
            size += bytes.len() as u64;
        }
        Ok((size, hash.finalize().into()))
    }
}

fn unreachable(error: &Failed) -> StoreError {
    StoreError::Unreachable(reason(error))
}

/// Returns the cause of an error, without what was done about it on the way.
fn reason(error: &Failed) -> String {
    /// A server's page is no message.
    const MOST: usize = 300;
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let mut text = cause.to_string().replace('\n', " ");
    // What a store answers is XML; people want its message.
    if let Some((begin, end)) = text.find("<Message>").zip(text.find("</Message>"))
        && let Some(message) = text.get(begin + "<Message>".len()..end)
    {
        text = message.to_owned();
    }
    if let Some((end, _)) = text.char_indices().nth(MOST) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

fn hex(hash: &[u8; 32]) -> String {
    hash.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}
