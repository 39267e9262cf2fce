//! [`Exchange`]: the posts and accesses of a window, from the view of one rank.

use crate::collect::datatypes::{Named, Numbered};
use crate::collect::description::Description;
use crate::collect::lent::Lent;
use crate::collect::operation::Site;
use crate::posts::state::batch::Batch;
use crate::posts::state::by_rank::ByRank;
use crate::posts::state::lines::Lines;
use crate::posts::state::ports::ports_of;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{Bytes, Channels, Endpoint, Frame, Header, Port};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The posts and accesses of a window.
#[derive(Default)]
pub(crate) struct Exchange {
    /// The post that has not been waited for.
    pub(crate) posted: Option<Posted>,
    /// The accesses that are open, by ascending number, and the line of each start.
    pub(crate) open: Vec<(u64, Site)>,
    /// The number of accesses that were started.
    pub(crate) started: u64,
    /// The state for each target, from the first start on that names the target.
    pub(crate) to: ByRank<Target>,
    /// The state for each source, from the first post on that names the source.
    pub(crate) from: ByRank<Source>,
    /// Batches to reuse for later accesses.
    pub(crate) spare: Vec<Batch>,
    /// Accesses that are over, to reuse for later ones.
    #[expect(clippy::vec_box, reason = "an access is moved by its pointer")]
    pub(crate) over: Vec<Box<Opened>>,
    /// A buffer for the frames of a wait, each with a flag: whether the frame must be released.
    /// `scratch` is a buffer for the bytes of a frame.
    pub(crate) frames: Vec<(Frame, bool)>,
    pub(crate) scratch: Vec<u8>,
}

/// An access that is open, with its collected operations by target.
pub(crate) struct Opened {
    /// The number of the access among the accesses of this rank to the window.
    pub(crate) number: u64,
    pub(crate) site: Site,
    /// The batches, by ascending target.
    pub(crate) batches: Vec<Batch>,
}

impl Opened {
    pub(crate) fn new(site: Site) -> Self {
        Self { number: 0, site, batches: Vec::new() }
    }
}

/// A post of this rank that has not been waited for.
pub(crate) struct Posted {
    pub(crate) site: Site,
    pub(crate) lent: Lent,
    /// The sources, ascending. This post is the last one to each of them.
    pub(crate) sources: Rc<[usize]>,
}

/// The state that an origin keeps for one of its targets. The accesses of a pair end in the order
/// of their starts.
#[derive(Default)]
pub(crate) struct Target {
    /// The number of starts that have named this target.
    pub(crate) starts: u64,
    /// The line that started the open access to this target, if there is one.
    pub(crate) open: Option<Site>,
    /// The number of posts that have come.
    pub(crate) posts: u64,
    /// The posts that have come and whose accesses have not ended.
    pub(crate) come: VecDeque<Post>,
    /// The accesses that have ended and are still needed, the oldest first.
    pub(crate) sent: VecDeque<Sent>,
    /// The errors that the next `complete` reports. They are about operations of earlier accesses
    /// that did not fit.
    pub(crate) owed: VecDeque<(ErrorClass, String)>,
    /// The number of frames posted on the port of accesses.
    pub(crate) frames: u64,
    /// The files whose names were sent to the target.
    pub(crate) told: Told,
    /// The files whose names the target has sent.
    pub(crate) names: Vec<String>,
    pub(crate) lines: Lines,
    /// The numbers of datatypes in requests to the target's attendant. `described` contains the
    /// numbers of datatypes in accesses.
    pub(crate) asked: RefCell<Named>,
    pub(crate) described: Named,
    /// The datatypes that have numbers in the target's posts of parts.
    pub(crate) lent: Numbered,
}

/// A post that has come.
pub(crate) struct Post {
    pub(crate) lent: Lent,
    pub(crate) line: Line,
}

/// A line of some rank's program.
#[derive(Clone, Copy)]
pub(crate) enum Line {
    /// A line of this rank's program.
    Own(Site),
    /// A line of another rank's program: the index of its file among the files whose names that
    /// rank has sent, and the line in that file.
    Told(u32, u32),
}

impl Line {
    /// Returns a text for the line. `names` are the file names that the other rank has sent.
    pub(crate) fn words(self, names: &[String]) -> String {
        match self {
            Self::Own(site) => format!("{}:{}", site.file(), site.line()),
            Self::Told(file, line) => {
                let file = names.get(file as usize).map_or("a file that is not known", String::as_str);
                format!("{file}:{line}")
            }
        }
    }
}

