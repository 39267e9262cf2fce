//! Invalid input: `fencepost` reports it in one line, and exits with the documented code.

use crate::launched::{BOTH, Ended, options, rank_program, run_with, start};
use fencepost_job::control::{HostJob, Message};
use fencepost_job::{Channel, ChannelError, Description, Exit, HostRanks, Limits, NOT_RUN, RELEASE, Reach};
use fencepost_transport::auth::Secret;
use rustix::event::{PollFd, PollFlags, poll};
use std::process::{Command, Stdio};
use std::time::Duration;

const FENCEPOST: &str = env!("CARGO_BIN_EXE_fencepost");

pub fn refusals() {
    let ssh = "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -p 1";
    let cases: &[(&[&str], i32, &str)] = &[
        (&["run"], 2, "PROGRAM"),
        (&["run", "-n", "0", "true"], 2, "--ranks"),
        (&["run", "--transport", "pigeon", "true"], 2, "`shm` or `tcp`"),
        (&["run", "--timeout", "soon", "true"], 2, "250ms"),
        (&["run", "--timeout", "10000000000000000000", "true"], 2, "30 years"),
        (&["run", "-n", "4294967295", "true"], 2, "at most 262144"),
        (&["run", "--hosts", "a=::1:4294967295", "--remote-command", "false", "true"], 2, "at most 262144"),
        (
            &["run", "--hosts", "a=::1:4294967295,b=::1:4294967295", "--remote-command", "false", "true"],
            2,
            "would have 8589934590 ranks",
        ),
        (&["run", "--hosts", "a,,b", "true"], 2, "is not a host"),
        (&["run", "--hostfile", "/no/such/file", "true"], 2, "/no/such/file"),
        (&["run", "-n", "3", "--hosts", "localhost:2", "true"], 2, "3 ranks do not fit"),
        (&["run", "--hosts", "localhost,b=10.1.1.1", "true"], 2, "would listen at 127.0.0.1"),
        (&["run", "--transport", "shm", "--hosts", "a=::1,b=::1", "true"], 2, "share no memory"),
        (&["run", "--pretend-hosts", "1", "true"], 2, "2..=250"),
        (&["run", "--pretend-hosts", "3", "-n", "2", "true"], 2, "2 ranks are too few for 3 pretended hosts"),
        (&["run", "--pretend-hosts", "2", "--hosts", "a", "true"], 2, "cannot be used with"),
        (&["run", "--pretend-hosts", "2", "--transport", "shm", "true"], 2, "share no memory"),
        (&["run", "--env", "NO_SUCH_VARIABLE_HERE", "true"], 2, "no value"),
        (&["man", "walk"], 2, "no subcommand `walk`"),
        (
            &["run", "--transport", "tcp", "--hosts", "nowhere.invalid", "true"],
            125,
            "unknown host `nowhere.invalid`",
        ),
        (
            &["run", "--bind", "no-such", "--transport", "tcp", "true"],
            125,
            "neither an address nor an interface",
        ),
        (&["run", "--hosts", "127.0.0.1", "--remote-command", ssh, "true"], 125, "rank 0 on host 127.0.0.1"),
        (&["run", "--hosts", "a=::1", "--remote-command", "echo hello", "true"], 125, "printed `hello a"),
        (&["run", "--hosts", "a=::1", "--remote-command", "/no/such", "true"], 125, "`/no/such a"),
        (
            &["run", "-n", "2", "/no/such/program"],
            127,
            "rank 0 on host localhost was not started: the program /no/such/program does not exist",
        ),
        (&["run", "-n", "2", "no-such-program"], 127, "the program no-such-program does not exist"),
        (&["run", "-n", "2", "/"], 126, "can't be executed"),
        (&["run", "-n", "2", "true"], 126, "rank 0 on host localhost ended without joining the job"),
        (&["run", "-n", "2", "false"], 1, "rank 0 on host localhost exited with code 1"),
        (&["host"], 125, "by `fencepost run`"),
    ];
    for (words, code, says) in cases {
        let ended = start(FENCEPOST, words, &[]).end();
        ended.expect(*code).says(says);
        let ours = ended.err.lines().filter(|line| line.starts_with("fencepost: ")).count();
        assert!(ours <= 1, "more than one line: {ended:#?}");
    }
    let ended = start(FENCEPOST, &["run", "true"], &[("FENCEPOST_SILENCE", "soon")]).end();
    ended.expect(2).says("FENCEPOST_SILENCE");
    let ended = start(FENCEPOST, &["run", "true"], &[("FENCEPOST_HEARTBEAT", "10000000000000000000")]).end();
    ended.expect(2).says("FENCEPOST_HEARTBEAT");
    let ended = start(
        FENCEPOST,
        &["run", "--show", "true"],
        &[("FENCEPOST_SILENCE", "off"), ("FENCEPOST_TIMEOUT", "off")],
    )
    .end();
    ended.expect(0);
    let help = start(FENCEPOST, &["run", "--help"], &[]).end();
    let text = help.expect(0).out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in
        ["101", "124", "127", "one heartbeat more", "Examples:", "--remote-command", "--pretend-hosts"]
    {
        assert!(text.contains(part), "{part}");
    }
    let show = start(FENCEPOST, &["run", "--hosts", "a=[::1]:2,b=::1", "--show", "x", "-y"], &[]).end();
    assert!(show.expect(0).out.contains("ranks 0 to 1 on a, listening at ::1, started by `ssh"), "{show:#?}");
}

