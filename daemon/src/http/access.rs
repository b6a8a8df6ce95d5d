//! Who may look: whoever has the token, or, without one, whoever is on this machine.

use hyper::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN};
use hyper::{Request, StatusCode};

use super::check::parameter;

type Refusal = (StatusCode, &'static str);

pub(super) fn check<B>(request: &Request<B>, token: Option<&str>) -> Result<(), Refusal> {
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
    match token {
        // The socket is a loopback one. A name that somebody let point here is not believed.
        None => match header(HOST.as_str()).is_none_or(is_local) {
            true => Ok(()),
            false => Err((
                StatusCode::FORBIDDEN,
                "ask by a loopback address or localhost, or set a token",
            )),
        },
        Some(token) => {
            let bearer = header(AUTHORIZATION.as_str()).and_then(|v| v.strip_prefix(b"Bearer "));
            // A browser cannot send it for a page or its events in any other way.
            let query = parameter(request.uri().query().unwrap_or(""), "token");
            let given = bearer.map(<[u8]>::to_vec).or(query);
            match given.is_some_and(|given| equal(&given, token.as_bytes())) {
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

/// Takes as long wherever they differ.
fn equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(headers: &[(&str, &str)], path: &str, token: Option<&str>) -> bool {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check(&request.body(()).unwrap(), token).is_ok()
    }

    #[test]
    fn only_this_machine_without_a_token() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:7380", "127.9.9.9", "[::1]:80"] {
            assert!(asked(&[("host", host)], "/", None), "{host}");
        }
        for host in ["example.com", "localhost.example.com", "10.0.0.1", "[fd00::1]:80", ""] {
            assert!(!asked(&[("host", host)], "/", None), "{host}");
        }
        for site in ["cross-site", "same-site"] {
            let asks = |dest, path| {
                let host = ("host", "localhost");
                asked(&[host, ("sec-fetch-site", site), ("sec-fetch-dest", dest)], path, None)
            };
            assert!(!asks("empty", "/check?tag=x") && !asks("document", "/check?tag=x"));
            assert!(!asks("iframe", "/") && !asks("empty", "/") && !asks("empty", "/events"));
            assert!(asks("document", "/"), "a link");
        }
        assert!(asked(&[("host", "localhost"), ("sec-fetch-site", "same-origin")], "/", None));
        let from = |origin| asked(&[("host", "localhost:80"), ("origin", origin)], "/check", None);
        assert!(from("http://localhost:80"));
        for origin in ["http://example.com", "http://localhost:81", "http://xlocalhost:80", "null"]
        {
            assert!(!from(origin), "{origin}");
        }
    }

    #[test]
    fn a_token_wherever_one_is_set() {
        let token = Some("0123456789abcdef");
        let with = |value| asked(&[("authorization", value)], "/", token);
        assert!(with("Bearer 0123456789abcdef"));
        for wrong in ["Bearer 0123456789abcdeg", "Bearer 0123456789abcde", "Bearer ", "Basic x", ""]
        {
            assert!(!with(wrong), "{wrong}");
        }
        assert!(asked(&[("host", "example.com")], "/?token=0123456789abcdef", token));
        assert!(!asked(&[("host", "localhost")], "/?token=0123456789abcdeg", token));
        assert!(!asked(&[("host", "localhost")], "/", token));
    }
}