/// An access to one target that has ended.
pub(crate) struct Sent {
    pub(crate) batch: Option<Batch>,
    /// The number of the frame whose payload is in the batch, if there is such a frame.
    pub(crate) frame: Option<u64>,
    /// Whether the post that belongs to this access has come.
    pub(crate) judged: bool,
}

/// The state that a target keeps for one of its sources.
#[derive(Default)]
pub(crate) struct Source {
    /// The number of posts that have named this source.
    pub(crate) posts: u64,
    /// Accesses of this rank to its own window that have ended.
    pub(crate) own: VecDeque<(Header, Bytes)>,
    /// The calls that the source has sent before its next access, if conflicts are checked.
    pub(crate) calls: Vec<u8>,
    /// The description in the frame that is being examined.
    pub(crate) description: Description,
    /// The datatypes that have numbers in the source's accesses.
    pub(crate) numbered: Numbered,
    /// The numbers of datatypes in posts of parts to the source.
    pub(crate) lent: Named,
    /// The number of frames posted on the port of posts.
    pub(crate) frames: u64,
    /// The files whose names were sent to the source.
    pub(crate) told: Told,
    /// The files whose names the source has sent.
    pub(crate) names: Vec<String>,
    pub(crate) lines: Lines,
    /// Whether the last access that has come was dropped. If so, this rank does not know which
    /// posts the source had taken.
    pub(crate) dropped: bool,
}

/// The source files whose names were sent to another rank. That rank identifies each file by its
/// index in this list.
#[derive(Default)]
pub(crate) struct Told(Vec<&'static str>);

impl Told {
    /// Returns the index of a file whose name was sent.
    pub(crate) fn known(&self, file: &'static str) -> Option<u32> {
        self.0.iter().position(|told| std::ptr::eq(*told, file) || *told == file).map(|at| at as u32)
    }

    /// Returns the index of a file, and whether the file is new. The name of a new file must be
    /// sent.
    pub(crate) fn tell(&mut self, file: &'static str) -> (u32, bool) {
        let known = self.known(file);
        let at = known.unwrap_or(self.0.len() as u32);
        if known.is_none() {
            self.0.push(file);
        }
        (at, known.is_none())
    }
}

/// The ports of a window.
#[derive(Clone, Copy)]
pub(crate) struct Ports {
    /// From targets to origins: posts.
    pub(crate) posts: Port,
    /// From origins to targets: accesses that have ended.
    pub(crate) accesses: Port,
    /// From attendants to origins: the requested elements.
    pub(crate) answers: Port,
}

impl Ports {
    /// Returns the ports of the window of this number.
    ///
    /// # Errors
    /// `NO_MEM` if the number of the window is so large that no port numbers are left for the
    /// window.
    pub(crate) fn of(window: u32) -> Result<Self> {
        let Some([posts, accesses, answers]) = ports_of(window) else {
            let message = format!(
                "window {window} cannot be posted or accessed: there are no more ports in its world; split the world, and make the window in a part"
            );
            return Err(Error::new(ErrorClass::NoMem, message));
        };
        Ok(Self { posts, accesses, answers })
    }
}

impl Target {
    /// Takes back the batches that no rank reads any more.
    pub(crate) fn reclaim(&mut self, to: usize, port: Port, endpoint: &mut Endpoint, spare: &mut Vec<Batch>) {
        while let Some(sent) = self.sent.front()
            && sent.judged
            && sent.frame.is_none_or(|frame| endpoint.released(to, port) > frame)
        {
            spare.extend(self.sent.pop_front().and_then(|sent| sent.batch));
        }
    }

    /// Takes in a post that has come. If the access to which the post belongs has already ended,
    /// checks that access.
    pub(crate) fn take(&mut self, to: usize, post: Post) {
        self.posts += 1;
        let Some(sent) = self.sent.iter_mut().find(|sent| !sent.judged) else {
            return self.come.push_back(post);
        };
        sent.judged = true;
        if let Some((class, site)) = sent.batch.as_ref().and_then(|batch| batch.misfit(&post.lent)) {
            self.owed.push_back((class, misfit(class, to, &post.line.words(&self.names), site)));
        }
    }
}

/// Returns the error message for an operation of this rank that does not fit the elements exposed
/// to this rank.
pub(crate) fn misfit(class: ErrorClass, target: usize, post: &str, site: Site) -> String {
    let what = match class {
        ErrorClass::Assert => "puts or accumulates, and rank {} has lent its window to gets only",
        _ => "names elements that rank {} has not lent",
    };
    let what = what.replace("{}", &target.to_string());
    let (file, line) = (site.file(), site.line());
    format!(
        "the operation at {file}:{line} {what}, by its post at {post}: that exposure applies nothing, and the access has ended; ask for what is lent, or have more lent"
    )
}
