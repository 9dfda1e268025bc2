//! On what machine was this measured, and when?

use std::fs;
use std::process::Command;

use crate::Result;

/// One paragraph.
///
/// # Errors
/// When the system does not say.
pub fn describe() -> Result<String> {
    let processors = fs::read_to_string("/proc/cpuinfo")?;
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let cores = processors.lines().filter(|line| line.starts_with("processor")).count();
    let memory = fs::read_to_string("/proc/meminfo")?;
    let kilobytes: u64 = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let kernel = kernel.split('-').next().unwrap_or("unknown").trim();
    let gibibytes = kilobytes >> 20;
    Ok(format!(
        "{}: {cores} cores of {model}, {gibibytes} GiB, Linux {kernel}; {}, {}.",
        told("date", &["--utc", "+%Y-%m-%d"])?,
        told("rustc", &["--version"])?,
        java()
    ))
}

fn told(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn java() -> String {
    let Ok(output) = Command::new("java").arg("-version").output() else {
        return "no Java".to_owned();
    };
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let version = text.lines().next().unwrap_or_default().split('"').nth(1).unwrap_or("?");
    format!("Java {version}")
}
