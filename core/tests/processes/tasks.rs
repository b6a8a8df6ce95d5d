//! Runs tasks of `core/examples/hammer`.

use crate::hammer::Hammer;

/// Runs a task to its end and returns the lines that it prints, split into words.
pub(crate) fn run(words: &[&str]) -> Vec<Vec<String>> {
    let mut hammer = Hammer::start(words);
    let mut lines = Vec::new();
    while let Some(line) = hammer.line() {
        lines.push(line.split(' ').map(str::to_string).collect());
    }
    let status = hammer.child.wait().unwrap();
    assert!(status.success(), "hammer {words:?}: {status}");
    lines
}

/// The numbers after the first word of all lines that begin with `first`.
pub(crate) fn numbers(lines: &[Vec<String>], first: &str) -> Vec<Vec<i64>> {
    let lines = lines.iter().filter(|line| line[0] == first);
    lines.map(|line| line[1..].iter().map(|word| word.parse().unwrap()).collect()).collect()
}
