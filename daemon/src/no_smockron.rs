//! Replaces `smockron/` if the feature is off. It is never called, because `config.rs` refuses an
//! address for it.

use std::sync::Arc;

use tokio::net::TcpListener;

use crate::daemon::Daemon;

pub(crate) async fn serve(_accounting: TcpListener, _control: TcpListener, _daemon: Arc<Daemon>) {}
