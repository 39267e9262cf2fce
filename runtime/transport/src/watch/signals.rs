//! The handlers of SIGSEGV and SIGTRAP. The instruction of a refused access is executed in a single
//! step of the processor, while its pages are open.
//!
//! The handlers call only what POSIX allows in handlers: system calls, and loads and stores of
//! atomics.

use super::table::{self, Refused};
use libc::{c_int, c_void, sigaction, siginfo_t, sigset_t, ucontext_t};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// The code of a SIGSEGV for a page that is mapped but protected from the access.
const NOT_ALLOWED: c_int = 2;
/// The bit of a page fault's error code that is set if the access is a write.
const WRITES: i64 = 2;
/// The processor's flag that causes a trap after the next instruction.
const STEP: i64 = 1 << 8;

/// The processor's flag that makes repeating instructions go from high to low addresses.
const BACKWARD: i64 = 1 << 10;

/// The handlers that were installed before.
static BEFORE: [OnceLock<sigaction>; 2] = [const { OnceLock::new() }; 2];

const OURS: [(c_int, Handler); 2] = [(libc::SIGSEGV, on_fault), (libc::SIGTRAP, on_trap)];

fn installed(signal: c_int) -> Option<sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: the call writes the installed action to `action`, and changes nothing else.
    let known = unsafe { sigaction(signal, null(), action.as_mut_ptr()) };
    // SAFETY: if the call succeeded, it has written the action.
    (known == 0).then(|| unsafe { action.assume_init() })
}

fn address(handler: Handler) -> usize {
    handler as *const () as usize
}

/// Installs the handlers, once.
fn install() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        for ((signal, handler), before) in OURS.into_iter().zip(&BEFORE) {
            let Some(action) = installed(signal) else { return };
            let _ = before.set(action);
            // SAFETY: all zeros are a valid action, without flags and blocked signals.
            let mut ours: sigaction = unsafe { std::mem::zeroed() };
            ours.sa_sigaction = address(handler);
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            // SAFETY: the handler has three arguments, as the flags declare, and passes signals
            // that do not concern it to the previous handler.
            unsafe { sigaction(signal, &ours, null_mut()) };
        }
    });
}

/// Returns whether a refused access of this thread reaches these handlers. The first call installs
/// them.
pub(super) fn are_ours() -> bool {
    install();
    let mut blocked = MaybeUninit::<sigset_t>::uninit();
    // SAFETY: the call writes the mask of this thread to `blocked`, and changes nothing else.
    let known = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, null(), blocked.as_mut_ptr()) };
    known == 0
        && OURS.iter().all(|&(signal, handler)| {
            // SAFETY: the mask was written.
            let is_blocked = unsafe { libc::sigismember(blocked.as_ptr(), signal) } != 0;
            !is_blocked && installed(signal).is_some_and(|action| action.sa_sigaction == address(handler))
        })
}

/// A guard that restores `errno` of this thread for the interrupted code.
struct KeepError(c_int);

