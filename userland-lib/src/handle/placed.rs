// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The places at which a consumer has USDT probes, if their number is limited (option
//! `nusdtprobes`).
//!
//! The kernel limits places to protect the machine, and notices when they are gone. This limit is
//! one that the user sets for his own tracing. So places that are gone are looked for only when
//! there is no room left: those of processes that have ended, and those in files that a process no
//! longer maps.

use dtrace_objects::usdt::Point;
use std::collections::{HashMap, HashSet};

/// A place: the path of the file in the process, and the offset in the file.
type Place = (String, u64);

/// The places of each process.
#[derive(Default)]
pub struct Placed {
    most: Option<u64>,
    of: HashMap<u32, HashSet<Place>>,
}

impl Placed {
    /// Limits the number of places at a time. `None`: no limit, and no places are noted.
    pub fn limit(&mut self, most: Option<u64>) {
        self.most = most;
    }

    /// Adds the places of a process. If there is no room, adds none and returns the message.
    /// `files` returns the paths that a process maps at present.
    pub fn add(
        &mut self,
        pid: u32,
        points: &[Point],
        files: impl Fn(u32) -> HashSet<String>,
    ) -> Result<(), String> {
        let Some(most) = self.most else {
            return Ok(());
        };
        let place = |point: &Point, offset| (point.object.path.clone(), offset);
        let all = points
            .iter()
            .flat_map(|p| p.notes.iter().map(move |note| place(p, note.offset)));
        let mut all: HashSet<Place> = all.collect();
        if !self.has_room(most, pid, &all) {
            self.of.retain(|pid, places| {
                let files = files(*pid);
                places.retain(|(file, _)| files.contains(file));
                !places.is_empty()
            });
        }
        if !self.has_room(most, pid, &all) {
            return Err(format!(
                "there may be {most} places of programs' own probes at a time (nusdtprobes)"
            ));
        }
        let there = self.of.entry(pid).or_default();
        there.extend(all.drain());
        Ok(())
    }

    fn has_room(&self, most: u64, pid: u32, more: &HashSet<Place>) -> bool {
        let there: usize = self.of.values().map(HashSet::len).sum();
        let known = |place: &&Place| self.of.get(&pid).is_some_and(|all| all.contains(*place));
        let new = more.iter().filter(|place| !known(place)).count();
        (there + new) as u64 <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_objects::pid::Object;
    use dtrace_objects::usdt::Note;
    use std::path::PathBuf;
    use std::rc::Rc;

    fn point(path: &str, offsets: std::ops::Range<u64>) -> Point {
        let note = |offset| Note {
            provider: "work".to_owned(),
            name: "done".to_owned(),
            address: offset,
            offset,
            semaphore: 0,
            func: String::new(),
            asks: false,
            arguments: Vec::new(),
            types: Vec::new(),
            attributes: None,
        };
        Point {
            provider: "work".to_owned(),
            object: Rc::new(Object {
                name: path.to_owned(),
                path: path.to_owned(),
                file: PathBuf::from(path),
                is_program: true,
                code: Vec::new(),
            }),
            func: String::new(),
            name: "done".to_owned(),
            notes: offsets.map(note).collect(),
            registration: 0,
        }
    }

    #[test]
    fn what_has_gone_makes_room() {
        let mut placed = Placed::default();
        let everything = |_| HashSet::from(["/a".to_owned(), "/b".to_owned()]);
        assert_eq!(placed.add(1, &[point("/a", 0..900)], everything), Ok(()));
        placed.limit(Some(10));
        assert_eq!(placed.add(1, &[point("/a", 0..6)], everything), Ok(()));
        // The same places again need no room.
        assert_eq!(placed.add(1, &[point("/a", 0..6)], everything), Ok(()));
        assert_eq!(placed.add(2, &[point("/a", 0..4)], everything), Ok(()));
        let refused = placed.add(3, &[point("/b", 0..1)], everything);
        assert_eq!(
            refused.unwrap_err(),
            "there may be 10 places of programs' own probes at a time (nusdtprobes)"
        );
        // Process 2 has ended; process 1 still maps its file.
        let left = |pid| match pid {
            1 => HashSet::from(["/a".to_owned()]),
            _ => HashSet::new(),
        };
        assert!(placed.add(3, &[point("/b", 0..5)], left).is_err());
        assert_eq!(placed.add(3, &[point("/b", 0..4)], left), Ok(()));
    }
}
