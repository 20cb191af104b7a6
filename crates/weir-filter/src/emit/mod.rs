//! Back ends: from graph to program.
