//! Authorization: every request needs the token. If none is set, clients on this machine may ask for
//! decisions, and no client may see state.

use hyper::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN};
use hyper::{Request, StatusCode};

use super::check::parameter;
use crate::config::Settings;

type Refusal = (StatusCode, &'static str);

pub(super) fn check<B>(request: &Request<B>, settings: &Settings) -> Result<(), Refusal> {
    let header = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
    // A page of another site, or of another port here, that makes a browser ask: it could charge
    // whom it likes. A link to the page is fine.
    let mut elsewhere = matches!(header("sec-fetch-site"), Some(b"cross-site" | b"same-site"));
    // Older browsers say it so, at least when they post.
    elsewhere |= header(ORIGIN.as_str()).is_some_and(|origin| {
        let host = header(HOST.as_str()).unwrap_or_default();
        !origin.ends_with(&[b"//", host].concat())
    });
    let is_link = header("sec-fetch-dest") == Some(b"document") && request.uri().path() == "/";
    if elsewhere && !is_link {
        return Err((StatusCode::FORBIDDEN, "not for pages of other sites"));
    }
    match settings.token {
        // The socket is a loopback one. A name that somebody let point here is not believed.
        None if !header(HOST.as_str()).is_none_or(is_local) => {
            Err((StatusCode::FORBIDDEN, "ask by a loopback address or localhost, or set a token"))
        }
        None if request.uri().path() != "/check" => {
            Err((StatusCode::FORBIDDEN, "only for clients with a token: set daemon.token"))
        }
        None => Ok(()),
        Some(_) => {
            let bearer = header(AUTHORIZATION.as_str()).and_then(|v| v.strip_prefix(b"Bearer "));
            // A browser cannot send it for a page or its events in any other way.
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

    fn asked(headers: &[(&str, &str)], path: &str, token: Option<&str>) -> bool {
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
    fn only_this_machine_without_a_token() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:7380", "127.9.9.9", "[::1]:80"] {
            assert!(asked(&[("host", host)], CHECK, None), "{host}");
        }
        for host in ["example.com", "localhost.example.com", "10.0.0.1", "[fd00::1]:80", ""] {
            assert!(!asked(&[("host", host)], CHECK, None), "{host}");
        }
        for path in ["/", "/metrics", "/events", "/other"] {
            assert!(!asked(&[("host", "localhost")], path, None), "{path}");
        }
    }

    #[test]
    fn pages_of_other_sites_cannot_ask() {
        for token in [None, Some(TOKEN)] {
            let bearer = ("authorization", "Bearer 0123456789abcdef");
            let host = ("host", "localhost:80");
            for site in ["cross-site", "same-site"] {
                for dest in ["empty", "document"] {
                    let from = [bearer, host, ("sec-fetch-site", site), ("sec-fetch-dest", dest)];
                    assert!(!asked(&from, CHECK, token));
                }
            }
            assert!(asked(&[bearer, host, ("sec-fetch-site", "same-origin")], CHECK, token));
            let from = |origin| asked(&[bearer, host, ("origin", origin)], CHECK, token);
            assert!(from("http://localhost:80"));
            for origin in
                ["http://example.com", "http://localhost:81", "http://xlocalhost:80", "null"]
            {
                assert!(!from(origin), "{origin}");
            }
        }
        let link = |dest, path| {
            let site = ("sec-fetch-site", "cross-site");
            asked(&[site, ("sec-fetch-dest", dest)], path, Some(TOKEN))
        };
        assert!(link("document", "/?token=0123456789abcdef"));
        assert!(!link("iframe", "/?token=0123456789abcdef"));
        assert!(!link("empty", "/events?token=0123456789abcdef"));
    }

    #[test]
    fn a_token_wherever_one_is_set() {
        let token = Some(TOKEN);
        let with = |value| asked(&[("authorization", value)], "/", token);
        assert!(with("Bearer 0123456789abcdef"));
        for wrong in ["Bearer 0123456789abcdeg", "Bearer 0123456789abcde", "Bearer ", "Basic x", ""]
        {
            assert!(!with(wrong), "{wrong}");
        }
        assert!(asked(&[("host", "example.com")], "/?token=0123456789abcdef", token));
        assert!(!asked(&[("host", "localhost")], "/?token=0123456789abcdeg", token));
        assert!(!asked(&[("host", "localhost")], "/", token));
        assert!(!asked(&[("host", "localhost")], CHECK, token));
    }
}
