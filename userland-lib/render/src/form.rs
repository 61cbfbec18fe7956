// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The format of the output: text, JSON or CSV.

use crate::csv::Csv;
use crate::json::Json;
use crate::{Output, Text, Zone};
use dtrace_compiler::options::Oformat;
use dtrace_consumer::consume::{Event, Receiver};
use std::io;

/// Writes what a consumer yields to an output.
pub trait Sink {
    /// Returns the receiver of the records.
    fn receiver(&mut self) -> &mut dyn Receiver;

    /// Writes an empty line if the format is for people.
    fn gap(&mut self) -> io::Result<()>;

    /// Writes out what is buffered.
    fn flush(&mut self) -> io::Result<()>;
}

/// The state of an output in one format: all that outlives a call.
pub enum Form {
    /// Text, as dtrace(1) prints it.
    Text(Box<Text>),
    /// An object of JSON a line.
    Json(Box<Json>),
    /// The aggregations, as comma-separated values.
    Csv(Box<Csv>),
}

impl Form {
    /// Makes the state of an output in this format to which nothing was written. `zone` is the time
    /// zone in which text shows times.
    pub fn new(format: Oformat, zone: Zone) -> Self {
        let text = Text::new(zone);
        match format {
            Oformat::Text => Self::Text(Box::new(text)),
            Oformat::Json => Self::Json(Box::new(Json::new(text, false))),
            Oformat::JsonQuoted => Self::Json(Box::new(Json::new(text, true))),
            Oformat::Csv => Self::Csv(Box::new(Csv::new(text))),
        }
    }

    /// Returns what writes to `out`. `event` gets the events, unless they are in the output.
    pub fn to<'a>(
        &'a mut self,
        out: &'a mut dyn Output,
        event: &'a mut dyn FnMut(Event),
    ) -> Box<dyn Sink + 'a> {
        match self {
            Self::Text(text) => Box::new(text.to(out, event)),
            Self::Json(json) => Box::new(json.to(out)),
            Self::Csv(csv) => Box::new(csv.to(out, event)),
        }
    }
}
