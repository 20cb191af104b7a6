//! Where files of flows are, as the command line says it.

use std::path;
use std::str::FromStr;

/// A place with files of flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// From the root, without a slash at the end.
    Directory(String),
    /// `prefix` is empty, or begins with a slash and ends without one.
    Bucket { bucket: String, prefix: String },
}

/// Returns an error if a text means something else within the text of an SQL statement, or as a pattern of names.
fn plain(text: &str) -> Result<(), String> {
    match text.chars().find(|letter| letter.is_control() || "'\"`\\*?[]{}@;".contains(*letter)) {
        Some(letter) => Err(format!(
            "cannot contain {letter:?}: it means something else in SQL, or in patterns of file names; try a name without it"
        )),
        None => Ok(()),
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        plain(text)?;
        if let Some(place) = text.strip_prefix("s3://") {
            let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
            if bucket.is_empty() {
                return Err("allowed: DIR, or s3://BUCKET/PREFIX".to_owned());
            }
            let prefix = prefix.trim_matches('/');
            let prefix = if prefix.is_empty() { String::new() } else { format!("/{prefix}") };
            return Ok(Self::Bucket { bucket: bucket.to_owned(), prefix });
        }
        if text.contains("://") {
            return Err("allowed: DIR, or s3://BUCKET/PREFIX".to_owned());
        }
        // Engines ask from another directory.
        let directory = path::absolute(text).map_err(|error| error.to_string())?;
        let directory = directory.to_str().ok_or("the current directory is not UTF-8")?;
        plain(directory)?;
        Ok(Self::Directory(directory.trim_end_matches('/').to_owned()))
    }
}

/// Reads the address of a store.
pub(super) fn endpoint(text: &str) -> Result<String, String> {
    plain(text)?;
    let url = text.trim_end_matches('/');
    match url.split_once("://") {
        Some(("http" | "https", host)) if !host.is_empty() && !host.contains('/') => Ok(url.to_owned()),
        _ => Err("allowed: http://HOST:PORT or https://HOST:PORT".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_directory_or_a_bucket() {
        let bucket = |prefix: &str| Place::Bucket { bucket: "lake".to_owned(), prefix: prefix.to_owned() };
        for (text, place) in [
            ("/a/b/", Place::Directory("/a/b".to_owned())),
            ("s3://lake", bucket("")),
            ("s3://lake/", bucket("")),
            ("s3://lake/a/b/", bucket("/a/b")),
        ] {
            assert_eq!(text.parse(), Ok(place));
        }
        let Ok(Place::Directory(here)) = "a".parse() else { panic!("it is a directory") };
        assert!(here.starts_with('/') && here.ends_with("/a"), "{here}");
        for text in ["", "s3://", "s3:///a", "gs://lake/a", "file:///a", "/it's", "/a*", "/a\n", "/a@b"] {
            text.parse::<Place>().expect_err(text);
        }
        let told = endpoint("http://[::1]:9000/").expect_err("brackets");
        assert!(told.starts_with("cannot contain '['"), "{told}");
        assert_eq!(endpoint("http://h:9000/"), Ok("http://h:9000".to_owned()));
        for text in ["h:9000", "ftp://h", "http://", "http://h/a"] {
            endpoint(text).expect_err(text);
        }
    }
}
