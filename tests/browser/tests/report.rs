//! Reports of 4, 10,000 and 1,000,000 ranks in a browser. The test clicks each view, sorts each
//! column, and reaches links and buttons by keys. The page requests nothing and reports no error,
//! and pictures and tables have names.
//!
//! `.ci/run report` runs this test if there is a browser. `FENCEPOST_TEST_SCREENSHOTS=FOLDER`
//! writes pictures of the pages, light and dark.

use fencepost::Compiled;
use fencepost::prelude::*;
use fencepost_tool::report::Report;
use headless_chrome::protocol::cdp::types::{Event, Method};
use headless_chrome::protocol::cdp::{Emulation, Log, Network, Page, Runtime};
use headless_chrome::{Browser, LaunchOptions, Tab};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Fills the halos of blocks.
#[superstep]
fn exchange<const D: usize>(u: &mut Window<f64>, block: &Block<D>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

fn plan<const D: usize>(grid: [usize; D]) -> Compiled {
    let ranks = grid.iter().product();
    exchange::compile(ranks, |rank| Block::at(rank, ranks, grid.map(|side| 16 * side))?.grid(grid)?.halo(1))
        .unwrap()
}

/// Requests the accessibility tree. The library's own type lacks some of the values that browsers
/// return.
#[derive(serde::Serialize, Debug)]
struct FullTree {}

impl Method for FullTree {
    const NAME: &'static str = "Accessibility.getFullAXTree";
    type ReturnObject = serde_json::Value;
}

/// Evaluates an expression in the page, which must be a promise or a value.
fn evaluate(tab: &Tab, expression: &str) -> serde_json::Value {
    let result = tab.evaluate(expression, true).unwrap_or_else(|error| panic!("{expression}: {error}"));
    result.value.unwrap_or(serde_json::Value::Null)
}

/// The requests of the page, and the errors that it has reported.
#[derive(Default)]
struct Seen {
    requests: Vec<String>,
    errors: Vec<String>,
}

fn watch(tab: &Arc<Tab>) -> Arc<Mutex<Seen>> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let noted = seen.clone();
    let listener = move |event: &Event| {
        let mut seen = noted.lock().unwrap();
        match event {
            Event::NetworkRequestWillBeSent(event) => seen.requests.push(event.params.request.url.clone()),
            Event::LogEntryAdded(event) => seen.errors.push(event.params.entry.text.clone()),
            Event::RuntimeExceptionThrown(event) => {
                seen.errors.push(event.params.exception_details.text.clone())
            }
            Event::RuntimeConsoleAPICalled(event) => seen.errors.push(format!("{:?}", event.params.args)),
            _ => {}
        }
    };
    tab.add_event_listener(Arc::new(listener)).unwrap();
    tab.call_method(Network::Enable {
        max_total_buffer_size: None,
        max_resource_buffer_size: None,
        max_post_data_size: None,
        report_direct_socket_traffic: None,
        enable_durable_messages: None,
    })
    .unwrap();
    tab.call_method(Log::Enable(None)).unwrap();
    tab.call_method(Runtime::Enable(None)).unwrap();
    seen
}

/// Sets the preferred colour scheme that the browser reports to the page.
fn prefer(tab: &Tab, colours: &str) {
    let feature = Emulation::MediaFeature { name: "prefers-color-scheme".into(), value: colours.into() };
    tab.call_method(Emulation::SetEmulatedMedia { media: None, features: Some(vec![feature]) }).unwrap();
}

fn screenshots(tab: &Tab, name: &str) {
    let Some(folder) = std::env::var_os("FENCEPOST_TEST_SCREENSHOTS") else { return };
    for colours in ["light", "dark"] {
        prefer(tab, colours);
        let png = tab.capture_screenshot(Page::CaptureScreenshotFormatOption::Png, None, None, true).unwrap();
        std::fs::write(Path::new(&folder).join(format!("{name}-{colours}.png")), png).unwrap();
    }
}

