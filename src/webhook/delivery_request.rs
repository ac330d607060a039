//! The request that delivers an event to an integrator's endpoint, signed with the integrator's current keys. Pure.

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use url::Url;

use super::{guard::Reach, sign};
use crate::integrator::{Integrator, header};

/// The header with the event's number; every try sends the same.
pub const EVENT_ID: &str = "x-event-id";
/// The header with the newest dead delivery of this endpoint that is still kept.
pub const GIVEN_UP: &str = "x-event-given-up";
const AGENT: &str = concat!("intentd/", env!("CARGO_PKG_VERSION"));

/// The content of a delivery request.
#[derive(Clone, Debug)]
pub struct Content {
    /// The event's number.
    pub number: u64,
    pub body: String,
    /// The newest dead delivery of the endpoint that is still kept, for the header [`GIVEN_UP`].
    pub given_up: Option<u64>,
}

/// A POST request, ready to be sent.
#[derive(Clone, Debug)]
pub struct DeliveryRequest {
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl DeliveryRequest {
    /// Writes `content` as a request to `to` at `now` (unix milliseconds). An error holds until the integrator
    /// changes.
    pub fn write(
        to: Option<&Integrator>,
        content: Content,
        now: u64,
        reach: Reach,
    ) -> Result<Self, String> {
        let to = to.ok_or("the integrator is gone")?;
        let webhook = to.webhook.as_ref().ok_or("the endpoint was removed")?;
        let digest = to.signing(now).ok_or("the key is revoked or expired")?;
        let text = |why: &dyn std::error::Error| why.to_string();
        reach.endpoint(&webhook.url).map_err(|why| text(&why))?;
        let mut headers = header::headers(&webhook.headers).map_err(|why| text(&why))?;
        let timestamp = now / 1_000;
        let Content { number, body, .. } = content;
        let signature = sign::signature(digest, timestamp, &body);
        let mut keys: Vec<_> = to.usable(now).map(|key| &key.digest).collect();
        keys.reverse();
        let signatures = sign::signatures(keys.into_iter(), timestamp, (number, &body));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(HeaderName::from_static(EVENT_ID), number.into());
        headers.insert(HeaderName::from_static(sign::TIMESTAMP), timestamp.into());
        let signature = HeaderValue::try_from(signature).map_err(|why| text(&why))?;
        headers.insert(HeaderName::from_static(sign::SIGNATURE), signature);
        let signatures = HeaderValue::try_from(signatures).map_err(|why| text(&why))?;
        headers.insert(HeaderName::from_static(sign::SIGNATURES), signatures);
        if let Some(lost) = content.given_up {
            headers.insert(HeaderName::from_static(GIVEN_UP), lost.into());
        }
        Ok(Self {
            url: webhook.url.clone(),
            headers,
            body: body.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integrator::{Key, Tier, Webhook};

    const NOW: u64 = 1_700_000_000_999;

    fn app() -> Integrator {
        let key = |byte, expires_at| Key {
            digest: [byte; 32],
            created_at: 1,
            expires_at,
        };
        Integrator {
            label: "app".into(),
            scopes: [].into(),
            tier: Tier::Default,
            keys: vec![key(1, Some(NOW + 5)), key(2, None)],
            webhook: Some(Webhook {
                url: "https://hooks.example/a".parse().unwrap(),
                headers: [("Authorization".into(), "Bearer x".into())].into(),
            }),
            wallet: None,
            proved_at: 0,
            created_at: 1,
            revoked_at: None,
        }
    }

    fn content() -> Content {
        Content {
            number: 7,
            body: "{}".into(),
            given_up: Some(5),
        }
    }

    fn written(to: &Integrator, now: u64) -> Result<DeliveryRequest, String> {
        DeliveryRequest::write(Some(to), content(), now, Reach::Public)
    }

    #[test]
    fn a_letter_has_our_headers_theirs_and_the_newest_key_s_signature() {
        let delivery_request = written(&app(), NOW).unwrap();
        let signature = sign::signature(&[2; 32], 1_700_000_000, "{}");
        let of = |key| sign::signature(&[key; 32], 1_700_000_000, "7.{}");
        let signatures = format!("{},{}", of(2), of(1));
        let mut found: Vec<_> = delivery_request.headers.iter().collect();
        found.sort_by_key(|(name, _)| name.as_str());
        let wanted = [
            ("authorization", "Bearer x"),
            ("content-type", "application/json"),
            ("user-agent", AGENT),
            ("x-event-given-up", "5"),
            ("x-event-id", "7"),
            ("x-signature-sha256", &signature),
            ("x-signature-timestamp", "1700000000"),
            ("x-signature-v2", &signatures),
        ];
        let found: Vec<_> = found
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(found, wanted);
        assert_eq!(delivery_request.body, "{}");
    }

    #[test]
    fn what_may_not_be_sent_is_not_written() {
        let because = |change: fn(&mut Integrator)| {
            let mut app = app();
            change(&mut app);
            written(&app, NOW).unwrap_err()
        };
        assert_eq!(
            because(|app| app.webhook = None),
            "the endpoint was removed"
        );
        let no_key = "the key is revoked or expired";
        assert_eq!(because(|app| app.revoked_at = Some(NOW)), no_key);
        assert_eq!(because(|app| app.keys.clear()), no_key);
        let set = |app: &mut Integrator, name: &str, value: &str| {
            let webhook = app.webhook.as_mut().unwrap();
            webhook.headers.insert(name.into(), value.into());
        };
        let mut injected = app();
        set(&mut injected, "x-a", "b\r\nX-Event-Id: 9");
        let why = written(&injected, NOW).unwrap_err();
        assert_eq!(why, "the value of header x-a is not visible ASCII");
        let mut overridden = app();
        set(&mut overridden, "X-Signature-SHA256", "00");
        let why = written(&overridden, NOW).unwrap_err();
        assert_eq!(why, "header x-signature-sha256 is ours to set");
        let mut private = app();
        private.webhook.as_mut().unwrap().url = "https://10.0.0.1/".parse().unwrap();
        let why = written(&private, NOW).unwrap_err();
        assert_eq!(why, "10.0.0.1 is not a public address");
        let nobody = DeliveryRequest::write(None, content(), NOW, Reach::Public);
        assert_eq!(nobody.unwrap_err(), "the integrator is gone");
    }

    #[test]
    fn after_a_rotation_the_newer_key_signs() {
        let mut app = app();
        app.keys.truncate(1);
        let before = written(&app, NOW).unwrap();
        let old = sign::signature(&[1; 32], 1_700_000_000, "{}");
        assert_eq!(before.headers[sign::SIGNATURE], old);
        // The older key verifies during its grace period, besides the newer one, and not after it.
        let old = sign::signature(&[1; 32], 1_700_000_000, "7.{}");
        let of = |now| written(&super::tests::app(), now).unwrap();
        let signed = |delivery_request: &DeliveryRequest| {
            delivery_request.headers[sign::SIGNATURES]
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert!(signed(&of(NOW)).split(',').any(|one| one == old));
        assert!(!signed(&of(NOW + 5)).contains(','));
        assert_eq!(
            written(&app, NOW + 5).unwrap_err(),
            "the key is revoked or expired"
        );
    }
}
