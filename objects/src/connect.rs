//! How is a store reached: its address, its credentials, and how patient one is with it?

use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig,
};
use siltstone::{Error, Kind, Result};

use crate::failure::error_of;
use crate::options::StoreOptions;
use crate::place::Place;

/// A store by what a URL says, the environment and the options, each outweighing the one before.
pub(crate) fn connect(place: &Place, options: &StoreOptions) -> Result<Box<dyn ObjectStore>> {
    // Whoever has chosen one for this process keeps it.
    rustls::crypto::ring::default_provider().install_default().ok();
    let shown = place.shown();
    let failed = |error| error_of(&error, Kind::InvalidArgument).context(format!("open {shown}"));
    match place.scheme {
        ObjectStoreScheme::AmazonS3 => {
            let mut builder = AmazonS3Builder::from_env().with_url(place.url.as_str());
            for (key, value) in client_settings(options) {
                builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
            }
            for (key, value) in &options.settings {
                builder = builder.with_config(parsed(key)?, value);
            }
            let endpoints = [AmazonS3ConfigKey::Endpoint, AmazonS3ConfigKey::S3Endpoint]
                .map(|key| builder.get_config_value(&key));
            if endpoints.iter().flatten().any(|endpoint| is_plain(endpoint)) {
                builder = builder.with_allow_http(true);
            }
            Ok(Box::new(builder.with_retry(retry(options)).build().map_err(failed)?))
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            let mut builder = GoogleCloudStorageBuilder::from_env().with_url(place.url.as_str());
            for (key, value) in client_settings(options) {
                builder = builder.with_config(GoogleConfigKey::Client(key), value);
            }
            for (key, value) in &options.settings {
                builder = builder.with_config(parsed(key)?, value);
            }
            if builder.get_config_value(&GoogleConfigKey::BaseUrl).as_deref().is_some_and(is_plain)
            {
                let key = GoogleConfigKey::Client(ClientConfigKey::AllowHttp);
                builder = builder.with_config(key, "true");
            }
            Ok(Box::new(builder.with_retry(retry(options)).build().map_err(failed)?))
        }
        ObjectStoreScheme::MicrosoftAzure => {
            let mut builder = MicrosoftAzureBuilder::from_env().with_url(place.url.as_str());
            for (key, value) in client_settings(options) {
                builder = builder.with_config(AzureConfigKey::Client(key), value);
            }
            for (key, value) in &options.settings {
                builder = builder.with_config(parsed(key)?, value);
            }
            if builder.get_config_value(&AzureConfigKey::Endpoint).as_deref().is_some_and(is_plain)
            {
                builder = builder.with_allow_http(true);
            }
            Ok(Box::new(builder.with_retry(retry(options)).build().map_err(failed)?))
        }
        ObjectStoreScheme::Http => {
            let mut client = ClientOptions::new().with_allow_http(true);
            for (key, value) in client_settings(options) {
                client = client.with_config(key, value);
            }
            for (key, value) in &options.settings {
                client = client.with_config(parsed(key)?, value);
            }
            let mut root = place.url.clone();
            root.set_path("/");
            let builder = HttpBuilder::new().with_url(root).with_client_options(client);
            Ok(Box::new(builder.with_retry(retry(options)).build().map_err(failed)?))
        }
        _ => {
            let why = format!("{shown}: not a store that is reached over a network");
            Err(Error::new(Kind::InvalidArgument, why))
        }
    }
}

/// Who writes http:// in front of an address wants it.
fn is_plain(endpoint: &str) -> bool {
    endpoint.starts_with("http://")
}

/// A setting's name.
fn parsed<K: std::str::FromStr>(key: &str) -> Result<K> {
    key.to_ascii_lowercase().parse().map_err(|_| {
        Error::new(Kind::InvalidArgument, format!("{key:?} is no setting of this kind of store"))
    })
}

fn client_settings(options: &StoreOptions) -> [(ClientConfigKey, String); 2] {
    let written = |time: Duration| format!("{} ms", time.as_millis());
    [
        (ClientConfigKey::ConnectTimeout, written(options.connect_time)),
        (ClientConfigKey::Timeout, written(options.request_time)),
    ]
}

fn retry(options: &StoreOptions) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: options.pause(0),
            max_backoff: options.pause(usize::MAX),
            base: 2.0,
        },
        max_retries: options.retries_max,
        retry_timeout: options.retry_time,
    }
}
