//! Route tables and their lookup. A table is static data; nothing here knows what a route does.

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

use super::{ApiError, Request, Response, error};

/// Answers a request of one route.
pub type Handler<S> = fn(Arc<S>, Request) -> BoxFuture<'static, Result<Response, ApiError>>;

/// One row of an API's table.
pub struct Route<S> {
    pub method: Method,
    /// As matchit writes it: `/chains/v1`, `/requests/{id}`, `/documentation/{*asset}`.
    pub path: &'static str,
    pub access: Access,
    pub handler: Handler<S>,
    /// `None` keeps a route out of the API's description.
    pub docs: Option<Docs>,
}

/// What the gate asks of a caller.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Nothing, and it counts nothing.
    Open,
    /// No key; counts for callers without one.
    Counted,
    /// As [`Access::Counted`]; the key may also come in the query, as `apiKey`, and an unknown one is
    /// refused: pages cannot give a WebSocket headers, and one that stays should not go unnoticed.
    Socket,
    /// A key when there are keys; counts for callers without one where a limit lets them in.
    Protected,
    /// As [`Access::Counted`], under terms of the route's own.
    Keyed(Terms),
}

impl Access {
    /// How an unknown path is treated: the paths that the network's clients know as free stay so, all
    /// others count.
    pub fn unrouted(path: &str) -> Self {
        let free = path == "/" || path.starts_with("/documentation") || path.starts_with("/lives");
        if free { Self::Open } else { Self::Counted }
    }
}

/// What a route asks of keys.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// What a key must open: 403 without it. A route with one refuses keys that are not known (401)
    /// instead of ignoring them.
    pub scope: Option<&'static str>,
    /// What it counts in; see [`Plan`](super::auth::Plan).
    pub bucket: &'static str,
    /// Nobody gets in without a known key: 401.
    pub required: bool,
}

/// What the API's description says about a route.
pub struct Docs {
    /// A line.
    pub summary: &'static str,
    /// Some sentences: what the route does, for whom, and what it does not do.
    pub text: &'static str,
    /// One of the surface's ([`About`](super::About)).
    pub group: &'static str,
    pub query: Query,
    pub body: Option<Shape>,
    pub answer: Shape,
    /// What it answers besides 200 and the surface's errors, or instead of one of those.
    pub also: &'static [error::Described],
}

/// What a route reads of the query: the fields of the type that it is read as.
#[derive(Clone, Copy)]
pub struct Query(pub(super) fn() -> Vec<Parameter>);

impl Query {
    /// Nothing.
    pub const NONE: Self = Self(Vec::new);

    pub const fn of<T: IntoParams>() -> Self {
        Self(|| T::into_params(|| Some(ParameterIn::Query)))
    }
}

/// Named schemas, as utoipa collects them.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// The schema of a type, taken only when the description is written.
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

/// What a path's `{name}`s stood for, in their order.
pub type Params = Vec<(String, String)>;

type Call = Arc<dyn Fn(Request) -> BoxFuture<'static, Result<Response, ApiError>> + Send + Sync>;

/// A route bound to its state.
pub struct Endpoint {
    pub path: &'static str,
    pub access: Access,
    pub call: Call,
}

/// A described route, for the API's description.
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

/// The tables of one listener.
#[derive(Default)]
pub struct Router {
    methods: HashMap<Method, matchit::Router<Arc<Endpoint>>>,
    described: Vec<Described>,
}

/// Tables that cannot be those of one listener.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// Two rows want the same requests.
    #[error("route {method} {path}: {cause}")]
    Taken {
        method: Method,
        path: &'static str,
        cause: matchit::InsertError,
    },
    /// One of them would be described as the other.
    #[error("two types are described as {0}")]
    Namesakes(String),
}

impl Router {
    /// With the rows of one more table, answered over `state`.
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

    /// With the descriptions of one more table, none of whose rows is answered.
    #[must_use]
    pub fn describing<S: 'static>(mut self, routes: &'static [Route<S>]) -> Self {
        self.described
            .extend(routes.iter().filter_map(Described::of));
        self
    }

    /// The endpoint of a method and path with the path's parameters, undecoded. HEAD is answered by
    /// GET's.
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

    /// The methods that a path is known with, as the header `allow` lists them; empty for an unknown path.
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

    /// The rows that have a description, in the order of the tables.
    pub fn described(&self) -> &[Described] {
        &self.described
    }
}
