//! Stack layout, from the end downwards: bytes loaded by a helper, the key of a look-up, intermediate results, the
//! stripped tag, slots.

/// Bytes loaded by a helper.
pub(super) const BUFFER: i16 = -8;
/// Key of a look-up.
pub(super) const KEY: i16 = BUFFER - 24;
const TEMPORARY: i16 = KEY - 4 * 12;
/// Intermediate results of an evaluation: enough for thousands of operations, however they are nested.
pub(super) const TEMPORARIES: usize = 12;
const TAG: i16 = TEMPORARY - 16;
const CELL_BYTES: i16 = 8;
/// Upper halves of double words are allocated first: the verifier does not track values that are not aligned.
const CELL_PLACE: i16 = 4;
/// Double words for slots.
const DOUBLES: i16 = 48;
/// Slots that can be live at a time.
pub(super) const CELLS: usize = 2 * 48;
/// The packet's length, beside the three words of the tag.
pub(super) const LENGTH: i16 = TAG + 12;
/// The stack has 512 bytes. A function shares it with its caller, which gets the rest.
const _: () = assert!(TAG - CELL_BYTES * DOUBLES == -(512 - 32) && TEMPORARY == -80 && CELLS == 96);

/// Returns the offset of a slot's cell.
pub(super) fn cell(cell: usize) -> i16 {
    let cell = i16::try_from(cell).expect("there are few cells");
    let place = if cell < DOUBLES { CELL_PLACE } else { 0 };
    TAG - CELL_BYTES * (cell % DOUBLES + 1) + place
}

/// Slots that can be live at a time in a function that another one calls besides the program: in Linux 6.1, each of the three takes a
/// multiple of 32 bytes; newer kernels round up to 16, and so take one with more slots.
pub(super) const FEWER_CELLS: usize = 2 * FEWER;
const FEWER: usize = CELLS / 2 - 4;
const _: () = assert!(TAG - CELL_BYTES * (DOUBLES - 4) == -(512 - 2 * 32));

/// Returns which cell such a function has in place of one of its [`FEWER_CELLS`].
pub(super) fn among_fewer(cell: usize) -> usize {
    if cell < FEWER { cell } else { cell - FEWER + CELLS / 2 }
}

/// Returns the offsets of the words that filters with at most so many cells and intermediate results may write, those with few cells
/// [among fewer](among_fewer), lower halves of double words first; `keys`: and keys of look-ups.
pub(super) fn words(cells: usize, temporaries: usize, keys: bool) -> impl Iterator<Item = i16> {
    let all = |from: i16, count: usize| (0..count).map(move |index| word_at(from, index));
    let keys = if keys { 6 } else { 0 };
    let scratch = all(BUFFER, 2).chain(all(KEY, keys)).chain(all(TEMPORARY, temporaries.next_multiple_of(2)));
    let fewer = (0..cells).map(among_fewer);
    let cells: Vec<usize> = if cells <= FEWER_CELLS { fewer.collect() } else { (0..CELLS).collect() };
    scratch.chain(cells.into_iter().map(cell))
}

/// Returns the offset of an intermediate result.
pub(super) fn temporary(index: usize) -> i16 {
    word_at(TEMPORARY, index)
}

/// Returns the offset of a word of the key.
pub(super) fn key_word(index: usize) -> i16 {
    word_at(KEY, index)
}

/// Returns the offset of the tag's presence, EtherType or value.
pub(super) fn tag(index: usize) -> i16 {
    word_at(TAG, index)
}

/// Returns the offset of a four-byte item in an array at `from`.
fn word_at(from: i16, index: usize) -> i16 {
    from + 4 * i16::try_from(index).expect("there are few")
}
