// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Expected output, and the comparison of an output with it.
//!
//! A line of an expected output stands for itself, except for:
//!
//! | line | stands for |
//! |---|---|
//! | `@re REGEX` | one line that the expression matches from end to end |
//! | `@rep REGEX` | one or more such lines |
//! | `@any` | any number of lines, including none |
//! | `@lit TEXT` | the line TEXT, which may begin with `@` |
//!
//! Trailing white space of a line counts; a missing newline at the end does not.

use regex_lite::Regex;

/// One line of an expected output.
#[derive(Debug)]
enum Line {
    Literal(String),
    Regex(Regex),
    Repeated(Regex),
    Any,
}

/// An expected output.
#[derive(Debug)]
pub struct Expected(Vec<Line>);

impl Expected {
    /// Parses the text of an expected output; an error names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        text.lines()
            .enumerate()
            .map(|(n, line)| parse_line(line).map_err(|why| format!("line {}: {why}", n + 1)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Compares; the error shows the first line that differs.
    pub fn check(&self, output: &str) -> Result<(), String> {
        let lines: Vec<&str> = output.lines().collect();
        // reach[j]: the first i expected lines can match the first j lines of the output.
        let mut reach = vec![false; lines.len() + 1];
        reach[0] = true;
        let mut furthest = 0;
        for (i, expected) in self.0.iter().enumerate() {
            reach = step(expected, &lines, &reach);
            match reach.iter().rposition(|&r| r) {
                Some(at) => furthest = at,
                None => {
                    return Err(format!(
                        "expected line {}: {}\n     instead of: {}",
                        i + 1,
                        describe(expected),
                        lines.get(furthest).unwrap_or(&"(end of output)")
                    ))
                }
            }
        }
        if reach[lines.len()] {
            return Ok(());
        }
        Err(format!(
            "expected: (end of output)\n instead of: {}",
            lines.get(furthest).unwrap_or(&"")
        ))
    }
}

fn parse_line(line: &str) -> Result<Line, String> {
    let regex = |text: &str| Regex::new(&format!("^(?:{text})$")).map_err(|e| e.to_string());
    if let Some(text) = line.strip_prefix("@re ") {
        regex(text).map(Line::Regex)
    } else if let Some(text) = line.strip_prefix("@rep ") {
        regex(text).map(Line::Repeated)
    } else if let Some(text) = line.strip_prefix("@lit ") {
        Ok(Line::Literal(text.to_owned()))
    } else if line == "@any" {
        Ok(Line::Any)
    } else if line.starts_with('@') {
        Err(format!("unknown directive: {line}"))
    } else {
        Ok(Line::Literal(line.to_owned()))
    }
}

/// The positions that the output can have reached after one more expected line.
fn step(expected: &Line, lines: &[&str], before: &[bool]) -> Vec<bool> {
    let mut after = vec![false; before.len()];
    match expected {
        Line::Any => {
            let first = before.iter().position(|&r| r).unwrap_or(before.len());
            after[first..].fill(true);
        }
        Line::Literal(text) => {
            for (j, line) in lines.iter().enumerate() {
                after[j + 1] = before[j] && line == text;
            }
        }
        Line::Regex(regex) => {
            for (j, line) in lines.iter().enumerate() {
                after[j + 1] = before[j] && regex.is_match(line);
            }
        }
        Line::Repeated(regex) => {
            for (j, line) in lines.iter().enumerate() {
                after[j + 1] = (before[j] || after[j]) && regex.is_match(line);
            }
        }
    }
    after
}

fn describe(line: &Line) -> String {
    match line {
        Line::Literal(text) => text.clone(),
        Line::Regex(regex) => format!("@re {}", regex.as_str()),
        Line::Repeated(regex) => format!("@rep {}", regex.as_str()),
        Line::Any => "@any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: &str, output: &str) -> Result<(), String> {
        Expected::parse(expected)
            .expect("a well-formed expectation")
            .check(output)
    }

    #[test]
    fn literal_lines() {
        assert!(check("a\nb\n", "a\nb\n").is_ok());
        assert!(check("a\nb\n", "a\nb").is_ok());
        assert!(check("a\n", "a \n").is_err());
        assert!(check("a\n", "a\nb\n").is_err());
        assert!(check("a\nb\n", "a\n").is_err());
        assert!(check("", "").is_ok());
        assert!(check("", "x\n").is_err());
    }

    #[test]
    fn expressions_match_whole_lines() {
        assert!(check("@re [0-9]+\n", "42\n").is_ok());
        assert!(check("@re [0-9]+\n", "42x\n").is_err());
        assert!(check("@re a|b\n", "ab\n").is_err());
    }

    #[test]
    fn repeated_lines_are_one_or_more() {
        assert!(check("@rep x+\nend\n", "x\nxx\nend\n").is_ok());
        assert!(check("@rep x+\nend\n", "end\n").is_err());
    }

    #[test]
    fn any_stands_for_none_and_many() {
        assert!(check("a\n@any\nz\n", "a\nz\n").is_ok());
        assert!(check("a\n@any\nz\n", "a\nb\nz\ny\nz\n").is_ok());
        assert!(check("a\n@any\n", "a\nb\n").is_ok());
        assert!(check("a\n@any\nz\n", "a\nb\n").is_err());
    }

    #[test]
    fn unknown_directives_are_errors() {
        assert!(Expected::parse("@nothing\n").is_err());
        assert!(Expected::parse("@re (\n").is_err());
        assert!(check("@lit @probe\n", "@probe\n").is_ok());
    }

    #[test]
    fn the_first_difference_is_named() {
        let why = check("a\nb\nc\n", "a\nx\nc\n").expect_err("they differ");
        assert!(why.contains("expected line 2: b"), "{why}");
        assert!(why.contains("instead of: x"), "{why}");
    }
}
