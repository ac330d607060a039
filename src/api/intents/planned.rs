//! The routes that integrators of the network know (guide: protocol 11.19) and that this version does not
//! serve: each says so, with 501 and `NOT_SUPPORTED_YET`. A route that is built leaves this table, and the
//! list in README.md.

use std::future::ready;

use futures::FutureExt;
use hyper::Method;

use crate::http::{Access, ApiError, Route};

/// Longest path that an answer repeats.
const ECHO: usize = 256;

/// Routes that answer 501 with `NOT_SUPPORTED_YET`.
pub static ROUTES: [Route<()>; 23] = [
    post("/execute"),
    post("/execute/permits"),
    post("/execute/swap"),
    post("/authorize"),
    post("/fast-fill"),
    get("/app-fees/{wallet}/balances"),
    get("/app-fees/{wallet}/claims"),
    post("/app-fees/{wallet}/claim"),
    get("/balance-events/{wallet}"),
    get("/deposit-addresses/v1"),
    post("/transactions/deposit-address/reindex"),
    get("/requests/{requestId}/signature"),
    get("/requests/{requestId}/signature/v2"),
    post("/requests/metadata"),
    get("/prices/rates"),
    get("/metrics/usage"),
    get("/sanctioned/{address}"),
    post("/wallets/screen"),
    post("/wallets/screen/override"),
    get("/wallets/screen/info"),
    post("/withdrawals/attest-deposit"),
    post("/withdrawals/request"),
    get("/withdrawals/status"),
];

const fn get(path: &'static str) -> Route<()> {
    planned(Method::GET, path)
}

const fn post(path: &'static str) -> Route<()> {
    planned(Method::POST, path)
}

const fn planned(method: Method, path: &'static str) -> Route<()> {
    Route {
        method,
        path,
        access: Access::Counted,
        handler: |_, request| {
            let path = request.target.split('?').next().unwrap_or_default();
            let path: String = path.chars().take(ECHO).collect();
            let route = format!("{} {path}", request.method);
            ready(Err(ApiError::Planned(route))).boxed()
        },
        docs: None,
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use super::*;
    use crate::{api::intents, http::Router};

    const README: &str = include_str!("../../../README.md");
    const HEADING: &str = "### Routes that are planned";

    fn row<S>(route: &Route<S>) -> String {
        format!("{} {}", route.method, route.path)
    }

    #[test]
    fn readme_lists_what_is_planned_and_nothing_else() {
        let (_, section) = README.split_once(HEADING).unwrap();
        let section = section.split("\n#").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let listed: Vec<_> = rows
            .map(|row| row.split('`').next().unwrap().to_owned())
            .collect();
        let once: BTreeSet<_> = listed.iter().cloned().collect();
        assert_eq!(once.len(), listed.len());
        let planned: BTreeSet<_> = ROUTES.iter().map(row).collect();
        assert_eq!(once, planned);
    }

    #[test]
    fn what_is_served_is_not_planned() {
        let planned: BTreeSet<_> = ROUTES.iter().map(row).collect();
        let served = intents::ROUTES.iter().map(row);
        let served = served.chain(intents::events::ROUTES.iter().map(row));
        let served = served.chain(intents::charts::ROUTES.iter().map(row));
        for row in served {
            assert!(!planned.contains(&row), "{row}");
        }
        let router = Router::default().with(&Arc::new(()), &ROUTES).unwrap();
        assert!(router.find(&Method::POST, "/execute").is_some());
        assert!(
            router
                .find(&Method::GET, "/app-fees/0x12/balances")
                .is_some()
        );
        assert!(router.find(&Method::GET, "/execute").is_none());
        assert_eq!(router.allowed("/execute"), "POST");
        assert_eq!(router.allowed("/prices/rates"), "GET, HEAD");
        assert_eq!(router.allowed("/nope"), "");
    }
}
