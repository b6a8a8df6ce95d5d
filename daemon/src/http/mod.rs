//! HTTP: metrics, health, checks, and a page for browsers.

mod access;
mod body;
mod check;
mod metrics;
mod timeout_stream;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioTimer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};
use tracing::debug;

use crate::daemon::Daemon;
use crate::limit::{Limit, Slot};
use body::{Body, events};
use timeout_stream::TimeoutStream;

/// The most open streams of `/events`. Each uses a connection.
const MAX_EVENT_STREAMS: usize = 32;
/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest head of a request, and the most unsent bytes of a response.
const MAX_BUFFER: usize = 64 * 1024;
const PAGE: &str = include_str!("page.html");
/// The page loads nothing from other origins.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Accepts and serves connections until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, daemon: Arc<Daemon>) {
    let limit = Limit::new(daemon.limits.http);
    let events = Arc::new(Semaphore::new(MAX_EVENT_STREAMS.min(daemon.limits.http / 2)));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let stream = match listener.accept().await {
            // Without a token, other machines are refused, even if a socket from systemd accepts
            // them.
            Ok((_, peer)) if daemon.settings.token.is_none() && !is_loopback(peer) => continue,
            Ok((stream, _)) => stream,
            Err(error) => {
                debug!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (slot, closed) = limit.enter().await;
        let (daemon, events) = (Arc::clone(&daemon), Arc::clone(&events));
        connections.spawn_local(async move {
            tokio::select! {
                biased;
                () = serve_connection(stream, slot, &daemon, events) => {}
                _ = closed => daemon.state.counts.closed_idle.add(1),
            }
        });
    }
}

async fn serve_connection(
    stream: TcpStream,
    slot: Slot,
    daemon: &Arc<Daemon>,
    events: Arc<Semaphore>,
) {
    let slot = Rc::new(slot);
    let stream = TimeoutStream::new(stream, Rc::clone(&slot), daemon);
    let client = Rc::new(Client { daemon: Arc::clone(daemon), slot, events });
    let service = service_fn(move |request| {
        let client = Rc::clone(&client);
        async move { Ok::<_, Infallible>(client.answer(&request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_BUFFER)
        .serve_connection(stream, service);
    if let Err(error) = served.await {
        debug!(%error, "an HTTP connection ended");
    }
}

/// Shared by the requests of one connection.
struct Client {
    daemon: Arc<Daemon>,
    slot: Rc<Slot>,
    events: Arc<Semaphore>,
}

fn is_loopback(peer: SocketAddr) -> bool {
    peer.ip().to_canonical().is_loopback()
}

impl Client {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        let daemon = &self.daemon;
        daemon.state.counts.http_requests.add(1);
        let path = request.uri().path();
        if path == "/healthz" {
            return text(StatusCode::OK, "text/plain", "ok\n".into());
        }
        if let Err((status, message)) = access::check(request, &daemon.settings) {
            return text(status, "text/plain", format!("{message}\n"));
        }
        if daemon.settings.token.is_some() {
            self.slot.establish();
        }
        let is_check = path == "/check" && request.method() == Method::POST;
        if request.method() != Method::GET && request.method() != Method::HEAD && !is_check {
            let message = "the method must be GET or HEAD\n".into();
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", message);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match path {
            "/" => {
                let mut response = text(StatusCode::OK, "text/html; charset=utf-8", PAGE.into());
                let policy = HeaderValue::from_static(POLICY);
                response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
                response
            }
            "/metrics" => {
                let daemon = Arc::clone(daemon);
                // Counting buckets reads the whole table.
                match spawn_blocking(move || metrics::text(&daemon)).await {
                    Ok(metrics) => text(StatusCode::OK, metrics::TYPE, metrics),
                    Err(_) => {
                        text(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "failed\n".into())
                    }
                }
            }
            "/check" => {
                let start = Instant::now();
                let query = request.uri().query().unwrap_or("");
                let (status, json, fields) = check::answer(query, daemon);
                daemon.state.times.http.add(start.elapsed(), 1);
                let mut response = text(status, "application/json", format!("{json}\n"));
                response.headers_mut().extend(fields);
                response
            }
            "/events" => match Arc::clone(&self.events).try_acquire_owned() {
                Ok(permit) => respond(StatusCode::OK, "text/event-stream", events(daemon, permit)),
                Err(_) => {
                    let message = "too many streams of /events are open; close another page\n";
                    text(StatusCode::SERVICE_UNAVAILABLE, "text/plain", message.into())
                }
            },
            _ => {
                let message =
                    "not found; the paths are /, /metrics, /healthz, /check and /events\n";
                text(StatusCode::NOT_FOUND, "text/plain", message.into())
            }
        }
    }
}

fn text(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    respond(status, kind, Body::of(text))
}

fn respond(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // The address of the page may contain the token.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
