//! The routes about the process itself, and the documentation.

use intentd::guide::GUIDES;
use serde_json::Value;

use super::rig::{Setup, post};

#[tokio::test]
async fn lives_is_what_clients_know() {
    let untagged = Setup::default().start().await;
    let tagged = Setup {
        version: Some("v9".into()),
        ..Setup::default()
    }
    .start()
    .await;
    let plain = "{\"status\":\"ok\"}";
    let undefined = "{\"status\":\"ok\",\"version\":\"undefined\"}";
    let cases = [
        (&untagged, "/lives/v1", plain),
        (&untagged, "/lives/v1?withReport=true", undefined),
        (&untagged, "/lives/v1?withReport=1", undefined),
        (&untagged, "/lives/v1?withReport=0", plain),
        (&untagged, "/lives/v1?withReport", plain),
        (&untagged, "/lives/v1?withReport=%31", undefined),
        (&tagged, "/lives/v1", plain),
        (
            &tagged,
            "/lives/v1?a=b&withReport=1",
            "{\"status\":\"ok\",\"version\":\"v9\"}",
        ),
    ];
    for (rig, path, expected) in cases {
        let answer = rig.get(path).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (200, expected),
            "{path}"
        );
        assert_eq!(
            answer.header("content-type"),
            Some("application/json; charset=utf-8")
        );
    }
}

#[tokio::test]
async fn unknown_route_repeats_what_was_asked() {
    let rig = Setup::default().start().await;
    let answer = rig.get("/nope?a=1").await;
    assert_eq!(
        answer.body,
        "{\"message\":\"Route GET:/nope?a=1 not found\",\"error\":\"Not Found\",\"statusCode\":404,\"code\":\"ROUTE_NOT_FOUND\",\"retryable\":false,\"docs\":\"/documentation/errors/ROUTE_NOT_FOUND\"}"
    );
    let long = rig.get(&format!("/{}", "a".repeat(20_000))).await;
    assert_eq!(long.status, 404);
    assert!(long.body.len() < 500);
}

#[tokio::test]
async fn readiness_is_503_when_one_chain_cannot() {
    let rig = Setup::default().start().await;
    let answer = rig.get("/readyz").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.body,
        "{\"ready\":true,\"chains\":[{\"id\":\"one\",\"ready\":true},{\"id\":\"two\",\"ready\":true}]}"
    );
    let rig = Setup {
        dead_chain: true,
        ..Setup::default()
    }
    .start()
    .await;
    let answer = rig.get("/readyz").await;
    assert_eq!(answer.status, 503);
    assert!(
        answer
            .body
            .contains("{\"id\":\"two\",\"ready\":false,\"reason\":\"no quorum\"}")
    );
}

#[tokio::test]
async fn metrics_count_requests_by_route_not_by_path() {
    let rig = Setup::default().start().await;
    rig.get("/metrics").await;
    rig.get("/nope/secret-path").await;
    rig.send(post("/echo", "{}")).await;
    let answer = rig.get("/metrics").await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    for line in [
        "intentd_http_requests_total{route=\"/echo\",status=\"4xx\",surface=\"test\"}",
        "intentd_http_requests_total{route=\"unmatched\",status=\"4xx\",surface=\"test\"}",
        "intentd_http_request_seconds_bucket{route=\"/metrics\"",
    ] {
        assert!(answer.body.contains(line), "{line} not in {}", answer.body);
    }
    assert!(!answer.body.contains("secret-path"));
}

