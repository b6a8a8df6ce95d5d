//! Authorization: every request needs the token. If none is set, clients on this machine may use
//! `/check`, and no client may see state.

use hyper::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN};
use hyper::{Request, StatusCode};

use super::check::parameter;
use crate::config::Settings;

type Refusal = (StatusCode, &'static str);

pub(super) fn check<B>(request: &Request<B>, settings: &Settings) -> Result<(), Refusal> {
    let header = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
    // A page of another site or port could make a browser send checks, and so charge any tag. A
    // link to the daemon's page is allowed.
    let mut elsewhere = matches!(header("sec-fetch-site"), Some(b"cross-site" | b"same-site"));
    // Older browsers send only Origin, at least with POST.
    elsewhere |= header(ORIGIN.as_str()).is_some_and(|origin| {
        let host = header(HOST.as_str()).unwrap_or_default();
        !origin.ends_with(&[b"//", host].concat())
    });
    let is_link = header("sec-fetch-dest") == Some(b"document") && request.uri().path() == "/";
    if elsewhere && !is_link {
        return Err((StatusCode::FORBIDDEN, "pages of other sites may not use this daemon"));
    }
    match settings.token {
        // The socket is a loopback one. Other host names are refused, because anybody can make a
        // name resolve to a loopback address (DNS rebinding).
        None if !header(HOST.as_str()).is_none_or(is_local) => Err((
            StatusCode::FORBIDDEN,
            "Host must be localhost or a loopback address, unless daemon.token is set",
        )),
        None if request.uri().path() != "/check" => {
            Err((StatusCode::FORBIDDEN, "only for clients with a token: set daemon.token"))
        }
        None => Ok(()),
        Some(_) => {
            let bearer = header(AUTHORIZATION.as_str()).and_then(|v| v.strip_prefix(b"Bearer "));
            // A browser cannot send a header when it loads a page or its events.
            let query = parameter(request.uri().query().unwrap_or(""), "token");
            let given = bearer.map(<[u8]>::to_vec).or(query);
            match given.is_some_and(|given| settings.is_token(&given)) {
                true => Ok(()),
                false => Err((
                    StatusCode::UNAUTHORIZED,
                    "the token is missing or wrong: send Authorization: Bearer TOKEN, or ?token=TOKEN",
                )),
            }
        }
    }
}

fn is_local(host: &[u8]) -> bool {
    let Ok(host) = str::from_utf8(host) else { return false };
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    };
    let address = name.parse::<std::net::IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(headers: &[(&str, &str)], path: &str, token: Option<&str>) -> bool {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let settings = Settings { token: token.map(Into::into), ..Settings::defaults() };
        check(&request.body(()).unwrap(), &settings).is_ok()
    }

    const CHECK: &str = "/check?tag=x";
    const TOKEN: &str = "0123456789abcdef";

    #[test]
    fn only_checks_of_this_machine_are_allowed_without_a_token() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:7380", "127.9.9.9", "[::1]:80"] {
            assert!(is_allowed(&[("host", host)], CHECK, None), "{host}");
        }
        for host in ["example.com", "localhost.example.com", "10.0.0.1", "[fd00::1]:80", ""] {
            assert!(!is_allowed(&[("host", host)], CHECK, None), "{host}");
        }
        for path in ["/", "/metrics", "/events", "/other"] {
            assert!(!is_allowed(&[("host", "localhost")], path, None), "{path}");
        }
    }

    #[test]
    fn requests_of_other_sites_are_refused() {
        for token in [None, Some(TOKEN)] {
            let bearer = ("authorization", "Bearer 0123456789abcdef");
            let host = ("host", "localhost:80");
            for site in ["cross-site", "same-site"] {
                for dest in ["empty", "document"] {
                    let from = [bearer, host, ("sec-fetch-site", site), ("sec-fetch-dest", dest)];
                    assert!(!is_allowed(&from, CHECK, token));
                }
            }
            assert!(is_allowed(&[bearer, host, ("sec-fetch-site", "same-origin")], CHECK, token));
            let from = |origin| is_allowed(&[bearer, host, ("origin", origin)], CHECK, token);
            assert!(from("http://localhost:80"));
            for origin in
                ["http://example.com", "http://localhost:81", "http://xlocalhost:80", "null"]
            {
                assert!(!from(origin), "{origin}");
            }
        }
        let link = |dest, path| {
            let site = ("sec-fetch-site", "cross-site");
            is_allowed(&[site, ("sec-fetch-dest", dest)], path, Some(TOKEN))
        };
        assert!(link("document", "/?token=0123456789abcdef"));
        assert!(!link("iframe", "/?token=0123456789abcdef"));
        assert!(!link("empty", "/events?token=0123456789abcdef"));
    }

    #[test]
    fn every_request_needs_the_token_if_one_is_set() {
        let token = Some(TOKEN);
        let with = |value| is_allowed(&[("authorization", value)], "/", token);
        assert!(with("Bearer 0123456789abcdef"));
        for wrong in ["Bearer 0123456789abcdeg", "Bearer 0123456789abcde", "Bearer ", "Basic x", ""]
        {
            assert!(!with(wrong), "{wrong}");
        }
        assert!(is_allowed(&[("host", "example.com")], "/?token=0123456789abcdef", token));
        assert!(!is_allowed(&[("host", "localhost")], "/?token=0123456789abcdeg", token));
        assert!(!is_allowed(&[("host", "localhost")], "/", token));
        assert!(!is_allowed(&[("host", "localhost")], CHECK, token));
    }
}
