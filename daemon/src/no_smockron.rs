//! Stands for `smockron/` where the feature is off: no settings have an address for it
//! (`config.rs`).

use std::sync::Arc;

use tokio::net::TcpListener;

use crate::daemon::Daemon;

pub(crate) async fn serve(_accounting: TcpListener, _control: TcpListener, _daemon: Arc<Daemon>) {}
