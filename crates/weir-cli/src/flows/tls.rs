//! TLS to a collector: which certificates are trusted, and who weir is. Files are read before the process is confined.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CertificateError, ClientConfig, ClientConnection, Error, RootCertStore};

/// What can be said of it behind a collector's address: `?ca=FILE&cert=FILE&key=FILE&name=NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Certificates of authorities that are trusted in place of the system's.
    ca: Option<PathBuf>,
    /// Weir's certificates and key; both or none.
    own: Option<(PathBuf, PathBuf)>,
    /// The name in the collector's certificate, if it is not the host.
    name: Option<String>,
}

impl Options {
    /// Reads what follows the question mark.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mut options, mut cert, mut key) = (Self::default(), None, None);
        for option in text.split('&') {
            let (word, value) = option.split_once('=').filter(|(_, value)| !value.is_empty())?;
            let path = || PathBuf::from(value);
            let is_second = match word {
                "ca" => options.ca.replace(path()).is_some(),
                "cert" => cert.replace(path()).is_some(),
                "key" => key.replace(path()).is_some(),
                "name" => options.name.replace(value.to_owned()).is_some(),
                _ => return None,
            };
            if is_second {
                return None;
            }
        }
        options.own = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => return None,
        };
        Some(options)
    }
}

/// Makes TLS connections to one collector.
#[derive(Clone, Debug)]
pub(super) struct Client {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Client {
    /// # Errors
    ///
    /// A file cannot be read, or has not what it should have.
    pub(super) fn new(options: &Options, host: &str) -> Result<Self, String> {
        let name = options.name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| format!("no certificate can be for {name}; try name=NAME, with a name of DNS"))?;
        let mut roots = RootCertStore::empty();
        match &options.ca {
            Some(file) => {
                for one in certificates(file)? {
                    roots.add(one).map_err(|error| format!("{}: {error}", file.display()))?;
                }
            }
            None => {
                // Some may be of kinds that rustls does not know.
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    return Err("this system has no certificates of authorities; try ca=FILE".to_owned());
                }
            }
        }
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?.with_root_certificates(roots);
        let config = match &options.own {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", key.display());
                let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(&error))?;
                builder.with_client_auth_cert(certificates(cert)?, secret).map_err(|error| wrong(&error))?
            }
        };
        Ok(Self { config: Arc::new(config), name })
    }

    pub(super) fn connection(&self) -> io::Result<ClientConnection> {
        let made = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let mut connection = made.map_err(io::Error::other)?;
        // It takes whole messages.
        connection.set_buffer_limit(None);
        Ok(connection)
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let all = all.map_err(|error| format!("{}: {error}", file.display()))?;
    if all.is_empty() { Err(format!("{}: there is no certificate in it", file.display())) } else { Ok(all) }
}

/// Says in words what is wrong.
pub(super) fn failed(error: Error) -> io::Error {
    let Error::InvalidCertificate(why) = &error else {
        return io::Error::new(io::ErrorKind::InvalidData, error);
    };
    let said = match why {
        // The signature is bad if an authority has the right name and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "no trusted authority has signed its certificate; try ca=FILE, with the certificate of its authority".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("its certificate is for another host ({why}); try the host's name, or name=NAME")
        }
        // rustls does not name this one.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority, not of a host; try one for the host (with OpenSSL: -addext basicConstraints=CA:FALSE)"
                .to_owned()
        }
        _ => format!("its certificate is not valid: {why}"),
    };
    io::Error::new(io::ErrorKind::InvalidData, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_once_and_a_certificate_with_its_key() {
        let options = Options::parse("cert=c&ca=/a/b.pem&name=n.example&key=k").expect("right");
        let path = PathBuf::from;
        assert_eq!(
            options,
            Options {
                ca: Some(path("/a/b.pem")),
                own: Some((path("c"), path("k"))),
                name: Some("n.example".to_owned())
            }
        );
        for wrong in ["", "ca", "ca=", "ca=a&ca=b", "cert=c", "key=k", "other=x", "ca=a&", "CA=a"] {
            assert_eq!(Options::parse(wrong), None, "{wrong}");
        }
    }
}
