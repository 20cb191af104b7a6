//! Link layers, and what a capture has in front of them.

mod ethernet;
mod frame_relay;
mod hdlc;
mod llc;
mod nflog;
mod ppi;
mod ppp;
mod q933;
mod radiotap;
mod wlan;
