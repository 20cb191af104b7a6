//! Filters in weir's dialect, with sets.

use std::ffi::{c_char, c_int};

use weir::filter::{Receiver, SystemNames};

use crate::abi::PCAP_ERROR;
use crate::filter::Filter;
use crate::guard::word;
use crate::handle::{DUMPING, Handle, NOT_ACTIVATED, Pcap, Source, with};
use crate::{link_types, privileged};

/// Sets the filter of a handle by an expression in weir's dialect, such as `tcp port 443 and host in @suspects`, where
/// `suspects` is a file. Returns 0 or -1.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn weir_pcap_setfilter(pcap: *mut Pcap, expression: *const c_char) -> c_int {
    let set = |pcap: &Pcap, handle: &mut Handle| {
        // SAFETY: C1.
        let Some(text) = (unsafe { word(expression) }) else {
            return pcap.fail(PCAP_ERROR, "cannot set a filter: no expression");
        };
        match made(handle, &text.to_string_lossy()) {
            Ok(filter) => {
                if let Source::Live(live) = &mut handle.source {
                    live.set_filter(&filter);
                }
                handle.filter = Some(Box::new(filter));
                0
            }
            Err(text) => pcap.fail(PCAP_ERROR, &text),
        }
    };
    // SAFETY: C1.
    unsafe { with(pcap, PCAP_ERROR, set) }
}

fn made(handle: &Handle, text: &str) -> Result<Filter, String> {
    // A set is a file, and an error shows a line of it.
    if let Some((_, set)) = text.split_once('@') {
        privileged::refuse_file(set.as_bytes())?;
    }
    let filter = weir::Filter::new(text).names(SystemNames::new());
    let link_type = link_types::in_files(handle.link_type).and_then(|number| u16::try_from(number).ok());
    let link_type = link_type.ok_or("cannot set a filter: unknown link type")?;
    let compiled = match &handle.source {
        Source::File(file) => filter.compile_for_file(link_type, file.swapped()),
        Source::Live(live) => {
            let metadata = live.has_metadata();
            filter.compile(Receiver {
                link_type,
                metadata,
                swapped: false,
                netmask: None,
                tags_lost: !metadata || live.without_tags().is_some(),
            })
        }
        Source::Created(_) => return Err(NOT_ACTIVATED.to_owned()),
        Source::Dumping(_) => return Err(DUMPING.to_owned()),
        Source::Foreign => {
            return Err("cannot set a filter: the system's libpcap serves this device".to_owned());
        }
        Source::Dead => return Err("cannot set a filter: this handle has no packets".to_owned()),
    };
    let compiled = compiled.map_err(|error| error.to_string())?;
    Ok(Filter::of_expression(filter, &compiled))
}
