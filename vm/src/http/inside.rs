//! Providers in this process, found by the hosts of their URLs: for tests whose clock stands still while they wait for a
//! network.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use reqwest::RequestBuilder;
use url::Url;

use super::{Body, PostError, Room, failed};

/// The end of the hosts of such providers.
pub const HOST: &str = ".inside";

/// The status of an answer that never comes.
pub const NEVER: u16 = 0;

/// A request as its provider gets it.
pub struct Asked<'a> {
    /// With the query.
    pub path: &'a str,
    /// Empty for a request without.
    pub body: &'a [u8],
}

/// Answers with a status and a body; `None`: nobody listens.
pub type Provider = Arc<dyn Fn(&Asked<'_>) -> Option<(u16, Vec<u8>)> + Send + Sync>;

static PROVIDERS: Mutex<Option<HashMap<String, Provider>>> = Mutex::new(None);

fn providers() -> MutexGuard<'static, Option<HashMap<String, Provider>>> {
    PROVIDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has `provider` answer what is sent to `host`, in lower case and with [`HOST`] at its end. Channels that are opened
/// later use it.
pub fn register(host: &str, provider: Provider) {
    let mut providers = providers();
    providers
        .get_or_insert_default()
        .insert(host.to_owned(), provider);
}

pub(super) fn of(url: &Url) -> Option<Provider> {
    let host = url.host_str().filter(|host| host.ends_with(HOST))?;
    providers().as_ref()?.get(host).cloned()
}

/// The answer's body; `None` for one that never comes.
pub(super) fn exchange(
    provider: &Provider,
    request: RequestBuilder,
) -> Result<Option<Body>, PostError> {
    let request = request.build().map_err(|error| failed(&error))?;
    let url = request.url();
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let body = request.body().and_then(reqwest::Body::as_bytes);
    let asked = Asked {
        path: &path,
        body: body.unwrap_or_default(),
    };
    let answer = provider(&asked);
    let (status, bytes) = answer.ok_or_else(|| PostError::Failed("nobody listens".into()))?;
    let body = Body {
        bytes,
        _room: Room::default(),
    };
    match status {
        NEVER => Ok(None),
        200..=299 => Ok(Some(body)),
        status => Err(PostError::Status {
            status,
            body: Arc::new(body),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::Channel, *};
    use crate::{ChainEntry, Endpoint};

    #[tokio::test(start_paused = true)]
    async fn provider_in_this_process_is_asked_by_its_host() {
        let host = format!("echo{HOST}");
        let echo: Provider = Arc::new(|asked| {
            let whole = [asked.path.as_bytes(), b" ", asked.body].concat();
            match asked.body {
                b"nobody" => None,
                b"no" => Some((500, whole)),
                _ => Some((200, whole)),
            }
        });
        register(&host, echo);
        let endpoint = Endpoint {
            position: 1,
            url: format!("http://{host}/a").parse().unwrap(),
            timeout: Duration::from_secs(1),
            longest: 1 << 10,
            allows: None,
            client: Endpoint::client().unwrap(),
        };
        let entry: ChainEntry =
            serde_json::from_value(serde_json::json!({"id": "here", "hubChainId": "1"})).unwrap();
        let spec = entry
            .spec(&crate::testing::scripted::FAMILY, false)
            .unwrap();
        let channel = Channel::new(&spec.id, &endpoint);
        let said = channel.post(b"7".to_vec()).await.unwrap();
        assert_eq!(&said[..], b"/a 7");
        let refused = channel.post(b"no".to_vec()).await.unwrap_err();
        assert!(matches!(refused, PostError::Status { status: 500, .. }));
        assert!(channel.post(b"nobody".to_vec()).await.is_err());
        assert!(of(&"http://other.inside/".parse().unwrap()).is_none());
        assert!(of(&"http://localhost/".parse().unwrap()).is_none());
    }
}
