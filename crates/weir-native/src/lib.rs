//! Packet filters as native code, for files and user-space paths.
