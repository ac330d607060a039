//! The messages of the WebSocket in both directions (guide: protocol 11.16). Pure.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{http::codes, request::event::KIND};

/// A client's command; `None` stands for every request of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Subscribe(Option<B256>),
    /// `None` removes all subscriptions.
    Unsubscribe(Option<B256>),
}

/// Why a message is refused; each has a stable code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error("expected a JSON object with a `type`")]
    Message,
    #[error("type: expected subscribe or unsubscribe")]
    Kind,
    #[error("event: expected request.status.updated")]
    Event,
    #[error("filters.id: expected 0x and 64 hex digits")]
    Id,
    #[error("without filters.id a known apiKey is needed")]
    KeyRequired,
    #[error("no such request")]
    Unknown,
    #[error("a socket has at most {0} subscriptions")]
    TooMany(usize),
    #[error("requests cannot be read now")]
    Unavailable,
}

impl Wrong {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Message => "INVALID_MESSAGE",
            Self::Kind => "INVALID_TYPE",
            Self::Event => "UNSUPPORTED_EVENT",
            Self::Id => "INVALID_REQUEST_ID",
            Self::KeyRequired => "KEY_REQUIRED",
            Self::Unknown => "REQUEST_NOT_FOUND",
            Self::TooMany(_) => "TOO_MANY_SUBSCRIPTIONS",
            Self::Unavailable => "SERVICE_UNAVAILABLE",
        }
    }

    /// Whether the client caused the error: too many of these disconnect it.
    pub fn blamed(&self) -> bool {
        *self != Self::Unavailable
    }
}

#[derive(Deserialize)]
struct Message {
    r#type: String,
    event: Option<String>,
    #[serde(default)]
    filters: Option<Filters>,
}

#[derive(Deserialize)]
struct Filters {
    id: Option<String>,
}

/// Parses a client's message and ignores unknown fields.
pub fn read(text: &str) -> Result<Asked, Wrong> {
    let message: Message = serde_json::from_str(text).map_err(|_| Wrong::Message)?;
    let subscribes = match message.r#type.as_str() {
        "subscribe" => true,
        "unsubscribe" => false,
        _ => return Err(Wrong::Kind),
    };
    if message.event.as_deref() != Some(KIND) {
        return Err(Wrong::Event);
    }
    let id = message.filters.and_then(|filters| filters.id);
    let id = id.map(|id| request_id(&id).ok_or(Wrong::Id)).transpose()?;
    Ok(if subscribes {
        Asked::Subscribe(id)
    } else {
        Asked::Unsubscribe(id)
    })
}

fn request_id(text: &str) -> Option<B256> {
    let digits = text.strip_prefix("0x")?;
    (digits.len() == 64).then(|| digits.parse().ok()).flatten()
}

#[derive(Serialize)]
struct Reply<'a> {
    r#type: &'a str,
    status: &'a str,
    data: Value,
}

fn written(r#type: &str, status: &str, data: Value) -> String {
    let reply = Reply {
        r#type,
        status,
        data,
    };
    serde_json::to_string(&reply).unwrap_or_default()
}

/// The server's first message.
pub fn ready(id: &str) -> String {
    written("connection", "ready", json!({"id": id}))
}

/// Confirms a command.
pub fn done(asked: &Asked) -> String {
    let mut data = json!({"event": KIND});
    let (kind, id) = match asked {
        Asked::Subscribe(id) => ("subscribe", id),
        Asked::Unsubscribe(id) => ("unsubscribe", id),
    };
    match id {
        Some(id) => data["filters"] = json!({"id": id.to_string()}),
        None if kind == "subscribe" => data["filters"] = json!({}),
        None => {}
    }
    written(kind, "success", data)
}