/// Programs of threads and jobs report a variable that nothing reads, and the known name that is
/// most similar. The variable is reported once.
pub fn unknown_variables() {
    let typo = ("FENCEPOST_TRANSPORTS", "shm");
    let check = |ended: Ended, what: &str| {
        ended.expect(0);
        let line =
            "nothing reads the environment variable FENCEPOST_TRANSPORTS: did you mean FENCEPOST_TRANSPORT?";
        assert_eq!(ended.err.matches(line).count(), 1, "{what}: {ended:#?}");
    };
    for transport in ["local", "sim", "shm", "tcp"] {
        let variables = [("FENCEPOST_RANKS", "3"), ("FENCEPOST_TRANSPORT", transport), typo];
        check(start(&rank_program(), &["rank", "settings"], &variables).end(), transport);
    }
    for transport in BOTH {
        let ended = run_with(&options(transport, "3"), &["settings"], &[typo]).end();
        check(ended, &format!("{transport}, launched"));
    }
}

/// If a program enters a world without choosing a setting, the variable of the setting applies. If
/// the program chooses another value, it reports that it ignores the variable.
pub fn variables_of_every_entry() {
    let lines = |ended: &Ended| ended.out.lines().map(str::to_owned).collect::<Vec<_>>();
    let ignored = |ended: &Ended, name: &str| {
        ended
            .err
            .lines()
            .filter(|line| {
                line.contains(&format!("variable {name} is `")) && line.contains("which is ignored")
            })
            .count()
    };
    // The program leaves the transport open.
    for transport in ["local", "sim", "shm", "tcp"] {
        let ended =
            start(&rank_program(), &["rank", "ranks", "3"], &[("FENCEPOST_TRANSPORT", transport)]).end();
        assert_eq!(lines(ended.expect(0)), ["met 3"; 3], "{transport}: {ended:#?}");
        assert_eq!(ended.err, "", "{transport}");
    }
    // The program sets the number of ranks.
    for (ranks, count) in [("4", 1), ("3", 0)] {
        let ended = start(&rank_program(), &["rank", "ranks", "3"], &[("FENCEPOST_RANKS", ranks)]).end();
        assert_eq!(lines(ended.expect(0)), ["met 3"; 3], "{ended:#?}");
        assert_eq!(ignored(&ended, "FENCEPOST_RANKS"), count, "{ended:#?}");
    }
    for transport in BOTH {
        let ended = run_with(&options(transport, "3"), &["ranks", "3"], &[]).end();
        assert_eq!(lines(ended.expect(0)), ["met 3"; 3], "{transport}: {ended:#?}");
        let ended = run_with(&options(transport, "2"), &["ranks", "3"], &[]).end();
        let refusal = "the program asks for 3 ranks, and the job that it was started in has 2";
        assert!(ended.expect(1).out.contains(refusal), "{ended:#?}");
        let ended = run_with(&options(transport, "2"), &["settings"], &[("FENCEPOST_RANKS", "3")]).end();
        let refusal =
            "FENCEPOST_RANKS is 3, and the job that this program was started in has 2 ranks: unset it";
        assert!(ended.expect(1).out.contains(refusal), "{ended:#?}");
        // The program runs threads, however it was started, and joins no job.
        let ended = run_with(&options(transport, "2"), &["threads", "3"], &[]).end();
        assert_eq!(lines(ended.expect(126)), ["met 3"; 6], "{transport}: {ended:#?}");
    }
    let ended = start(&rank_program(), &["rank", "threads", "3"], &[("FENCEPOST_CHECK", "conflicts")]).end();
    assert_eq!(ignored(ended.expect(0), "FENCEPOST_CHECK"), 1, "{ended:#?}");
    let ended = start(&rank_program(), &["rank", "ranks", "2"], &[("FENCEPOST_CHECK", "marks")]).end();
    assert!(ended.expect(1).out.contains("`off`, `calls`"), "{ended:#?}");
}

