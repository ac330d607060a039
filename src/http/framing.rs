//! Finds where HTTP/1.1 requests begin and end in the bytes of a connection. It detects two things that the HTTP
//! library does not report: an ambiguous length (Content-Length with Transfer-Encoding) and a head that does not end.
//! Pure; it holds back no byte and keeps less than a line.

use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName},
};

use super::{ApiError, auth::KEY};

/// Header fields that may occur only once, because the server decides something by them.
const SINGLE: [HeaderName; 5] = [HOST, CONTENT_TYPE, CONTENT_LENGTH, AUTHORIZATION, KEY];
/// Bytes of a header line that are kept; the names and lengths of interest are shorter.
const LINE: usize = 128;

/// Follows the bytes of one connection from the first.
#[derive(Debug, Default)]
pub struct Framing {
    state: State,
    ambiguous: bool,
}

#[derive(Debug)]
enum State {
    Head(Head),
    /// This many bytes of a body are still to come.
    Body(u64),
    /// HTTP/2, a chunked body (the service closes the connection after it), or bytes that hyper refuses.
    Opaque,
}

#[derive(Debug, Default)]
struct Head {
    line: Vec<u8>,
    begun: bool,
    length: Option<u64>,
    chunked: bool,
    unreadable: bool,
}

impl Default for State {
    fn default() -> Self {
        Self::Head(Head::default())
    }
}

impl Framing {
    /// Takes the next bytes that the peer sent.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = match &mut self.state {
                State::Opaque => return,
                State::Body(left) => {
                    let taken = usize::try_from(*left).map_or(bytes.len(), |n| n.min(bytes.len()));
                    *left -= taken as u64;
                    if *left == 0 {
                        self.state = State::default();
                    }
                    taken
                }
                State::Head(head) => {
                    let (taken, ended) = head.feed(bytes);
                    if ended {
                        self.end_line();
                    }
                    taken
                }
            };
            bytes = &bytes[taken..];
        }
    }

    /// Whether a request so far declared its length twice, or in an unusual form.
    pub fn ambiguous(&self) -> bool {
        self.ambiguous
    }

    /// Whether a head has begun and not ended.
    pub fn inside_head(&self) -> bool {
        matches!(&self.state, State::Head(head) if head.begun || !head.line.is_empty())
    }

    fn end_line(&mut self) {
        let State::Head(head) = &mut self.state else {
            return;
        };
        let mut kept = std::mem::take(&mut head.line);
        let line = kept.strip_suffix(b"\r").unwrap_or(&kept);
        if !line.is_empty() {
            if !head.begun && line.starts_with(b"PRI * HTTP/2") {
                self.state = State::Opaque;
                return;
            }
            head.field(line);
            kept.clear();
            head.line = kept;
            return;
        }
        if !head.begun {
            return;
        }
        self.ambiguous |= head.unreadable || (head.chunked && head.length.is_some());
        self.state = match (head.chunked, head.length) {
            (true, _) => State::Opaque,
            (false, Some(length)) if length > 0 => State::Body(length),
            (false, _) => State::default(),
        };
    }
}

impl Head {
    /// Returns how many bytes were taken and whether they ended a line.
    fn feed(&mut self, bytes: &[u8]) -> (usize, bool) {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        let room = LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&piece[..piece.len().min(room)]);
        // A line cut at LINE may lose its final CR, but not its name.
        (piece.len() + usize::from(end.is_some()), end.is_some())
    }

    fn field(&mut self, line: &[u8]) {
        if !self.begun {
            self.begun = true;
            return;
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            return;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.chunked = true;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value)
                .ok()
                .and_then(|text| text.parse().ok());
            self.unreadable |= length.is_none() || line.len() >= LINE;
            self.length = length;
        }
    }
}

/// Answers 400 to a request that two HTTP readers could understand differently.
pub fn single_meaning(ambiguous: bool, headers: &HeaderMap) -> Result<(), ApiError> {
    if ambiguous {
        let message = "Content-Length and Transfer-Encoding in one request";
        return Err(ApiError::refused("AMBIGUOUS_LENGTH", message));
    }
    match SINGLE
        .iter()
        .find(|name| headers.get_all(*name).iter().nth(1).is_some())
    {
        Some(name) => {
            let message = format!("Header {name} stands more than once");
            Err(ApiError::refused("DUPLICATE_HEADER", message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";
    const CHUNKED: &str = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";

    /// Bytes → (ambiguous, inside a head), fed at once and byte by byte.
    #[test]
    fn framing_table() {
        let both = "POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n";
        let other_order = "POST / HTTP/1.1\ntransfer-encoding: chunked\nCONTENT-LENGTH: 4\n\n";
        let hidden = "POST / HTTP/1.1\r\nContent-Length: 63\r\n\r\n".to_owned()
            + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n.............x";
        let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(5000));
        let padded = format!(
            "GET / HTTP/1.1\r\ncontent-length:{}4\r\n\r\n",
            " ".repeat(500)
        );
        let cases: &[(&str, bool, bool)] = &[
            ("", false, false),
            ("\r\n", false, false),
            (&padded, true, false),
            ("G", false, true),
            ("GET / HTTP/1.1\r\n", false, true),
            (CLEAN, false, false),
            (CHUNKED, false, false),
            (both, true, false),
            (other_order, true, false),
            (&(CLEAN.to_owned() + both), true, false),
            (&(CLEAN.to_owned() + CLEAN), false, false),
            (&(CLEAN.to_owned() + "GET"), false, true),
            (&hidden, false, false),
            (&long, false, false),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false, false),
        ];
        for (bytes, ambiguous, inside) in cases {
            let mut at_once = Framing::default();
            at_once.feed(bytes.as_bytes());
            let mut single = Framing::default();
            bytes.bytes().for_each(|byte| single.feed(&[byte]));
            for framing in [at_once, single] {
                assert_eq!(framing.ambiguous(), *ambiguous, "{bytes:?}");
                assert_eq!(framing.inside_head(), *inside, "{bytes:?}");
            }
        }
    }

    proptest::proptest! {
        /// The result does not depend on how the bytes are split. Of single words and signs there would be no heads
        /// with a length.
        #[test]
        fn pieces_do_not_matter(
            bytes in "((POST|content-length: [0-9x]{0,2}|transfer-encoding: x|\\PC)?\\r?\\n){0,40}\\PC{0,9}",
            piece in 1_usize..20,
        ) {
            let mut at_once = Framing::default();
            at_once.feed(bytes.as_bytes());
            let mut pieces = Framing::default();
            bytes.as_bytes().chunks(piece).for_each(|chunk| pieces.feed(chunk));
            proptest::prop_assert_eq!(at_once.ambiguous(), pieces.ambiguous());
            proptest::prop_assert_eq!(at_once.inside_head(), pieces.inside_head());
        }
    }
}
