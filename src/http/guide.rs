//! The guides as HTML. Links between guides become links between their pages; what stands elsewhere in the
//! repository is named without a link, since a daemon does not serve it.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use crate::guide::{self, Guide};

/// Where the list of the guides is; a guide's own page is behind it.
pub const PATH: &str = "/documentation/guide";

/// The guide's text. Each heading has the id by which GitHub links to it.
pub fn rendered(guide: &Guide) -> String {
    let mut events: Vec<_> = Parser::new_ext(guide.text, Options::ENABLE_TABLES).collect();
    name_headings(&mut events);
    let mut body = String::new();
    html::push_html(&mut body, linked(events).into_iter());
    body
}

fn name_headings(events: &mut [Event<'_>]) {
    for at in 0..events.len() {
        let (before, behind) = events.split_at_mut(at + 1);
        if let Some(Event::Start(Tag::Heading { id, .. })) = before.last_mut() {
            *id = Some(CowStr::from(slug(&heading(behind))));
        }
    }
}

/// The text up to the heading's end.
fn heading(behind: &[Event<'_>]) -> String {
    let inside = behind
        .iter()
        .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let texts = inside.map(|event| match event {
        Event::Text(text) | Event::Code(text) => text.to_string(),
        _ => String::new(),
    });
    texts.collect()
}

/// As GitHub makes it: letters, digits, `-` and `_` stay, spaces become `-`.
fn slug(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    let dashed = kept.map(|c| if c == ' ' { '-' } else { c });
    dashed.collect::<String>().to_lowercase()
}

/// With the links that a page may have. Tags in the text are shown, not meant.
fn linked(events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    let mut kept = Vec::with_capacity(events.len());
    let mut bare = false;
    for mut event in events {
        match &mut event {
            Event::Start(Tag::Link { dest_url, .. }) => match target(dest_url) {
                Some(found) => *dest_url = CowStr::from(found),
                None => {
                    bare = true;
                    continue;
                }
            },
            // A link has no link inside.
            Event::End(TagEnd::Link) if bare => {
                bare = false;
                continue;
            }
            Event::Html(text) | Event::InlineHtml(text) => event = Event::Text(text.clone()),
            _ => {}
        }
        kept.push(event);
    }
    kept
}

/// `solver.md#funds` as the pages have it (`solver#funds`); `None` if no page has it.
fn target(link: &str) -> Option<String> {
    if link.starts_with('#') {
        return Some(link.to_owned());
    }
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let found = guide::find(file.strip_suffix(".md")?)?;
    let hash = if heading.is_empty() { "" } else { "#" };
    Some(format!("{}{hash}{heading}", found.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &'static str) -> String {
        rendered(&Guide {
            name: "a",
            about: "",
            text,
        })
    }

    #[test]
    fn headings_have_the_ids_that_links_mean() {
        assert_eq!(
            page("## 3.2 What `force` is, and is not"),
            "<h2 id=\"32-what-force-is-and-is-not\">3.2 What <code>force</code> is, and is not</h2>\n"
        );
    }

    #[test]
    fn links_lead_to_pages_or_nowhere() {
        for (link, found) in [
            ("operate.md", Some("operate")),
            ("protocol.md#5-executions", Some("protocol#5-executions")),
            ("#here", Some("#here")),
            ("nothing.md", None),
            ("../../config.example.env", None),
            ("https://example.org/operate.md", None),
            ("operate", None),
        ] {
            assert_eq!(target(link).as_deref(), found, "{link}");
        }
        assert_eq!(
            page("[a `b`](operate.md) [c](../x.rs)"),
            "<p><a href=\"operate\">a <code>b</code></a> c</p>\n"
        );
    }

    #[test]
    fn tags_are_shown_and_not_meant() {
        let page = page("<script>a</script>\n\nb <img src=x>\n");
        assert!(
            !page.contains("<script") && !page.contains("<img"),
            "{page}"
        );
        assert!(page.contains("&lt;img src=x&gt;"), "{page}");
    }

    #[test]
    fn tables_are_tables() {
        assert!(page("| a |\n|---|\n| b |\n").contains("<td>b</td>"));
    }
}
