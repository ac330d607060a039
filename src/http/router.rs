//! Route tables and their lookup. A table is static data; this module does not know what a route does.

use std::{collections::HashMap, sync::Arc};

use futures::future::BoxFuture;
use hyper::Method;
use utoipa::{
    IntoParams, ToSchema,
    openapi::{
        RefOr, Schema,
        path::{Parameter, ParameterIn},
        schema::{ObjectBuilder, Type},
    },
};

use super::{ApiError, Request, Response, error, meters::Meters};

/// The function that answers the requests of a route.
pub type Handler<S> = fn(Arc<S>, Request) -> BoxFuture<'static, Result<Response, ApiError>>;

/// One row of a route table.
pub struct Route<S> {
    pub method: Method,
    /// The path in matchit's syntax: `/chains/v1`, `/requests/{id}`, `/documentation/{*asset}`.
    pub path: &'static str,
    pub access: Access,
    pub handler: Handler<S>,
    /// `None` leaves the route out of the API description.
    pub docs: Option<Docs>,
}

/// What the gate requires of a caller.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// No key, no limit.
    Open,
    /// No key; counts in the limit of callers without one.
    Counted,
    /// As [`Access::Counted`]. The key may also be the query parameter `apiKey`, because browser pages cannot set
    /// headers of a WebSocket. The gate refuses an unknown key, since a long-lived connection would hide the mistake.
    Socket,
    /// A key, if the listener has keys; without one the request counts in the keyless limit, where there is one.
    Protected,
    /// As [`Access::Counted`], with the route's own terms.
    Keyed(Terms),
}

impl Access {
    /// The access of an unknown path: paths that the network's clients know as free are not counted, all others are.
    pub fn unrouted(path: &str) -> Self {
        let free = path == "/" || path.starts_with("/documentation") || path.starts_with("/lives");
        if free { Self::Open } else { Self::Counted }
    }
}

/// What a route requires of keys.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The scope that a key must have: 403 without it. A route with a scope refuses unknown keys (401); other routes
    /// ignore them.
    pub scope: Option<&'static str>,
    /// The bucket that the route counts in; see [`Plan`](super::auth::Plan).
    pub bucket: &'static str,
    /// Whether a known key is required: 401 without one.
    pub required: bool,
}

/// The API description of a route.
pub struct Docs {
    /// One line.
    pub summary: &'static str,
    /// A few sentences: what the route does, for whom, and what it does not do.
    pub text: &'static str,
    /// One of the surface's groups ([`About`](super::About)).
    pub group: &'static str,
    pub query: Query,
    pub body: Option<Shape>,
    pub answer: Shape,
    /// Answers besides 200 and the surface's errors, or instead of one of those.
    pub also: &'static [error::Described],
}

/// The query parameters of a route: the fields of a type.
#[derive(Clone, Copy)]
pub struct Query(pub(super) fn() -> Vec<Parameter>);

impl Query {
    /// No parameters.
    pub const NONE: Self = Self(Vec::new);

    pub const fn of<T: IntoParams>() -> Self {
        Self(|| T::into_params(|| Some(ParameterIn::Query)))
    }

    /// These parameters.
    pub const fn by(parameters: fn() -> Vec<Parameter>) -> Self {
        Self(parameters)
    }
}

/// Named schemas as utoipa collects them.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// The schema of a type, computed when the API description is written.
#[derive(Clone, Copy)]
pub struct Shape {
    pub(super) schema: fn(&mut Schemas) -> RefOr<Schema>,
    pub(super) media: &'static str,
}

impl Shape {
    pub const fn of<T: ToSchema>() -> Self {
        Self {
            schema: collect::<T>,
            media: "application/json",
        }
    }

    /// A text of another media type.
    pub const fn text(media: &'static str) -> Self {
        Self {
            schema: |_| ObjectBuilder::new().schema_type(Type::String).into(),
            media,
        }
    }
}

fn collect<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    T::schemas(schemas);
    let name = T::name().to_string();
    schemas.push((name.clone(), T::schema()));
    utoipa::openapi::Ref::from_schema_name(name).into()
}

/// The values of a path's `{name}`s, in order.
pub type Params = Vec<(String, String)>;

type Call = Arc<dyn Fn(Request) -> BoxFuture<'static, Result<Response, ApiError>> + Send + Sync>;

/// A route bound to its state.
pub struct Endpoint {
    pub path: &'static str,
    pub access: Access,
    pub call: Call,
    pub(super) meters: Meters,
}

/// A route with its docs, for the API description.
pub struct Described {
    pub method: Method,
    pub path: &'static str,
    pub access: Access,
    pub docs: &'static Docs,
}

impl Described {
    fn of<S: 'static>(route: &'static Route<S>) -> Option<Self> {
        route.docs.as_ref().map(|docs| Self {
            method: route.method.clone(),
            path: route.path,
            access: route.access,
            docs,
        })
    }
}

/// The route tables of one listener.
#[derive(Default)]
pub struct Router {
    methods: HashMap<Method, matchit::Router<Arc<Endpoint>>>,
    described: Vec<Described>,
}

/// Why tables cannot be joined in one router.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// Two rows match the same requests.
    #[error("route {method} {path}: {cause}")]
    Taken {
        method: Method,
        path: &'static str,
        cause: matchit::InsertError,
    },
    /// Two types would have the same name in the description.
    #[error("two types have the name {0} in the description")]
    Namesakes(String),
}

impl Router {
    /// Adds the rows of a table, answered over `state`.
    pub fn with<S: Send + Sync + 'static>(
        mut self,
        state: &Arc<S>,
        routes: &'static [Route<S>],
    ) -> Result<Self, RouteError> {
        for route in routes {
            let state = state.clone();
            let endpoint = Endpoint {
                path: route.path,
                access: route.access,
                call: Arc::new(move |request| (route.handler)(state.clone(), request)),
                meters: Meters::default(),
            };
            self.methods
                .entry(route.method.clone())
                .or_default()
                .insert(route.path, Arc::new(endpoint))
                .map_err(|cause| RouteError::Taken {
                    method: route.method.clone(),
                    path: route.path,
                    cause,
                })?;
            self.described.extend(Described::of(route));
        }
        Ok(self)
    }

    /// Adds the docs of a table without its handlers.
    #[must_use]
    pub fn describing<S: 'static>(mut self, routes: &'static [Route<S>]) -> Self {
        self.described
            .extend(routes.iter().filter_map(Described::of));
        self
    }

    /// The endpoint of a method and path, with the path's parameters still percent-encoded. A GET route also answers
    /// HEAD.
    pub fn find(&self, method: &Method, path: &str) -> Option<(&Arc<Endpoint>, Params)> {
        let method = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        let found = self.methods.get(method)?.at(path).ok()?;
        let params = found
            .params
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Some((found.value, params))
    }

    /// The methods of a path as the header `allow` lists them; empty for an unknown path.
    pub fn allowed(&self, path: &str) -> String {
        let known = self.methods.iter();
        let known = known.filter(|(_, routes)| routes.at(path).is_ok());
        let mut names: Vec<_> = known.map(|(method, _)| method.as_str()).collect();
        if names.contains(&"GET") {
            names.push("HEAD");
        }
        names.sort_unstable();
        names.dedup();
        names.join(", ")
    }

    /// The rows with docs, in the order of the tables.
    pub fn described(&self) -> &[Described] {
        &self.described
    }
}
