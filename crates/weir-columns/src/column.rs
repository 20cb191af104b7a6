//! A column: what it takes of a flow, and the values of a row group.

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::Type;
use weir::flows::Flow;

use super::texts::Texts;
use super::{Described, Values};

/// A column of any type.
pub(super) trait Column: Send {
    fn name(&self) -> &'static str;

    /// Returns whether few of its values are equal.
    fn is_various(&self) -> bool;

    /// Returns what readers find.
    fn described(&self) -> Described;

    /// Returns its entry in the schema.
    fn field(&self) -> Result<Type>;

    /// Adds the values of flows.
    fn fill(&mut self, flows: &[Flow], texts: &mut Texts);

    /// Writes all values, and forgets them. `order`: which flow comes when, unless they are in order.
    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>, order: Option<&[u32]>) -> Result<()>;
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
    kind: Kind,
    take: F,
    values: Vec<T>,
    /// 1 for each flow that has a value, 0 for the others.
    levels: Vec<i16>,
}

/// What the values of a column are like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Many flows have the same.
    Alike,
    /// Integers of which few are equal.
    Various,
    /// Times, as timestamps of microseconds.
    Stamp,
}

/// A column that every flow has.
pub(super) fn each<T: Value>(
    name: &'static str,
    take: impl Fn(&Flow, &mut Texts) -> T + Send + 'static,
) -> Box<dyn Column> {
    let take = move |flow: &Flow, texts: &mut Texts| Some(take(flow, texts));
    Box::new(Of { name, is_optional: false, kind: Kind::Alike, take, values: Vec::new(), levels: Vec::new() })
}

/// A column that only some flows have.
pub(super) fn some<T: Value>(
    name: &'static str,
    take: impl Fn(&Flow, &mut Texts) -> Option<T> + Send + 'static,
) -> Box<dyn Column> {
    Box::new(Of { name, is_optional: true, kind: Kind::Alike, take, values: Vec::new(), levels: Vec::new() })
}

/// A column of integers that every flow has.
pub(super) fn number<T: Value>(
    name: &'static str,
    kind: Kind,
    take: impl Fn(&Flow) -> T + Send + 'static,
) -> Box<dyn Column> {
    let take = move |flow: &Flow, _: &mut Texts| Some(take(flow));
    Box::new(Of { name, is_optional: false, kind, take, values: Vec::new(), levels: Vec::new() })
}

/// A column of integers that only some flows have.
pub(super) fn some_number<T: Value>(
    name: &'static str,
    kind: Kind,
    take: impl Fn(&Flow) -> Option<T> + Send + 'static,
) -> Box<dyn Column> {
    let take = move |flow: &Flow, _: &mut Texts| take(flow);
    Box::new(Of { name, is_optional: true, kind, take, values: Vec::new(), levels: Vec::new() })
}

impl<T: Value, F> Of<T, F> {
    /// Puts the values of flows into this order.
    fn sort(&mut self, order: &[u32]) {
        let order = order.iter().map(|flow| *flow as usize);
        if !self.is_optional {
            self.values = order.map(|flow| self.values[flow].clone()).collect();
            return;
        }
        // Where the value of each flow is, if it has one.
        let places = self.levels.iter().scan(0, |next, level| {
            let place = *next;
            *next += usize::from(*level > 0);
            Some(place)
        });
        let places: Vec<usize> = places.collect();
        let has = |flow: &usize| self.levels[*flow] > 0;
        self.values = order.clone().filter(has).map(|flow| self.values[places[flow]].clone()).collect();
        self.levels = order.map(|flow| self.levels[flow]).collect();
    }
}

impl<T: Value, F: Fn(&Flow, &mut Texts) -> Option<T> + Send> Column for Of<T, F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_various(&self) -> bool {
        self.kind != Kind::Alike
    }

    fn described(&self) -> Described {
        let values = match (T::PHYSICAL, self.kind) {
            (_, Kind::Stamp) => Values::Times,
            (Physical::INT32, _) => Values::Int32,
            (Physical::INT64, _) => Values::Int64,
            (Physical::DOUBLE, _) => Values::Doubles,
            _ => Values::Texts,
        };
        Described { name: self.name, values, is_optional: self.is_optional }
    }

    fn field(&self) -> Result<Type> {
        let repetition = if self.is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(self.name, T::PHYSICAL).with_repetition(repetition);
        let field = match (T::PHYSICAL, self.kind) {
            (Physical::BYTE_ARRAY, _) => {
                field.with_logical_type(Some(LogicalType::String)).with_converted_type(ConvertedType::UTF8)
            }
            (_, Kind::Stamp) => field
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

    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>, order: Option<&[u32]>) -> Result<()> {
        if let Some(order) = order {
            self.sort(order);
        }
        let levels = self.is_optional.then_some(&*self.levels);
        T::write(writer.typed::<T::Data>(), &self.values, levels)?;
        self.values.clear();
        self.levels.clear();
        Ok(())
    }
}
