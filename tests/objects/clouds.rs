//! Google Cloud Storage and Azure Blob Storage, as far as a server that speaks like them shows:
//! where requests go, what is taken from their answers, and how their listings are read.

use siltstone::Kind;
use siltstone::tier::ObjectTarget;
use siltstone_objects::RemoteStore;

use crate::server::{Answer, Request, Server};

const BYTES: &[u8] = b"0123456789";

/// What Google's store says of the objects below a prefix.
const LISTED_BY_GOOGLE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://doc.s3.amazonaws.com/2006-03-01">
  <Name>bucket</Name><Prefix>remote/</Prefix><KeyCount>2</KeyCount>
  <IsTruncated>false</IsTruncated>
  <Contents><Key>remote/a.log</Key><Size>10</Size><ETag>"one"</ETag>
    <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>
  <Contents><Key>remote/b.index</Key><Size>8</Size><ETag>"two"</ETag>
    <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>
</ListBucketResult>"#;

/// What Azure's says.
const LISTED_BY_AZURE: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<EnumerationResults ServiceEndpoint="http://127.0.0.1/" ContainerName="container">
  <Prefix>remote/</Prefix>
  <Blobs>
    <Blob><Name>remote/a.log</Name><Properties>
      <Last-Modified>Thu, 01 Jan 2026 00:00:00 GMT</Last-Modified><Etag>one</Etag>
      <Content-Length>10</Content-Length><Content-Type>application/octet-stream</Content-Type>
    </Properties></Blob>
    <Blob><Name>remote/b.index</Name><Properties>
      <Last-Modified>Thu, 01 Jan 2026 00:00:00 GMT</Last-Modified><Etag>two</Etag>
      <Content-Length>8</Content-Length><Content-Type>application/octet-stream</Content-Type>
    </Properties></Blob>
  </Blobs>
  <NextMarker />
</EnumerationResults>"#;

fn answer(request: &Request, listing: &str) -> Answer {
    if request.path.contains('?') {
        return Answer { status: 200, body: listing.into(), ..Answer::default() };
    }
    // Google's names are written so that a slash is a part of them.
    let path = request.path.replace("%2F", "/").replace("%2E", ".");
    match path.ends_with("/remote/a.log") {
        true => Answer::object(request, BYTES, "one"),
        false => Answer::status(404),
    }
}

/// Reads and lists through a store whose objects are found below `path` on the server.
fn check(server: &Server, store: &RemoteStore, path: &str) {
    assert_eq!(store.get("remote/a.log", None, 10).unwrap(), BYTES);
    assert_eq!(store.get("remote/a.log", Some(3..7), 4).unwrap(), b"3456");
    assert_eq!(store.size("remote/a.log").unwrap(), 10);
    let missing = store.get("remote/c.log", None, 10).unwrap_err();
    assert_eq!(missing.kind(), Kind::NotFound, "{missing}");
    let listed = store.list("remote/").unwrap();
    let found: Vec<_> = listed.iter().map(|it| (&*it.name, it.size_bytes)).collect();
    assert_eq!(found, [("remote/a.log", 10), ("remote/b.index", 8)]);
    for request in server.requests() {
        assert!(request.path.starts_with(path), "{request:?}");
    }
}

#[test]
fn objects_of_google_cloud_storage_are_read_and_listed() {
    let server = Server::start(|request| answer(request, LISTED_BY_GOOGLE));
    let settings = [("google_base_url", &*server.address()), ("google_skip_signature", "true")];
    check(&server, &server.store_at("gs://bucket", &settings), "/bucket");
}

#[test]
fn objects_of_azure_blob_storage_are_read_and_listed() {
    let server = Server::start(|request| answer(request, LISTED_BY_AZURE));
    let settings = [
        ("azure_storage_account_name", "account"),
        ("azure_endpoint", &*server.address()),
        ("azure_skip_signature", "true"),
    ];
    check(&server, &server.store_at("az://container", &settings), "/container");
}