#[tokio::test]
async fn description_is_made_of_the_routes_own_types() {
    let rig = Setup::default().start().await;
    let answer = rig.get("/documentation/json").await;
    let api: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(api["openapi"], "3.1.0");
    assert_eq!(api["info"]["title"], "Test API");
    let echo = &api["paths"]["/echo"]["post"];
    let body = &echo["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(body["title"], "Echo");
    assert_eq!(body["required"], serde_json::json!(["chainId"]));
    assert_eq!(body["properties"]["chainId"]["type"], "string");
    assert_eq!(api["components"]["schemas"], serde_json::json!({}));
    assert_eq!(echo["security"][0]["key"], serde_json::json!([]));
    let open = &api["paths"]["/lives/v1"]["get"]["security"];
    assert_eq!(*open, serde_json::json!([]));
    assert_eq!(
        echo["description"],
        "Reads the body as its type and answers with it."
    );
    assert_eq!(api["servers"][0]["url"], "/");
    assert_eq!(api["info"]["description"], Value::Null);
    assert_eq!(api["info"]["license"]["identifier"], "MIT OR Apache-2.0");
    assert!(api["paths"]["/metrics"].is_null());
    no_references(&api);
}

fn no_references(part: &Value) {
    match part {
        Value::Object(fields) => {
            assert_eq!(fields.get("$ref"), None);
            fields.values().for_each(no_references);
        }
        Value::Array(items) => items.iter().for_each(no_references),
        _ => {}
    }
}

#[tokio::test]
async fn page_names_no_other_host_and_could_reach_none() {
    let rig = Setup::default().start().await;
    let page = rig.get("/documentation").await;
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(
        !page.body.contains("://") && !page.body.contains("\"//"),
        "{}",
        page.body
    );
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'"),
        "{policy}"
    );
    assert!(
        !policy.contains("http") && !policy.contains('*'),
        "{policy}"
    );
    for script in page.body.split("src=\"").skip(1) {
        let path = format!("/{}", script.split('"').next().unwrap());
        let answer = rig.get(&path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(
            answer.header("content-type"),
            Some("text/javascript; charset=utf-8")
        );
        assert!(!answer.body.is_empty());
    }
}

#[tokio::test]
async fn each_code_has_a_page_and_no_other_has_one() {
    let rig = Setup::default().start().await;
    let list = rig.get("/documentation/errors").await;
    let page = rig.get("/documentation/errors/ROUTE_NOT_FOUND").await;
    let other = rig.get("/documentation/errors/%3Cscript%3E").await;
    assert_eq!((list.status, page.status, other.status), (200, 200, 404));
    assert!(list.body.contains("href=\"errors/ROUTE_NOT_FOUND\""));
    assert!(page.body.contains("<h1>ROUTE_NOT_FOUND</h1>"));
    assert!(other.body.contains("href=\"ROUTE_NOT_FOUND\"") && !other.body.contains("script"));
    for answer in [&list, &page, &other] {
        let media = answer.header("content-type");
        assert_eq!(media, Some("text/html; charset=utf-8"));
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(!answer.body.contains("://") && !answer.body.contains("src="));
    }
    // An answer leads there, and the description knows its code.
    let refused: Value = serde_json::from_str(&rig.get("/nope").await.body).unwrap();
    assert_eq!(rig.get(refused["docs"].as_str().unwrap()).await.status, 200);
    let api: Value = serde_json::from_str(&rig.get("/documentation/json").await.body).unwrap();
    let answer = &api["paths"]["/echo"]["post"]["responses"]["400"];
    let failure = &answer["content"]["application/json"]["schema"];
    let codes = failure["properties"]["code"]["enum"].as_array().unwrap();
    assert!(codes.contains(&refused["code"]) && codes.contains(&"INVALID_FIELD".into()));
}

#[tokio::test]
async fn each_guide_has_a_page_and_no_other_name_has_one() {
    let rig = Setup::default().start().await;
    let reference = rig.get("/documentation").await;
    assert!(reference.body.contains("href=\"documentation/guide\""));
    let list = rig.get("/documentation/guide").await;
    assert_eq!(list.status, 200);
    for guide in GUIDES {
        let link = format!("href=\"guide/{}\"", guide.name);
        assert!(list.body.contains(&link), "{link}");
        let page = rig
            .get(&format!("/documentation/guide/{}", guide.name))
            .await;
        assert_eq!(page.status, 200, "{}", guide.name);
        assert!(page.body.contains("<h1 id=\""), "{}", guide.name);
        alone(&page.body);
    }
    for name in [
        "nothing",
        "Operate",
        "operate.md",
        "%3Cscript%3E",
        "..%2f..%2fCargo.toml",
    ] {
        let path = format!("/documentation/guide/{name}");
        let answer = rig.get(&path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.body.contains("href=\"operate\""), "{path}");
        alone(&answer.body);
    }
    for path in ["/documentation/guide/", "/documentation/guide/operate/x"] {
        assert_eq!(rig.get(path).await.status, 404, "{path}");
    }
    let policy = list.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert_eq!(
        list.header("content-type"),
        Some("text/html; charset=utf-8")
    );
}

/// A page loads nothing, and leads to this process only.
fn alone(page: &str) {
    assert!(!page.contains("<script") && !page.contains(" src="));
    for link in page.split("href=\"").skip(1) {
        let link = link.split('"').next().unwrap();
        let icon = link == "data:,";
        assert!(
            icon || !link.contains(':') && !link.starts_with('/'),
            "{link}"
        );
    }
}

/// Where a link of a guide's page leads, the page has what it names.
#[tokio::test]
async fn links_of_guides_lead_somewhere() {
    let rig = Setup::default().start().await;
    let mut links = 0;
    for guide in GUIDES {
        let path = format!("/documentation/guide/{}", guide.name);
        let page = rig.get(&path).await;
        for link in page.body.split("href=\"").skip(1) {
            let link = link.split('"').next().unwrap();
            if link.starts_with("..") || link == "data:," {
                continue;
            }
            let (name, heading) = link.split_once('#').unwrap_or((link, ""));
            let name = if name.is_empty() { guide.name } else { name };
            let other = rig.get(&format!("/documentation/guide/{name}")).await;
            assert_eq!(other.status, 200, "{path}: {link}");
            let id = format!(" id=\"{heading}\">");
            assert!(
                heading.is_empty() || other.body.contains(&id),
                "{path}: {link}"
            );
            links += 1;
        }
    }
    assert!(links > 20, "{links} links");
}
