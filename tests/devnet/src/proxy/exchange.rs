//! One HTTP exchange: judge each call, ask the node for what is left, put the answers together.

use std::{sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use serde_json::{Value, json};
use url::Url;

use super::{
    State, lock,
    rule::{Call, Lie},
};

/// Ends the connection without an answer.
#[derive(Debug)]
pub struct Gone;

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection was dropped on purpose")
    }
}

impl std::error::Error for Gone {}

pub(super) async fn answer(
    state: &State,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Gone> {
    state.exchanges.fetch_add(1, Ordering::SeqCst);
    let authorization = request.headers().get(AUTHORIZATION).cloned();
    let body = request.into_body().collect().await.map_err(|_| Gone)?;
    let upstream = lock(&state.upstream).clone();
    let node = Upstream {
        state,
        url: upstream,
        authorization,
    };
    let Ok(sent) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return Ok(plain(StatusCode::BAD_REQUEST, "not JSON".into()));
    };
    let calls: Vec<&Value> = sent
        .as_array()
        .map_or_else(|| vec![&sent], |batch| batch.iter().collect());
    let lies: Vec<_> = calls.iter().map(|call| judge(state, call)).collect();
    if let Some(end) = whole_exchange(&lies).await {
        return end;
    }
    let mut answers = Vec::with_capacity(calls.len());
    for (answer, lie) in node.ask_all(&calls, &lies).await?.into_iter().zip(lies) {
        answers.push(changed(answer, lie));
    }
    let body = match &sent {
        Value::Array(_) => Value::Array(answers),
        _ => answers.pop().unwrap_or(Value::Null),
    };
    Ok(plain(StatusCode::OK, body.to_string().into()))
}

/// Counts the call and asks the rules about it.
fn judge(state: &State, call: &Value) -> Option<Lie> {
    let method = call["method"].as_str().unwrap_or_default();
    let nth = {
        let mut counts = lock(&state.counts);
        let count = counts.entry(method.to_owned()).or_default();
        *count += 1;
        *count
    };
    let call = Call {
        method,
        params: &call["params"],
        nth,
    };
    lock(&state.rules).iter().find_map(|rule| rule(&call))
}

/// Waits as told; answers for everybody if one of the lies is about the connection.
async fn whole_exchange(lies: &[Option<Lie>]) -> Option<Result<Response<Full<Bytes>>, Gone>> {
    let mut delay = Duration::ZERO;
    for lie in lies.iter().flatten() {
        match lie {
            Lie::Drop => return Some(Err(Gone)),
            Lie::Hang => std::future::pending::<()>().await,
            Lie::Answer(status, headers, body) => {
                let mut answer = plain(*status, body.clone());
                answer.headers_mut().extend(headers.clone());
                return Some(Ok(answer));
            }
            Lie::Delay(longer) => delay = delay.max(*longer),
            _ => {}
        }
    }
    if delay > Duration::ZERO {
        tokio::time::sleep(delay).await;
    }
    None
}

/// What the client hears about one call. A lie that needs no node has its answer already.
fn changed(mut answer: Value, lie: Option<Lie>) -> Value {
    if let Some(Lie::Patch(change)) = lie
        && let Some(result) = answer.get_mut("result")
    {
        change(result);
    }
    answer
}

struct Upstream<'a> {
    state: &'a State,
    url: Url,
    authorization: Option<HeaderValue>,
}

impl Upstream<'_> {
    /// The answers in the order of the calls: a lie's own, else the node's. What goes to the
    /// usual node unchanged goes there in one request.
    async fn ask_all(&self, calls: &[&Value], lies: &[Option<Lie>]) -> Result<Vec<Value>, Gone> {
        let mut answers = vec![None; calls.len()];
        for (at, (call, lie)) in calls.iter().zip(lies).enumerate() {
            answers[at] = match lie {
                Some(Lie::Result(result)) => {
                    Some(json!({ "jsonrpc": "2.0", "id": call["id"], "result": result }))
                }
                Some(Lie::Error(code, message)) => Some(json!({
                    "jsonrpc": "2.0", "id": call["id"], "error": { "code": code, "message": message },
                })),
                Some(Lie::Ask(method, params)) => {
                    let other = json!({
                        "jsonrpc": "2.0", "id": call["id"], "method": method, "params": params,
                    });
                    Some(self.post(&self.url, &other).await?)
                }
                Some(Lie::From(node)) => Some(self.post(node, call).await?),
                _ => None,
            };
        }
        let open: Vec<usize> = (0..calls.len())
            .filter(|at| answers[*at].is_none())
            .collect();
        for (at, answer) in open.iter().zip(self.truth(calls, &open).await?) {
            answers[*at] = Some(answer);
        }
        Ok(answers.into_iter().flatten().collect())
    }

    async fn truth(&self, calls: &[&Value], open: &[usize]) -> Result<Vec<Value>, Gone> {
        match open {
            [] => Ok(Vec::new()),
            [one] => Ok(vec![self.post(&self.url, calls[*one]).await?]),
            many => {
                let batch: Vec<_> = many.iter().map(|at| calls[*at]).collect();
                let answers = self.post(&self.url, &json!(batch)).await?;
                let find = |call: &&Value| {
                    let same = |answer: &&Value| answer["id"] == call["id"];
                    answers.as_array()?.iter().find(same).cloned()
                };
                Ok(batch
                    .iter()
                    .map(find)
                    .map(Option::unwrap_or_default)
                    .collect())
            }
        }
    }

    async fn post(&self, url: &Url, body: &Value) -> Result<Value, Gone> {
        let mut request = self
            .state
            .client
            .post(url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        if let Some(value) = &self.authorization {
            request = request.header(AUTHORIZATION, value);
        }
        // A node that is gone looks to the client like a connection that closed.
        let response = request.send().await.map_err(|_| Gone)?;
        let bytes = response.bytes().await.map_err(|_| Gone)?;
        serde_json::from_slice(&bytes).map_err(|_| Gone)
    }
}

fn plain(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
