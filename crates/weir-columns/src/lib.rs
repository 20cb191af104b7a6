//! Flows as the columns of Parquet files.
//!
//! ```text
//! flows -> columns, in memory -> a row group, once there are ROWS flows -> bytes
//! ```
//!
//! Flows of a row group are sorted by when they ended, which makes times short. Every reader of Parquet knows these types: signed integers, text, timestamps of microseconds. The encodings are as old as they are common, and pages are
//! compressed with zstd. No I/O.

#![forbid(unsafe_code)]

mod column;
mod schema;
mod texts;

use std::fmt;
use std::mem;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use weir::flows::Flow;

use self::column::Column;
use self::texts::Texts;

/// Flows of a row group.
pub const ROWS: usize = 1 << 16;

/// Flows whose columns are made together: so few stay in the caches.
const BLOCK: usize = 1024;

/// Which columns a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Everything that is known of a flow.
    All,
    /// Who, when, how much and what: those that most questions need. Less than half the size.
    Basic,
}

impl Columns {
    /// Returns what the columns are, in their order.
    pub fn described(self) -> impl Iterator<Item = Described> {
        schema::columns(self).into_iter().map(|column| column.described())
    }
}

/// A column, as readers find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub values: Values,
    /// Whether some flows have none.
    pub is_optional: bool,
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// UTF-8.
    Texts,
    /// Signed integers of 32 bits.
    Int32,
    /// Signed integers of 64 bits.
    Int64,
    /// Floating-point numbers.
    Doubles,
    /// Timestamps of microseconds, UTC.
    Times,
}

/// Why a file cannot go on.
#[derive(Debug)]
pub struct EncodeError(ParquetError);

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot encode flows: {}", self.0)
    }
}

impl std::error::Error for EncodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl From<ParquetError> for EncodeError {
    fn from(error: ParquetError) -> Self {
        Self(error)
    }
}

/// Makes the bytes of a file.
pub struct Encoder {
    writer: SerializedFileWriter<Vec<u8>>,
    columns: Vec<Box<dyn Column>>,
    /// Text that the row group has already.
    texts: Texts,
    /// Times of the last packets of the flows in the columns.
    ends: Vec<u64>,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("rows", &self.ends.len()).finish_non_exhaustive()
    }
}

impl Encoder {
    /// Begins a file. `program`: who writes it.
    ///
    /// # Errors
    ///
    /// None is known.
    pub fn new(program: &str, columns: Columns) -> Result<Self, EncodeError> {
        let columns = schema::columns(columns);
        let mut properties = WriterProperties::builder()
            .set_created_by(program.to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            // Of each row group, by which readers skip it.
            .set_statistics_enabled(EnabledStatistics::Chunk);
        // A dictionary would have nearly every value.
        for column in columns.iter().filter(|column| column.is_various()) {
            let path = ColumnPath::from(column.name());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let fields = columns.iter().map(|column| Ok(Arc::new(column.field()?)));
        let fields = fields.collect::<Result<Vec<_>, ParquetError>>()?;
        let schema = Type::group_type_builder("flows").with_fields(fields).build()?;
        let writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties.build()))?;
        Ok(Self { writer, columns, texts: Texts::default(), ends: Vec::new() })
    }

    /// Adds flows. Appends what is to be written by now: mostly nothing. `interfaces`: their names, by number.
    ///
    /// # Errors
    ///
    /// None is known. The file cannot be finished then.
    pub fn add(
        &mut self,
        mut flows: &[Flow],
        interfaces: &[String],
        bytes: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        while !flows.is_empty() {
            let (some, rest) = flows.split_at(flows.len().min(BLOCK).min(ROWS - self.ends.len()));
            self.texts.begin(interfaces);
            for column in &mut self.columns {
                column.fill(some, &mut self.texts);
            }
            self.ends.extend(some.iter().map(|flow| flow.last));
            flows = rest;
            if self.ends.len() == ROWS {
                self.end_group()?;
                bytes.append(self.writer.inner_mut());
            }
        }
        Ok(())
    }

    /// Appends the rest, with which the file is whole.
    ///
    /// # Errors
    ///
    /// None is known.
    pub fn finish(&mut self, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        if !self.ends.is_empty() {
            self.end_group()?;
        }
        self.writer.finish()?;
        bytes.append(&mut mem::take(self.writer.inner_mut()));
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), EncodeError> {
        let mut order: Vec<u32> = (0..).take(self.ends.len()).collect();
        order.sort_by_key(|flow| self.ends[*flow as usize]);
        let order = (!self.ends.is_sorted()).then_some(&*order);
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            if let Some(mut writer) = group.next_column()? {
                column.write(&mut writer, order)?;
                writer.close()?;
            }
        }
        group.close()?;
        self.writer.flush().map_err(ParquetError::from)?;
        self.texts.clear();
        self.ends.clear();
        Ok(())
    }
}
