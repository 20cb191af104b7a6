use std::borrow::Cow;

use weir_savefile::ByteOrder;
use weir_savefile::decode::{to_copy, to_native};

use super::{Bytes, ORDERS};

const NAMES: u32 = 4;
const SECRETS: u32 = 10;

/// Two records, their end, and options; one of these must not be copied to another file.
fn names(order: ByteOrder, stays: bool) -> Vec<u8> {
    let records = Bytes::new(order).option(1, b"\x0a\0\0\x01host\0").option(2, b"a name\0").option(0, &[]);
    let records = records.option(1, b"why").option(2, b"a server");
    let records = if stays { records.option(19372, b"\0\0\0\x01text") } else { records };
    records.option(0, &[]).1
}

fn secrets(order: ByteOrder, stays: bool) -> Vec<u8> {
    let secrets = Bytes::new(order).words([0x544c_534b, 5]).padded(b"a key");
    if stays { secrets.option(19373, b"\0\0\0\x01bytes").option(0, &[]).1 } else { secrets.1 }
}

#[test]
fn names_and_secrets_of_another_machine_are_converted() {
    for order in ORDERS {
        for (kind, body) in [(NAMES, names as fn(_, _) -> _), (SECRETS, secrets)] {
            let native = to_native(kind, &body(order, false), order).map(Cow::into_owned);
            assert_eq!(native, Some(body(ByteOrder::NATIVE, false)), "{kind} {order}");
            let body = body(order, false);
            for end in 0..body.len() {
                // Without options a list may end sooner; nothing is ever converted beyond the end.
                let cut = to_native(kind, &body[..end], order);
                assert!(cut.is_none_or(|cut| cut.len() <= end + 4), "{kind} {order} {end}");
            }
        }
        let other = to_native(99, &[1, 2, 3, 4], order);
        assert_eq!(other.as_deref(), (order == ByteOrder::NATIVE).then_some(&[1, 2, 3, 4][..]));
    }
}

#[test]
fn what_must_stay_is_not_copied() {
    let order = ByteOrder::NATIVE;
    for (kind, body) in [(NAMES, names as fn(_, _) -> _), (SECRETS, secrets)] {
        assert_eq!(to_copy(kind, &body(order, true)).as_deref(), Some(&body(order, false)[..]), "{kind}");
    }
    let body = [1, 2, 3, 4];
    assert_eq!(to_copy(0x4000_0bad, &body), None);
    assert_eq!(to_copy(0xbad, &body).as_deref(), Some(&body[..]));
    // What is damaged is copied as it is.
    assert_eq!(to_copy(NAMES, &body).as_deref(), Some(&body[..]));
}