impl KeepError {
    fn new() -> Self {
        // SAFETY: `errno` is a variable of this thread.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for KeepError {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let _kept = KeepError::new();
    // SAFETY: the system passes valid pointers. `context` is the saved state of the interrupted
    // thread, which nothing else accesses during the handler. `info` has an address if the signal
    // is a fault.
    let (code, address, saved) =
        unsafe { ((*info).si_code, (*info).si_addr() as usize, &mut *context.cast::<ucontext_t>()) };
    if code == NOT_ALLOWED {
        // SAFETY: the mask was saved.
        let is_blocked = unsafe { libc::sigismember(&saved.uc_sigmask, libc::SIGTRAP) } != 0;
        let registers = &mut saved.uc_mcontext.gregs;
        let loads = registers[libc::REG_ERR as usize] & WRITES == 0;
        // SAFETY: the thread was about to execute an instruction.
        let repeated = unsafe { repeated(registers) };
        let end = address.saturating_add(repeated.unwrap_or(1));
        match table::refused(address..end, loads, !is_blocked && repeated.is_none()) {
            Refused::Step => return registers[libc::REG_EFL as usize] |= STEP,
            Refused::Opened => return,
            Refused::Elsewhere => {}
        }
    }
    hand_on(&BEFORE[0], signal, info, context);
}

/// Returns how many bytes a repeating instruction, such as that of a long copy, is about to move or
/// to fill. Returns `None` for any other instruction. Single-stepping a repeating instruction takes
/// a step for each repetition.
///
/// # Safety
/// `registers` are the registers of a thread that is about to execute an instruction.
unsafe fn repeated(registers: &[i64; 23]) -> Option<usize> {
    const REPEAT: u8 = 0xf3;
    // SAFETY: the next instruction can be read. A byte is read only if the bytes before it are
    // prefixes of that instruction. So the byte is also a part of the instruction.
    let byte = |at: usize| unsafe { *(registers[libc::REG_RIP as usize] as *const u8).add(at) };
    if byte(0) != REPEAT || registers[libc::REG_EFL as usize] & BACKWARD != 0 {
        return None;
    }
    let wide = matches!(byte(1), 0x48..=0x4f);
    let width = match byte(if wide { 2 } else { 1 }) {
        0xa4 | 0xaa => 1,
        0xa5 | 0xab if wide => 8,
        0xa5 | 0xab => 4,
        _ => return None,
    };
    (registers[libc::REG_RCX as usize] as usize).checked_mul(width)
}

extern "C" fn on_trap(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let _kept = KeepError::new();
    // SAFETY: as in `on_fault`.
    let (code, saved) = unsafe { ((*info).si_code, &mut *context.cast::<ucontext_t>()) };
    // In a virtual machine that has lost the cause of the trap, the system reports a step as a
    // breakpoint. So the kind of the trap is not checked. No other trap can occur between the fault
    // of an instruction and its step, so every trap that the system raises there (a positive code)
    // comes from the step.
    if code > 0 && table::stepped() {
        saved.uc_mcontext.gregs[libc::REG_EFL as usize] &= !STEP;
        return;
    }
    hand_on(&BEFORE[1], signal, info, context);
}

/// Handles a signal as if these handlers were not installed.
fn hand_on(before: &OnceLock<sigaction>, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: as in `on_fault`.
    let was_sent = unsafe { (*info).si_code } <= 0;
    let (handler, flags) =
        before.get().map_or((libc::SIG_DFL, 0), |before| (before.sa_sigaction, before.sa_flags));
    match handler {
        libc::SIG_IGN if was_sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: the default action ends the process, either when the faulting instruction is
            // executed again, or when the signal is raised here.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                if was_sent || signal != libc::SIGSEGV {
                    libc::raise(signal);
                }
            }
        }
        handler if flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the handler was installed with the flag that declares three arguments.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: the handler was installed without that flag, so it has one argument.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, ExitStatus};

    /// The environment variable that selects what a process started by a test does.
    const DOES: &str = "FENCEPOST_TEST_WATCH_DOES";

    extern "C" fn leave(_: c_int) {
        // SAFETY: `_exit` ends the process.
        unsafe { libc::_exit(42) }
    }

    fn install_other() {
        // SAFETY: the handler has one argument, and ends the process.
        unsafe { libc::signal(libc::SIGTRAP, leave as *const () as usize) };
    }

    #[test]
    fn in_a_process_of_its_own() {
        let Ok(does) = std::env::var(DOES) else { return };
        if does == "trap with a handler" {
            install_other();
        }
        let (_bytes, watched) = Memory::heap().watched(64 + 8 * 10, 64, 8).expect("it is mapped");
        let load = || {
            // SAFETY: there are 10 elements, and only this thread accesses them.
            unsafe { watched.base().cast::<u64>().add(3).read_volatile() }
        };
        watched.begin();
        assert_eq!((load(), watched.loaded().first()), (0, Some(&(3..4))));
        match &*does {
            "fault" => {
                // SAFETY: not sound on purpose: the access faults, and the process ends here.
                unsafe { std::ptr::without_provenance::<u64>(8).read_volatile() };
            }
            "handler" => {
                install_other();
                watched.begin();
                assert_eq!((load(), watched.loaded().first()), (0, None), "a trap would go elsewhere");
            }
            _ => {
                // SAFETY: the signal runs a handler or the default action.
                unsafe { libc::raise(libc::SIGTRAP) };
            }
        }
    }

    #[test]
    fn signals_that_are_of_no_watched_memory_go_where_they_went_before() {
        let ends = |does: &str| -> ExitStatus {
            let mut own = Command::new(std::env::current_exe().expect("this program"));
            own.args(["--exact", "watch::signals::tests::in_a_process_of_its_own"]).env(DOES, does);
            own.output().expect("it starts").status
        };
        assert_eq!(ends("fault").signal(), Some(libc::SIGSEGV));
        assert_eq!(ends("trap").signal(), Some(libc::SIGTRAP));
        assert_eq!(ends("trap with a handler").code(), Some(42));
        assert!(ends("handler").success());
    }
}
