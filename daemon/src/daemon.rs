//! The state that all parts of the daemon share: settings, the current throttle, counts.

use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

use dthrottle::{Config, Result, Throttle};
use tracing::{info, warn};

use crate::config::{Settings, read_file};
use crate::descriptors::Limits;
use crate::resp::CallRules;
use crate::state::State;

pub(crate) struct Daemon {
    pub(crate) settings: Settings,
    pub(crate) limits: Limits,
    pub(crate) state: State,
    pub(crate) call_rules: CallRules,
    /// The configuration file, which a reload reads.
    file: Option<PathBuf>,
    throttle: RwLock<Throttle>,
}

impl Daemon {
    pub(crate) fn new(
        settings: Settings,
        limits: Limits,
        file: Option<PathBuf>,
        throttle: Throttle,
    ) -> Result<Daemon> {
        Ok(Daemon {
            settings,
            limits,
            state: State::default(),
            call_rules: CallRules::new()?,
            file,
            throttle: RwLock::new(throttle),
        })
    }

    /// Calls `work` with the current throttle. Do not keep a clone, because a reload replaces it.
    pub(crate) fn with_throttle<T>(&self, work: impl FnOnce(&Throttle) -> T) -> T {
        work(&self.throttle.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The numbers of checks allowed and refused, including those with rules given in calls.
    pub(crate) fn decisions(&self) -> (u64, u64) {
        let (allowed, refused) = self.with_throttle(Throttle::decisions);
        let (call_allowed, call_refused) = self.call_rules.decisions();
        (allowed + call_allowed, refused + call_refused)
    }

    /// Reads the rules again. Keeps the old rules if the file is invalid or has no rules.
    pub(crate) fn reload(&self) {
        let Some(file) = &self.file else {
            return info!("nothing to reload: the daemon was started without a configuration file");
        };
        let reloaded = read_file(file).and_then(|text| {
            let (mut config, settings) = Settings::from_toml(&text)?;
            if self.with_throttle(has_no_rules) {
                self.settings.allow_no_rules(&mut config);
            }
            if settings != self.settings {
                warn!(
                    "changes of [daemon] take effect at the next start, unless flags replace them"
                );
            }
            self.apply(config)
        });
        match reloaded {
            Ok(()) => {
                self.state.counts.reloads.add(1);
                info!("reloaded the rules from {}", file.display());
            }
            Err(error) => {
                self.state.counts.failed_reloads.add(1);
                warn!("{}: {error}; the old rules stay in force", file.display());
            }
        }
    }

    fn apply(&self, config: Config) -> Result<()> {
        let old = self.with_throttle(Throttle::clone);
        let new = old.reload(config)?;
        *self.throttle.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// Leaves the cluster.
    pub(crate) fn close(&self) {
        self.with_throttle(Throttle::close);
    }
}

pub(crate) fn has_no_rules(throttle: &Throttle) -> bool {
    throttle.domains().iter().all(|domain| domain.rules().is_empty())
}
