//! A column: what it takes of a flow, and the values of a row group.

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::Type;
use weir::flows::Flow;

use super::texts::Texts;

/// A column of any type.
pub(super) trait Column: Send {
    fn name(&self) -> &'static str;

    /// Returns whether its values are times.
    fn is_time(&self) -> bool;

    /// Returns its entry in the schema.
    fn field(&self) -> Result<Type>;

    /// Adds the values of flows.
    fn fill(&mut self, flows: &[Flow], texts: &mut Texts);

    /// Writes all values, and forgets them.
    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>) -> Result<()>;
}

/// What a column can have in it.
pub(super) trait Value: Clone + Send + Sized + 'static {
    type Data: DataType<T = Self>;
    const PHYSICAL: Physical;

    fn write(
        writer: &mut ColumnWriterImpl<'_, Self::Data>,
        values: &[Self],
        levels: Option<&[i16]>,
    ) -> Result<usize>;
}

macro_rules! values {
    ($($value:ty, $data:ty, $physical:ident;)*) => {$(
        impl Value for $value {
            type Data = $data;
            const PHYSICAL: Physical = Physical::$physical;

            fn write(
                writer: &mut ColumnWriterImpl<'_, $data>,
                values: &[Self],
                levels: Option<&[i16]>,
            ) -> Result<usize> {
                writer.write_batch(values, levels, None)
            }
        }
    )*};
}

values! {
    i32, Int32Type, INT32;
    i64, Int64Type, INT64;
    f64, DoubleType, DOUBLE;
    ByteArray, ByteArrayType, BYTE_ARRAY;
}

/// A column of one type.
struct Of<T, F> {
    name: &'static str,
    is_optional: bool,
    time: Option<Time>,
    take: F,
    values: Vec<T>,
    /// 1 for each flow that has a value, 0 for the others.
    levels: Vec<i16>,
}

/// How a column of integers says a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// As nanoseconds, without saying so.
    Number,
    /// As a timestamp of microseconds.
    Stamp,
}

/// A column that every flow has.
pub(super) fn each<T: Value>(
    name: &'static str,
    take: impl Fn(&Flow, &mut Texts) -> T + Send + 'static,
) -> Box<dyn Column> {
    let take = move |flow: &Flow, texts: &mut Texts| Some(take(flow, texts));
    Box::new(Of { name, is_optional: false, time: None, take, values: Vec::new(), levels: Vec::new() })
}

/// A column that only some flows have.
pub(super) fn some<T: Value>(
    name: &'static str,
    take: impl Fn(&Flow, &mut Texts) -> Option<T> + Send + 'static,
) -> Box<dyn Column> {
    Box::new(Of { name, is_optional: true, time: None, take, values: Vec::new(), levels: Vec::new() })
}

/// A column of times.
pub(super) fn time(
    name: &'static str,
    time: Time,
    take: impl Fn(&Flow) -> i64 + Send + 'static,
) -> Box<dyn Column> {
    let take = move |flow: &Flow, _: &mut Texts| Some(take(flow));
    let (values, levels) = (Vec::new(), Vec::new());
    Box::new(Of { name, is_optional: false, time: Some(time), take, values, levels })
}

impl<T: Value, F: Fn(&Flow, &mut Texts) -> Option<T> + Send> Column for Of<T, F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_time(&self) -> bool {
        self.time.is_some()
    }

    fn field(&self) -> Result<Type> {
        let repetition = if self.is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(self.name, T::PHYSICAL).with_repetition(repetition);
        let field = match (T::PHYSICAL, self.time) {
            (Physical::BYTE_ARRAY, _) => {
                field.with_logical_type(Some(LogicalType::String)).with_converted_type(ConvertedType::UTF8)
            }
            (_, Some(Time::Stamp)) => field
                .with_logical_type(Some(LogicalType::timestamp(true, TimeUnit::MICROS)))
                .with_converted_type(ConvertedType::TIMESTAMP_MICROS),
            _ => field,
        };
        field.build()
    }

    fn fill(&mut self, flows: &[Flow], texts: &mut Texts) {
        if !self.is_optional {
            return self.values.extend(flows.iter().filter_map(|flow| (self.take)(flow, texts)));
        }
        for flow in flows {
            let value = (self.take)(flow, texts);
            self.levels.push(value.is_some().into());
            self.values.extend(value);
        }
    }

    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let levels = self.is_optional.then_some(&*self.levels);
        T::write(writer.typed::<T::Data>(), &self.values, levels)?;
        self.values.clear();
        self.levels.clear();
        Ok(())
    }
}
