// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Holds lines of JSON to the schema, for tests.

use boon::{Compiler, Schemas};
use serde_json::Value;

/// The schema that is installed.
pub const SCHEMA: &str = include_str!("../../../../docs/dtrace.schema.json");

/// Checks that each line of `text` is an object of JSON, and as the schema says. Returns the
/// objects. Panics if a line is not.
pub fn held(text: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(text).expect("JSON is UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'), "half a line");
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    let schema = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let added = compiler.add_resource("dtrace.schema.json", schema);
    added.expect("the schema has a name");
    let schema = compiler.compile("dtrace.schema.json", &mut schemas);
    let schema = schema.unwrap_or_else(|error| panic!("the schema: {error:#}"));
    let held = |line: &str| {
        let value = serde_json::from_str(line);
        let value: Value = value.unwrap_or_else(|error| panic!("{error}: {line}"));
        if let Err(error) = schemas.validate(&value, schema) {
            panic!("{error:#}\n{line}");
        }
        value
    };
    text.lines().map(held).collect()
}
