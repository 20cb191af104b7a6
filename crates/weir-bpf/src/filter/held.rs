//! The maps that a bound program leaves to the next program in its place.

/// Defines a module with lists of these maps of a skeleton, all in this order.
macro_rules! held {
    ($module:ident of $loaded:ident, $open:ident: $($map:ident),+ $(,)?) => {
        pub(crate) mod $module {
            use std::os::fd::{AsFd as _, BorrowedFd};

            use libbpf_rs::OpenMapMut;

            use super::skeleton;

            /// How many there are.
            pub(crate) const COUNT: usize = [$(stringify!($map)),+].len();

            /// Returns them, of a program that is loaded.
            pub(super) fn loaded<'a>(maps: &'a skeleton::$loaded<'_>) -> [BorrowedFd<'a>; COUNT] {
                [$(maps.$map.as_fd()),+]
            }

            /// Returns them, of a program that is being loaded.
            pub(super) fn open<'a, 'o>(maps: &'a mut skeleton::$open<'o>) -> [&'a mut OpenMapMut<'o>; COUNT] {
                [$(&mut maps.$map),+]
            }
        }
    };
}
pub(crate) use held;
