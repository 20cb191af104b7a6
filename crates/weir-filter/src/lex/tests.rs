//! Where tokens begin and end.

use super::*;

fn kinds(text: &str, dialect: Dialect) -> Vec<Kind<'_>> {
    let mut lexer = Lexer::new(text, dialect);
    let mut kinds = Vec::new();
    loop {
        match lexer.next().expect("the text has tokens").kind {
            Kind::End => return kinds,
            kind => kinds.push(kind),
        }
    }
}

#[test]
fn the_longest_form_wins() {
    let one = |text| match kinds(text, Dialect::Pcap)[..] {
        [kind] => kind,
        ref kinds => panic!("{text}: {kinds:?}"),
    };
    assert_eq!(one("10"), Kind::Number(10));
    assert_eq!(one("010"), Kind::Number(8));
    assert_eq!(one("0X1f"), Kind::Number(31));
    assert_eq!(one("80-90"), Kind::Name("80-90"));
    assert_eq!(one("10.1"), Kind::Dotted("10.1"));
    assert_eq!(one("1.2.3.4.5"), Kind::Name("1.2.3.4.5"));
    assert_eq!(one("010203040506"), Kind::Mac([1, 2, 3, 4, 5, 6]));
    assert_eq!(one("1-2-3-4-5-6"), Kind::Mac([1, 2, 3, 4, 5, 6]));
    assert_eq!(one("1:2:3:4:5:6"), Kind::Mac([1, 2, 3, 4, 5, 6]));
    assert_eq!(one("1.2.3.4.5.6"), Kind::Mac([1, 2, 3, 4, 5, 6]));
    assert_eq!(one("0102.0304.0506"), Kind::Mac([1, 2, 3, 4, 5, 6]));
    assert_eq!(one("1-2-3-4-5-6-7"), Kind::Name("1-2-3-4-5-6-7"));
    assert_eq!(one("::1"), Kind::Ipv6([0, 0, 0, 1]));
    assert_eq!(one("1:2:3:4:5:6:7:8"), Kind::Ipv6([0x1_0002, 0x3_0004, 0x5_0006, 0x7_0008]));
    assert_eq!(one("tcp-syn"), Kind::Number(2));
    assert_eq!(one("tcp-sync"), Kind::Name("tcp-sync"));
    assert_eq!(one("\\tcp"), Kind::Name("tcp"));
    assert_eq!(one("$ab"), Kind::ArcNet(0xab));
    assert_eq!(one("vlan"), Kind::Word("vlan"));
    assert_eq!(one("tunnel"), Kind::Name("tunnel"));
}

#[test]
fn words_end_where_libpcap_ends_them() {
    use Kind::{Name, Number, Sign, Word};
    let pcap = |text| kinds(text, Dialect::Pcap);
    assert_eq!(pcap("tcp-"), [Word("tcp"), Sign("-")]);
    assert_eq!(pcap("len-1"), [Name("len-1")]);
    assert_eq!(pcap("len -1"), [Word("len"), Sign("-"), Number(1)]);
    assert_eq!(pcap("ip[0:2]"), [Word("ip"), Sign("["), Number(0), Sign(":"), Number(2), Sign("]")]);
    assert_eq!(pcap("ip&&!tcp"), [Word("ip"), Word("and"), Word("not"), Word("tcp")]);
    assert_eq!(pcap("a||b"), [Name("a"), Word("or"), Name("b")]);
    assert_eq!(pcap("fe80::1or"), [Kind::Ipv6([0xfe80_0000, 0, 0, 1]), Word("or")]);
}

#[test]
fn the_dialect_weir_adds_comments_and_sets() {
    use Kind::{Members, Name, SetName, Sign, Word};
    let weir = |text| kinds(text, Dialect::Weir);
    assert_eq!(weir("# what\ntcp /* or\nudp */ and"), [Word("tcp"), Word("and")]);
    assert_eq!(weir("in {1, 2 # }\n}"), [Word("in"), Members("1, 2 # }\n")]);
    assert_eq!(weir("in @lists/bad.txt;"), [Word("in"), SetName("lists/bad.txt"), Sign(";")]);
    assert_eq!(weir("\\tcp;"), [Name("tcp"), Sign(";")]);
}

#[test]
fn errors_name_the_place() {
    let error = |text| Lexer::new(text, Dialect::Weir).next().expect_err("it is wrong");
    for (text, span) in [
        ("08", 0..2),
        ("4294967296", 0..10),
        ("1::2::3", 0..7),
        ("1:2:3:4:5:6:7:8:9", 0..17),
        ("::1.2.3.400", 0..11),
        ("1:2:3", 0..5),
        ("\\", 0..1),
        ("$x", 0..1),
        ("{1", 0..1),
        ("@", 0..1),
        (" /* ", 1..3),
        ("é", 0..2),
    ] {
        assert_eq!(error(text).span, span, "{text}");
    }
}