/// If `FENCEPOST_EXPLAIN` is on, rank 0 prints the messages that its epochs have sent, grouped by
/// the calls that ended the epochs.
pub fn explained() {
    for transport in ["local", "sim", "shm", "tcp"] {
        let variables = [("FENCEPOST_TRANSPORT", transport), ("FENCEPOST_EXPLAIN", "on")];
        let ended = start(&rank_program(), &["rank", "explained"], &variables).end();
        let summary = &ended.expect(0).err;
        assert_eq!(summary.matches("what rank 0 of 2 has sent").count(), 1, "{summary}");
        assert!(!summary.contains("what rank 1"), "{summary}");
        let lines = |words: &str| {
            summary.lines().filter(|line| line.contains("a fence at") && line.contains(words)).count()
        };
        assert_eq!([lines(": epochs 3, "), lines(": epochs 1, ")], [1, 1], "{summary}");
        // For each call, the summary also has the census, and the lines of its operations.
        assert_eq!(summary.matches("  census: ").count(), 2, "{summary}");
        assert_eq!(summary.matches("1 x put, 1 elements of 8 bytes").count(), 2, "{summary}");
    }
}

/// A rank reports an operation that no fence carries out. If a variable turns on checking, such an
/// operation is an error.
pub fn unfenced() {
    let report = "window 0 has collected 1 operation";
    for transport in ["local", "tcp"] {
        let off = [("FENCEPOST_TRANSPORT", transport), ("FENCEPOST_CHECK", "off")];
        let ended = start(&rank_program(), &["rank", "unfenced"], &off).end();
        assert_eq!(ended.expect(0).err.matches(report).count(), 2, "{ended:#?}");
        let checked = [off[0], ("FENCEPOST_CHECK", "conflicts")];
        let ended = start(&rank_program(), &["rank", "unfenced"], &checked).end();
        assert!(ended.expect(1).out.contains(&format!("RMA_SYNC: {report} at ")), "{ended:#?}");
    }
}