/// Refuses a command. `asked`: the command, where the message could be parsed.
pub fn refused(asked: Option<&Asked>, wrong: &Wrong) -> String {
    let code = wrong.code();
    let mut data = json!({"code": code, "message": wrong.to_string(), "docs": codes::page(code)});
    let (kind, id) = match asked {
        Some(Asked::Subscribe(id)) => ("subscribe", id),
        Some(Asked::Unsubscribe(id)) => ("unsubscribe", id),
        None => ("error", &None),
    };
    if let Some(id) = id {
        data["filters"] = json!({"id": id.to_string()});
    }
    written(kind, "error", data)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0x0707070707070707070707070707070707070707070707070707070707070707";

    fn id() -> Option<B256> {
        Some(B256::repeat_byte(7))
    }

    #[test]
    fn what_the_published_client_sends_is_understood() {
        let sent = format!(
            r#"{{"type":"subscribe","event":"request.status.updated","filters":{{"id":"{ID}"}}}}"#
        );
        let asked = read(&sent).unwrap();
        assert_eq!(asked, Asked::Subscribe(id()));
        assert_eq!(
            done(&asked),
            format!(
                r#"{{"type":"subscribe","status":"success","data":{{"event":"request.status.updated","filters":{{"id":"{ID}"}}}}}}"#
            )
        );
    }

    #[test]
    fn messages_table() {
        let of = |kind: &str, more: &str| {
            format!(r#"{{"type":"{kind}","event":"request.status.updated"{more}}}"#)
        };
        let with = |id: &str| format!(r#","filters":{{"id":{id}}},"x":1"#);
        let quoted = format!("\"{ID}\"");
        let cases = [
            (of("subscribe", ""), Ok(Asked::Subscribe(None))),
            (
                of("subscribe", ",\"filters\":{}"),
                Ok(Asked::Subscribe(None)),
            ),
            (
                of("subscribe", ",\"filters\":null"),
                Ok(Asked::Subscribe(None)),
            ),
            (of("subscribe", &with("null")), Ok(Asked::Subscribe(None))),
            (
                of("unsubscribe", &with(&quoted)),
                Ok(Asked::Unsubscribe(id())),
            ),
            (of("unsubscribe", ""), Ok(Asked::Unsubscribe(None))),
            (of("subscribe", &with("\"0x12\"")), Err(Wrong::Id)),
            (of("subscribe", &with("\"\"")), Err(Wrong::Id)),
            (
                of("subscribe", &with(&quoted.replace("0x", ""))),
                Err(Wrong::Id),
            ),
            (
                of("subscribe", &with(&quoted.replace("07", "0z"))),
                Err(Wrong::Id),
            ),
            (of("subscribe", &with("7")), Err(Wrong::Message)),
            (of("subscribe", ",\"filters\":[]"), Err(Wrong::Message)),
            (of("publish", ""), Err(Wrong::Kind)),
            (
                of("subscribe", "").replace("updated", "gone"),
                Err(Wrong::Event),
            ),
            ("{\"type\":\"subscribe\"}".into(), Err(Wrong::Event)),
            ("{}".into(), Err(Wrong::Message)),
            ("[]".into(), Err(Wrong::Message)),
            ("".into(), Err(Wrong::Message)),
            ("{\"type\":".into(), Err(Wrong::Message)),
            ("[".repeat(10_000), Err(Wrong::Message)),
        ];
        for (text, expected) in cases {
            assert_eq!(read(&text), expected, "{text:.100}");
        }
    }

    #[test]
    fn replies_name_what_they_answer() {
        assert_eq!(
            ready("7"),
            r#"{"type":"connection","status":"ready","data":{"id":"7"}}"#
        );
        assert_eq!(
            done(&Asked::Unsubscribe(None)),
            r#"{"type":"unsubscribe","status":"success","data":{"event":"request.status.updated"}}"#
        );
        let asked = Asked::Subscribe(None);
        let refusal: Value =
            serde_json::from_str(&refused(Some(&asked), &Wrong::KeyRequired)).unwrap();
        assert_eq!(refusal["type"], "subscribe");
        assert_eq!(refusal["status"], "error");
        assert_eq!(refusal["data"]["code"], "KEY_REQUIRED");
        assert_eq!(
            refusal["data"]["docs"],
            "/documentation/errors/KEY_REQUIRED"
        );
        let refusal: Value = serde_json::from_str(&refused(None, &Wrong::Message)).unwrap();
        assert_eq!(refusal["type"], "error");
        assert_eq!(refusal["data"]["code"], "INVALID_MESSAGE");
    }
}