/// Tests the page of a plan.
fn look(browser: &Browser, name: &str, plan: Compiled) {
    let page = Report::new(&[plan], &[]).unwrap().to_html().unwrap();
    assert!(page.len() < 2_000_000, "{name}: {} bytes", page.len());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    std::fs::write(&path, page).unwrap();
    let tab = browser.new_tab().unwrap();
    let seen = watch(&tab);
    tab.navigate_to(&format!("file://{}", path.display())).unwrap().wait_until_navigated().unwrap();
    // Measured by the page's own clock, since the driver polls.
    let first_click = evaluate(
        &tab,
        "new Promise((resolve) => { const link = document.querySelector('nav a');
          const began = performance.now();
          link.addEventListener('click', () => requestAnimationFrame(() => resolve(performance.now() - began)), { once: true });
          link.click(); })",
    );
    let loaded = evaluate(&tab, "performance.getEntriesByType('navigation')[0].loadEventEnd");
    println!("{name}: loaded in {loaded} ms; a click takes effect within {first_click} ms");

    // Each view is clicked.
    let views = evaluate(&tab, "document.querySelectorAll('nav a').length").as_u64().unwrap();
    assert_eq!(views, 5, "{name}");
    for view in 0..views {
        let shown = evaluate(
            &tab,
            &format!(
                "(() => {{ const link = document.querySelectorAll('nav a')[{view}]; link.click();
                 const figure = document.querySelector(link.getAttribute('href'));
                 figure.querySelector('summary').click();
                 return figure.querySelector('details').open && figure.querySelector('svg') !== null; }})()"
            ),
        );
        assert_eq!(shown, true, "{name}: view {view}");
    }
    // Each column is sorted, down and up.
    let sorted = evaluate(
        &tab,
        "(() => { let count = 0;
          for (const button of document.querySelectorAll('th button')) {
            const head = button.closest('th'), body = button.closest('table').tBodies[0];
            const values = () => Array.from(body.rows, (row) => row.cells[head.cellIndex].dataset.value).filter((v) => v !== undefined).map(Number);
            for (const direction of [1, 2]) {
              button.click();
              const down = head.getAttribute('aria-sort') === 'descending', all = values();
              for (let i = 1; i < all.length; i++) if (down ? all[i] > all[i - 1] : all[i] < all[i - 1]) return -1;
              count++;
            } }
          return count; })()",
    );
    assert!(sorted.as_i64().unwrap() > 20, "{name}: {sorted}");
    // Links, summaries and buttons are reached with the tab key only, and Enter sorts.
    tab.find_element("h1").unwrap().click().unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    for _ in 0..60 {
        tab.press_key("Tab").unwrap();
        let kind = evaluate(&tab, "document.activeElement.tagName");
        kinds.insert(kind.as_str().unwrap_or_default().to_owned());
        if kind == "BUTTON" {
            let before = evaluate(&tab, "document.activeElement.closest('th').getAttribute('aria-sort')");
            tab.press_key("Enter").unwrap();
            let after = evaluate(&tab, "document.activeElement.closest('th').getAttribute('aria-sort')");
            assert_ne!(before, after, "{name}: Enter sorts");
        }
    }
    for kind in ["A", "SUMMARY", "BUTTON"] {
        assert!(kinds.contains(kind), "{name}: {kind} is not reached by keys: {kinds:?}");
    }
    // Pictures and tables have names for users of screen readers.
    let tree = tab.call_method(FullTree {}).unwrap();
    let mut named = std::collections::BTreeMap::new();
    for node in tree["nodes"].as_array().unwrap() {
        let text = |key: &str| node[key]["value"].as_str().unwrap_or_default().to_owned();
        let (role, name_of) = (text("role"), text("name"));
        if ["image", "img", "table", "figure"].contains(&role.as_str()) {
            assert!(!name_of.is_empty(), "{name}: a {role} has no name");
            *named.entry(role).or_insert(0) += 1;
        }
    }
    assert!(named.values().sum::<u64>() >= 3 * views, "{name}: {named:?}");
    screenshots(&tab, name);

    let seen = seen.lock().unwrap();
    assert_eq!(seen.errors, Vec::<String>::new(), "{name}");
    let outside: Vec<&String> =
        seen.requests.iter().filter(|url| !url.starts_with("file://") && !url.starts_with("data:")).collect();
    assert!(
        outside.is_empty() && seen.requests.iter().filter(|url| url.starts_with("file://")).count() == 1,
        "{name}: {:?}",
        seen.requests
    );
    tab.close(true).unwrap();
}

#[test]
fn pages_are_clicked_sorted_and_reached_by_keys() {
    let options = LaunchOptions {
        sandbox: false,
        window_size: Some((1100, 1600)),
        args: [
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ]
        .map(OsStr::new)
        .to_vec(),
        // The browser is idle while a plan of a million ranks is compiled.
        idle_browser_timeout: Duration::from_secs(600),
        ..LaunchOptions::default()
    };
    let browser =
        Browser::new(options).expect("a browser: .ci/run report leaves this test out where there is none");
    look(&browser, "4 ranks", plan([2, 2]));
    look(&browser, "10,000 ranks", plan([100, 100]));
    look(&browser, "1,000,000 ranks", plan([100, 100, 100]));
}
