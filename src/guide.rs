//! The guides for people who use, run or change this service. Each guide is one Markdown file: the repository shows
//! it, the crate documentation has it as a module, and a daemon serves it under `/documentation/guide`.

/// One guide.
#[derive(Clone, Copy, Debug)]
pub struct Guide {
    /// The file name without `.md`, which is also the last part of the guide's path.
    pub name: &'static str,
    /// What the guide is about, in one line.
    pub about: &'static str,
    /// The text in Markdown.
    pub text: &'static str,
}

/// The guide called `name`.
pub fn find(name: &str) -> Option<&'static Guide> {
    GUIDES.iter().find(|guide| guide.name == name)
}

/// Declares a module per guide, and the table of all guides.
macro_rules! guides {
    ($($name:ident, $file:literal, $about:literal;)*) => {
        $(
            #[doc = include_str!($file)]
            pub mod $name {}
        )*

        /// All guides, in the order in which a newcomer reads them.
        pub static GUIDES: &[Guide] = &[$(
            Guide { name: stringify!($name), about: $about, text: include_str!($file) },
        )*];
    };
}

guides! {
    glossary, "guide/glossary.md", "The terms of the field, each in a sentence or two.";
    integrate, "guide/integrate.md", "Use the integrator API from an app: quotes, status, listing, webhooks, sockets.";
    clients, "guide/clients.md", "Published clients that run against the daemon unmodified, and what differs.";
    oracle, "guide/oracle.md", "Run an attestation oracle, and call one.";
    evidence, "guide/evidence.md", "Why a statement was signed: explain, verify, judge without signing, run beside another oracle.";
    solver, "guide/solver.md", "Run the solver: market file, funds, limits, what to watch.";
    operate, "guide/operate.md", "Operate the daemon: listeners, proxies, limits, store, halts.";
    protocol, "guide/protocol.md", "The formats and rules on the wire and on chain, in numbered sections.";
    decisions, "guide/decisions.md", "What was decided, and why.";
    attacks, "guide/attacks.md", "What strangers try, what happens, and the test that shows it.";
    family, "guide/family.md", "Add a VM family: the exact list of files.";
    conformance, "guide/conformance.md", "What every family that reads chains survives: the matrix.";
    develop, "guide/develop.md", "Build, test, measure; the map of the source.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_is_a_guide_and_no_name_stands_twice() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide");
        let files = std::fs::read_dir(directory).unwrap();
        let files: BTreeSet<_> = files
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let guides: BTreeSet<_> = GUIDES.iter().map(|g| format!("{}.md", g.name)).collect();
        assert_eq!(files, guides);
        assert_eq!(guides.len(), GUIDES.len());
    }

    #[test]
    fn a_guide_is_found_by_its_whole_name() {
        assert_eq!(find("operate").map(|guide| guide.name), Some("operate"));
        assert!(find("oper").is_none() && find("Operate").is_none() && find("").is_none());
        for guide in GUIDES {
            assert!(guide.text.starts_with("# "), "{}", guide.name);
        }
    }

    /// Without a language the crate's documentation takes a block for Rust, and tests it.
    #[test]
    fn blocks_of_code_name_their_language() {
        for guide in GUIDES {
            let fences = guide.text.lines().map(str::trim_start);
            let fences = fences.filter(|line| line.starts_with("```"));
            for (at, fence) in fences.enumerate() {
                assert_eq!(fence == "```", at % 2 == 1, "{}: {fence}", guide.name);
            }
        }
    }
}
