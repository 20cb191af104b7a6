//! Hellos in several segments.

use crate::made::{flows, long_hello, record, segment, told};

/// Three packets that open the connection, and the hello, cut at these places.
fn connection(cuts: &[usize]) -> Vec<Vec<u8>> {
    let hello = record(&long_hello());
    let mut frames =
        vec![segment(true, 2, 99, &[]), segment(false, 0x12, 7, &[]), segment(true, 16, 100, &[])];
    let ends = cuts.iter().skip(1).copied().chain([hello.len()]);
    for (begin, end) in cuts.iter().zip(ends) {
        let sequence = 100 + u32::try_from(*begin).expect("short");
        frames.push(segment(true, 24, sequence, &hello[*begin..end]));
    }
    frames
}

fn named() -> Option<(&'static str, Option<String>)> {
    Some(("tls", Some("a.example".to_owned())))
}

#[test]
fn a_hello_that_is_cut_anywhere_names_the_server() {
    let length = record(&long_hello()).len();
    assert!(length > 1300);
    for cut in 1..length {
        assert_eq!(told(&connection(&[0, cut])), named(), "{cut}");
    }
    // Sent again, and with an answer between.
    for repeated in [3, 4] {
        let mut frames = connection(&[0, 500, 1000]);
        frames.insert(5, segment(false, 16, 8, &[]));
        frames.insert(5, frames[repeated].clone());
        assert_eq!(told(&frames), named());
    }
    // One of them is missing.
    let mut frames = connection(&[0, 500, 1000]);
    frames.remove(4);
    assert_eq!(told(&frames), Some(("tls", None)));
}

#[test]
fn two_interfaces_that_see_the_same_hello_both_name_the_server() {
    let frames = connection(&[0, 500, 1000]);
    let twice: Vec<_> = frames.iter().flat_map(|frame| [(0, &frame[..]), (1, &frame[..])]).collect();
    let flows = flows(&twice);
    let names: Vec<_> = flows.iter().filter_map(|flow| flow.names.as_ref()?.name.as_deref()).collect();
    assert_eq!(names, ["a.example"; 2]);
}
