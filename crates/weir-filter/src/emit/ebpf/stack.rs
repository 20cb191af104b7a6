//! What is where on the stack, from its end on downwards: bytes from a helper; a key; what is kept while a value is
//! computed; the tag that was taken off; slots.

/// Bytes that a helper has loaded.
pub(super) const BUFFER: i16 = -8;
/// The key of a look-up.
pub(super) const KEY: i16 = BUFFER - 24;
const TEMPORARY: i16 = KEY - 4 * 12;
/// Results that can be kept while a value is computed: enough for thousands of operations, however they are nested.
pub(super) const TEMPORARIES: usize = 12;
const TAG: i16 = TEMPORARY - 16;
const CELL_BYTES: i16 = 8;
/// The upper halves of double words are given away first: what is not aligned the verifier does not remember.
const CELL_PLACE: i16 = 4;
/// Double words that slots are in.
const DOUBLES: i16 = 48;
/// Slots that can be needed at a time.
pub(super) const CELLS: usize = 2 * 48;
/// The stack has 512 bytes. A function shares it with the program that calls it, to which the rest is left.
const _: () = assert!(TAG - CELL_BYTES * DOUBLES == -(512 - 32) && TEMPORARY == -80 && CELLS == 96);

/// The place of a slot that has this cell.
pub(super) fn cell(cell: usize) -> i16 {
    let cell = i16::try_from(cell).expect("there are few cells");
    let place = if cell < DOUBLES { CELL_PLACE } else { 0 };
    TAG - CELL_BYTES * (cell % DOUBLES + 1) + place
}

/// A result that is kept.
pub(super) fn temporary(index: usize) -> i16 {
    word_at(TEMPORARY, index)
}

/// A word of the key.
pub(super) fn key_word(index: usize) -> i16 {
    word_at(KEY, index)
}

/// Whether there was a tag, its EtherType, and the tag.
pub(super) fn tag(index: usize) -> i16 {
    word_at(TAG, index)
}

/// The place of one of a few things of four bytes from `from` on.
fn word_at(from: i16, index: usize) -> i16 {
    from + 4 * i16::try_from(index).expect("there are few")
}
