//! What routers say to each other.

mod babel;
mod bfd;
mod bgp;
mod eigrp;
pub(crate) mod isis;
mod ldp;
mod lisp;
mod lsp_ping;
mod ospf;
mod pim;
mod rip;
mod rpl;