/// If an environment variable has an invalid value, the error names the variable, the value and the
/// allowed values.
pub fn settings() {
    let cases: &[(&str, &str, &str)] = &[
        ("FENCEPOST_RANKS", "0", "from 1 to 262144"),
        ("FENCEPOST_RANKS", "4294967296", "from 1 to 262144"),
        ("FENCEPOST_RANKS", "99999999999999999999", "from 1 to 262144"),
        ("FENCEPOST_EAGER", "99999999999999999999", "from 0 to 18446744073709551615"),
        ("FENCEPOST_TRANSPORT", "pigeon", "`local`, `sim`, `shm`, `tcp` or `mpi`"),
        ("FENCEPOST_MODE", "fast", "aggressive"),
        ("FENCEPOST_MACHINE", "/no/such/file", "`key = value`"),
        ("FENCEPOST_MACHINE", "/dev/zero", "not a regular file"),
        ("FENCEPOST_PLAN", "maybe", "`on` or `off`"),
        ("FENCEPOST_CHECK", "mark", "use `conflicts`"),
        ("FENCEPOST_CHECK", "log", "use `conflicts`"),
        ("FENCEPOST_CHECK", "logs", "`conflicts` or `mpi`"),
        ("FENCEPOST_CHECK", "MPI", "`off`, `calls`"),
        ("FENCEPOST_CHECK_LOADS", "yes", "`on` or `off`"),
        ("FENCEPOST_EXPLAIN", "yes", "`on` or `off`"),
        ("FENCEPOST_STALL", "soon", "250ms"),
        ("FENCEPOST_STALL", "1d", "250ms"),
        ("FENCEPOST_DEADLOCK", "kill", "`report` or `end`"),
    ];
    for (name, value, allowed) in cases {
        let ended =
            start(&rank_program(), &["rank", "settings"], &[("FENCEPOST_RANKS", "2"), (name, value)]).end();
        ended.expect(1);
        let line = ended.out.lines().next().unwrap_or_default();
        let names = [*name, &format!("`{value}`"), allowed].iter().all(|text| line.contains(text));
        assert!(line.starts_with("error ARG") && names, "{name}={value}: {ended:#?}");
    }
    // The machine model is read, and a message about an error in the model names the line.
    let path = std::env::temp_dir().join(format!("fencepost-machine-{}", std::process::id()));
    let model = fencepost::Machine::default().to_string();
    for (model, code, says) in
        [(&*model, 0, ""), (&model.replacen("= ", "= x", 2), 1, "line 1 of the machine model")]
    {
        std::fs::write(&path, model).expect("a writable folder");
        let set = [("FENCEPOST_RANKS", "2"), ("FENCEPOST_MACHINE", path.to_str().expect("a text"))];
        let ended = start(&rank_program(), &["rank", "settings"], &set).end();
        let line = ended.expect(code).out.lines().next().unwrap_or_default();
        assert!(code == 0 || line.starts_with("error FILE") && line.contains(says), "{ended:#?}");
    }
    std::fs::remove_file(&path).expect("it was written");
    // A setting that is too large is refused before any process is started.
    let many = [("FENCEPOST_RANKS", "4294967297"), ("FENCEPOST_TRANSPORT", "tcp")];
    let ended = start(&rank_program(), &["rank", "settings"], &many).end();
    assert!(ended.expect(1).out.contains("FENCEPOST_RANKS is `4294967297`"), "{ended:#?}");
    for count in ["262145", "4294967296", "4294967297"] {
        let ended = start(&rank_program(), &["rank", "self-launched", count, "tcp"], &[]).end();
        let says = format!("{count} ranks as processes: a job has at most 262144");
        assert!(ended.expect(1).out.contains(&says), "{ended:#?}");
    }
    let by_launcher: &[(&str, &str, &str)] = &[
        ("FENCEPOST_SEAL", "yes", "`on` or `off`"),
        ("FENCEPOST_GRACE", "1d", "250ms"),
        ("FENCEPOST_TIMEOUT", "1 2", "250ms"),
        ("FENCEPOST_HEARTBEAT", "off", "above 0"),
    ];
    for (name, value, allowed) in by_launcher {
        let ended = start(FENCEPOST, &["run", "true"], &[(name, value)]).end();
        ended.expect(2).says(name).says(&format!("`{value}`")).says(allowed);
    }
    // All settings and options accept the same times.
    for time in ["1m", "1.5h", "250ms", "3", "3s", "0", "off"] {
        let set = [("FENCEPOST_RANKS", "1"), ("FENCEPOST_STALL", time)];
        start(&rank_program(), &["rank", "settings"], &set).end().expect(0);
        let set = [("FENCEPOST_TIMEOUT", time), ("FENCEPOST_GRACE", "1m"), ("FENCEPOST_HEARTBEAT", "1ms")];
        start(FENCEPOST, &["run", "--timeout", time, "--show", "true"], &set).end().expect(0);
    }
}

