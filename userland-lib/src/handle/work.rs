// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The work between `go` and the end of tracing: to wait, to serve the processes that wait for us,
//! to read what is due, and to notice the end.

use super::follow::News;
use super::{context, Error, Handle, Phase, Progress};
use dtrace_compiler::options::Options;
use dtrace_consumer::consume::{until_readable, Event, Receiver};
use dtrace_machine::proc::Target;
use dtrace_uapi::limits;
use dtrace_uapi::option::{self, Opt};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

impl Handle<'_> {
    /// Sleeps until there is work: a buffer is due, a watched process has ended, a process waits
    /// for us, or `wake` is readable.
    pub fn wait(&self, wake: Option<BorrowedFd<'_>>) -> Result<(), Error> {
        let due = self
            .clock
            .due(&self.options)
            .saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(due).map_err(std::io::Error::other)?;
        let mut ready: Vec<PollFd<'_>> = self
            .targets
            .iter()
            .map(AsFd::as_fd)
            .chain(
                self.device()
                    .descriptor()
                    .filter(|_| !self.follow.is_idle()),
            )
            .chain(wake)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        match poll(&mut ready, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(Error::Device(errno.into())),
        }
    }

    /// Does what is due: checks the status, reads aggregations, consumes records. Ends tracing if
    /// `exit()` was called, a fill buffer is full, or the watched processes have ended.
    pub fn work(&mut self, to: &mut dyn Receiver) -> Result<Progress, Error> {
        let now = Instant::now();
        self.serve()?;
        if self.is_running() {
            self.stacks.serve(self.device());
        }
        if self.is_running() && self.is_over(now, to)? {
            self.stop()?;
        }
        self.consume(now, to)?;
        if self.is_running() && self.consumer.exit_status().is_some() && ends_at_once(&self.options)
        {
            self.stop()?;
            self.consume(now, to)?;
        }
        if self.is_running() {
            return Ok(Progress::Okay);
        }
        let status = self.device().status()?;
        self.consumer.note_status(status, &self.options, to);
        Ok(Progress::Done)
    }

    /// Serves the processes that wait for us, and watches the children that are traced.
    fn serve(&mut self) -> Result<(), Error> {
        if !self.is_running() || self.follow.is_idle() {
            return Ok(());
        }
        let news = self.follow.work(self.world, &self.names)?;
        self.take(news);
        Ok(())
    }

    /// Handles the news of followed processes.
    fn take(&mut self, news: Vec<News>) {
        for news in news {
            match news {
                News::Failed(text) => self.remarks.push(Event::Missing(text)),
                // If the child has ended by now, there is no end to wait for.
                News::Child(pid) => {
                    self.know(pid);
                    self.targets.extend(Target::grab(pid));
                }
            }
        }
    }

    fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running(_))
    }

    /// Reports pending events, then reads aggregations and records: those that are due, or all of
    /// them if tracing has ended.
    fn consume(&mut self, now: Instant, to: &mut dyn Receiver) -> Result<(), Error> {
        for remark in self.remarks.drain(..) {
            to.event(remark);
        }
        let (begin, end) = match self.phase {
            Phase::Setup => (None, None),
            Phase::Running(begin) => (Some(begin), None),
            Phase::Stopped(end) => (None, Some(end)),
        };
        // While we wait for a command that a record runs (`system()`), its processes may wait for
        // us.
        let is_followed = self.is_running() && !self.follow.is_idle();
        let (world, names) = (self.world, &self.names);
        let follow = RefCell::new(&mut self.follow);
        let news = RefCell::new(Vec::new());
        let failed = Cell::new(None);
        let wait = |ended: BorrowedFd<'_>| match is_followed {
            true => {
                let served = follow.borrow_mut().work_until(world, names, ended);
                match served {
                    Ok(more) => news.borrow_mut().extend(more),
                    Err(error) => failed.set(Some(error)),
                }
            }
            false => until_readable(ended),
        };
        let context = context(world, &self.statements, &self.places, names, &wait);
        let rate = self.options.get(Opt::Aggrate);
        if self.clock.aggregations.take(now, rate) || end.is_some() {
            self.consumer
                .read_aggregations(context, &self.options, to)?;
        }
        if self.clock.take_records(now, &self.options) || end.is_some() {
            let options = &mut self.options;
            let percent = self
                .consumer
                .read_records(context, options, begin, end, to)?;
            self.clock.pace.note(percent);
        }
        let (news, failed) = (news.into_inner(), failed.take());
        self.take(news);
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Ends tracing. The next [`work`](Self::work) consumes the remaining records.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.serve()?;
        if self.is_running() {
            let stopped = self.device().stop();
            // The kernel refuses to stop a tracing that it has ended itself. That it has ended it
            // is the more important error.
            if stopped.is_err()
                && self
                    .device()
                    .status()
                    .is_ok_and(|status| status.killed != 0)
            {
                return Err(Error::Killed);
            }
            self.phase = Phase::Stopped(stopped?);
            let left_out = self.device().reason();
            if !left_out.is_empty() {
                self.remarks.push(Event::Missing(left_out));
            }
        }
        Ok(())
    }

    /// Whether tracing must end.
    fn is_over(&mut self, now: Instant, to: &mut dyn Receiver) -> Result<bool, Error> {
        let mut over = self.targets_ended(to)?;
        if self
            .clock
            .status
            .take(now, self.options.get(Opt::Statusrate))
        {
            let status = self.device().status()?;
            self.consumer.note_status(status, &self.options, to);
            if status.killed != 0 {
                return Err(Error::Killed);
            }
            let fills = self.options.get(Opt::Bufpolicy) == Some(option::BUFPOLICY_FILL);
            over |= status.exiting != 0 || (fills && status.filled != 0);
        }
        Ok(over)
    }

    /// Reports the watched processes that have ended. Returns whether that leaves none.
    fn targets_ended(&mut self, to: &mut dyn Receiver) -> Result<bool, Error> {
        let watched = !self.targets.is_empty();
        let mut alive = Vec::new();
        for mut target in std::mem::take(&mut self.targets) {
            match target.ended()? {
                Some(ended) => to.event(Event::Ended(ended)),
                None => {
                    // Before the next look it may map more and then end, so read its mappings now.
                    self.names.watch(target.pid());
                    alive.push(target);
                }
            }
        }
        self.targets = alive;
        if watched && self.targets.is_empty() {
            // The last one may have left a child that waits for us, which is then watched as well.
            self.serve()?;
        }
        Ok(watched && self.targets.is_empty())
    }
}

/// Whether tracing ends as soon as the record of `exit()` is read, which may be before the status
/// reports it. With a `statusrate` longer than the default the end waits for the status.
pub(super) fn ends_at_once(options: &Options) -> bool {
    let rate = options.get(Opt::Statusrate);
    rate.is_none_or(|rate| rate <= limits::RATE_DEFAULT)
}
