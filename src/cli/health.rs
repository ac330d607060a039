//! `intentd health`: exit code 0 when the daemon answers `/lives/v1`.

use std::time::Duration;

use anyhow::{Context, ensure};

const TIMEOUT: Duration = Duration::from_secs(3);

pub fn run(
    url: Option<String>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> anyhow::Result<()> {
    let url = url.unwrap_or_else(|| {
        let (mut first, mut second) = (None, None);
        for (name, value) in variables {
            match name.as_str() {
                "HTTP_PORT" if !value.is_empty() => first = Some(value),
                "PORT" if !value.is_empty() => second = Some(value),
                _ => {}
            }
        }
        format!(
            "http://127.0.0.1:{}",
            first.or(second).unwrap_or_else(|| "3000".into())
        )
    });
    super::runtime()?.block_on(async {
        let client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .no_proxy()
            .build()?;
        let answer = client
            .get(format!("{url}/lives/v1"))
            .send()
            .await
            .context("no answer")?;
        ensure!(answer.status().is_success(), "answered {}", answer.status());
        Ok(())
    })
}