/// It is not an error if a reader closes the output before it is written.
pub fn broken_pipes() {
    let program = rank_program();
    let run = ["run", "-n", "2", "--tag-output", "--", &program, "rank", "well"];
    for words in [&["man", "run"][..], &["completions", "bash"], &["--help"], &run] {
        let (read, write) = std::io::pipe().expect("a pipe");
        drop(read);
        let status = Command::new(FENCEPOST).args(words).stdout(write).status().expect("it runs");
        assert!(status.success(), "{words:?}: {status}");
    }
    // A full disk is an error.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full disk");
    let full =
        Command::new(FENCEPOST).args(run).stdout(full).stderr(Stdio::piped()).output().expect("it runs");
    let said = String::from_utf8_lossy(&full.stderr);
    assert!(
        full.status.code() == Some(125) && said.contains("some output of the ranks was lost"),
        "{full:?}"
    );
}

/// A host refuses a request from another version, or for a program that differs from the program on
/// this host.
pub fn unlike_hosts() {
    let program = rank_program();
    let job = Description {
        job: [1; 16],
        secret: Secret::new().expect("chance"),
        rank: 3,
        size: 5,
        reach: Reach::Tcp,
        hosts: vec![HostRanks { host: 0, name: "a".into(), ranks: 5 }],
        cores: 2,
        bind: [127, 0, 0, 1].into(),
        sealed: false,
        limits: Limits { heartbeat: Duration::from_millis(100), silence: Duration::ZERO },
    };
    let request = HostJob {
        job,
        ranks: 2,
        bind: "127.0.0.1".into(),
        release: RELEASE.into(),
        program: program.into(),
        digest: Some([0; 32]),
        arguments: Vec::new(),
        folder: "/".into(),
        environment: Vec::new(),
        pin: false,
        first_core: 0,
    };
    let other = HostJob { release: "0.0.1".into(), ..request.clone() };
    let strange = HostJob { folder: "/no/such".into(), digest: None, ..request.clone() };
    for (request, says) in [
        (request, "differs from the launcher's"),
        (other, "the launcher 0.0.1"),
        (strange, "the working directory /no/such does not exist"),
    ] {
        let mut host = Command::new(FENCEPOST)
            .arg("host")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("host");
        let (to, from) = host.stdin.take().zip(host.stdout.take()).expect("piped");
        let mut channel = Channel::from_pipes(from.into(), to.into()).expect("pipes");
        channel.send(&Message::Start(Box::new(request))).expect("sent");
        let mut exits = Vec::new();
        while exits.len() < 2 {
            match channel.receive() {
                Ok(Some(Message::Exited { rank, exit: Exit::NotStarted { code, why } })) => {
                    assert!(why.contains(says) && code >= NOT_RUN - 1, "{why}");
                    exits.push(rank);
                }
                Ok(Some(_)) => {}
                Ok(None) => {
                    let mut fds = [PollFd::from_borrowed_fd(channel.source(), PollFlags::IN)];
                    poll(&mut fds, None).expect("poll");
                }
                Err(broken) => panic!("{broken}"),
            }
        }
        assert_eq!(exits, [3, 4]);
        let sent: Result<(), ChannelError> = channel.send(&Message::Stop);
        sent.expect("it is there");
        assert!(host.wait().expect("it ends").success());
    }
}
