//! A contender's process: it is started with a plan and answers with figures. `contender.rs` describes the protocol.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use crate::contender::{Plan, THREADS};

/// The wait is long, because ten million documents take minutes to build.
const ANSWER_WITHIN: Duration = Duration::from_secs(3600);

pub(crate) type Figures = BTreeMap<String, f64>;

/// A program and its first arguments.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) path: OsString,
    pub(crate) arguments: Vec<&'static str>,
}

pub(crate) struct Process {
    child: Child,
    commands: ChildStdin,
    answers: Receiver<io::Result<String>>,
}

impl Process {
    /// Starts a process and waits until its pass is done.
    pub(crate) fn start(program: &Program, plan: &Plan) -> Result<(Self, Figures), Box<dyn Error>> {
        let mut child = Command::new(&program.path)
            .args(&program.arguments)
            .args(plan.arguments())
            .env("RAYON_NUM_THREADS", THREADS.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.path.display()))?;
        let commands = child.stdin.take().expect("stdin is piped");
        let out = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (sender, answers) = sync_channel(1);
        std::thread::spawn(move || out.lines().try_for_each(|line| sender.send(line).map_err(drop)));
        let process = Self { child, commands, answers };
        let figures = process.answer()?;
        Ok((process, figures))
    }

    pub(crate) fn ask(&mut self, command: &str) -> Result<Figures, Box<dyn Error>> {
        writeln!(self.commands, "{command}")?;
        self.commands.flush()?;
        self.answer()
    }

    fn answer(&self) -> Result<Figures, Box<dyn Error>> {
        let line = self.answers.recv_timeout(ANSWER_WITHIN).map_err(|error| format!("no answer: {error}"))??;
        let figure = |word: &str| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let figures: Option<Figures> = line.split_whitespace().map(figure).collect();
        figures.ok_or_else(|| format!("a contender said {line:?}").into())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process has no state to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
