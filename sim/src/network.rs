//! The network between the nodes: losses, delays and partitions. It also counts what is sent. It
//! does not inspect datagrams.

use rand::RngExt;

use crate::{MS, Ns, Random, random};

/// The conditions of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    /// The range of delays. Each link has a constant delay in it.
    pub delay: (Ns, Ns),
    /// The greatest random addition to the delay of a datagram.
    pub jitter: Ns,
    /// The share of datagrams lost, independently of each other.
    pub loss: f64,
    /// Bursts in which a link loses everything.
    pub bursts: Option<Bursts>,
    /// The share of datagrams that arrive twice.
    pub duplicates: f64,
    /// The share of datagrams with an additional delay, and the longest such delay.
    pub delayed: (f64, Ns),
}

/// Bursts of losses: at times, a link loses everything for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// The mean time between two bursts of a link.
    pub every: Ns,
    /// The longest burst; the mean is half of it.
    pub longest: Ns,
}

impl Default for Conditions {
    /// A data centre without failures.
    fn default() -> Conditions {
        Conditions {
            delay: (MS / 4, MS),
            jitter: MS / 4,
            loss: 0.0,
            bursts: None,
            duplicates: 0.0,
            delayed: (0.0, 0),
        }
    }
}

impl Conditions {
    /// Returns the longest time between sending and arrival.
    pub fn longest_delay(&self) -> Ns {
        let delayed = if self.delayed.0 > 0.0 { self.delayed.1 } else { 0 };
        self.delay.1 + self.jitter + delayed
    }

    /// Returns true if datagrams may be lost.
    pub fn loses(&self) -> bool {
        self.loss > 0.0 || self.bursts.is_some()
    }
}

/// The numbers of datagrams sent and lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Datagrams sent, counted once per receiver, or once for a whole group.
    pub packets: u64,
    /// Bytes of these datagrams.
    pub bytes: u64,
    /// Copies that did not arrive.
    pub lost: u64,
}

/// The network of one run.
pub struct Network {
    conditions: Conditions,
    nodes: usize,
    random: Random,
    /// The delay of each link in nanoseconds.
    links: Vec<u32>,
    link_states: Vec<LinkState>,
    sides: Option<Vec<u8>>,
    /// The counts since the clients started.
    pub counts: Counts,
}

/// Whether a link loses everything, and until when that does not change.
#[derive(Clone, Copy)]
struct LinkState {
    is_down: bool,
    until: Ns,
}

impl Network {
    /// Creates a network of this many nodes.
    pub fn new(conditions: &Conditions, nodes: usize, seed: u64) -> Network {
        let mut random = random(seed, 1);
        let (least, most) = conditions.delay;
        let links = (0..nodes * nodes).map(|_| random.random_range(least..=most) as u32).collect();
        let link_states = match conditions.bursts {
            None => Vec::new(),
            Some(_) => vec![LinkState { is_down: true, until: 0 }; nodes * nodes],
        };
        let conditions = conditions.clone();
        Network {
            conditions,
            nodes,
            random,
            links,
            link_states,
            sides: None,
            counts: Counts::default(),
        }
    }

    /// Divides the nodes into sides; `None` heals the network.
    pub fn divide(&mut self, sides: Option<Vec<u8>>) {
        self.sides = sides;
    }

    /// Counts datagrams that a node sends.
    pub fn count(&mut self, packets: u64, len: usize) {
        self.counts.packets += packets;
        self.counts.bytes += packets * len as u64;
    }

    /// Returns the arrival times of a datagram, which may be none, one or two.
    pub fn send(&mut self, now: Ns, from: usize, to: usize) -> [Option<Ns>; 2] {
        if self.is_cut(from, to) || self.is_link_down(now, from, to) {
            self.counts.lost += 1;
            return [None, None];
        }
        let first = self.copy(now, from, to);
        let again =
            self.conditions.duplicates > 0.0 && self.random.random_bool(self.conditions.duplicates);
        [first, if again { self.copy(now, from, to) } else { None }]
    }

    fn copy(&mut self, now: Ns, from: usize, to: usize) -> Option<Ns> {
        let Conditions { loss, jitter, delayed, .. } = self.conditions;
        if loss > 0.0 && self.random.random_bool(loss) {
            self.counts.lost += 1;
            return None;
        }
        let mut at = now + Ns::from(self.links[from * self.nodes + to]);
        if jitter > 0 {
            at += self.random.random_range(0..=jitter);
        }
        if delayed.0 > 0.0 && self.random.random_bool(delayed.0) {
            at += self.random.random_range(0..=delayed.1);
        }
        Some(at)
    }

    fn is_cut(&self, from: usize, to: usize) -> bool {
        self.sides.as_ref().is_some_and(|sides| sides[from] != sides[to])
    }

    fn is_link_down(&mut self, now: Ns, from: usize, to: usize) -> bool {
        let Some(Bursts { every, longest }) = self.conditions.bursts else { return false };
        let link = &mut self.link_states[from * self.nodes + to];
        while link.until <= now {
            link.is_down = !link.is_down;
            let most = if link.is_down { longest } else { 2 * every };
            link.until += self.random.random_range(1..=most);
        }
        link.is_down
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SEC;

    fn share_lost(conditions: &Conditions) -> f64 {
        let mut network = Network::new(conditions, 4, 7);
        let sent = 200_000_u64;
        let arrived = (0..sent)
            .filter(|i| network.send(i * MS / 10, 1, 2).iter().any(Option::is_some))
            .count();
        1.0 - arrived as f64 / sent as f64
    }

    #[test]
    fn the_network_loses_the_configured_share() {
        assert_eq!(share_lost(&Conditions::default()), 0.0);
        let loss = share_lost(&Conditions { loss: 0.1, ..Conditions::default() });
        assert!((loss - 0.1).abs() < 0.005, "{loss}");
        let bursts = Some(Bursts { every: 90 * MS, longest: 20 * MS });
        let loss = share_lost(&Conditions { bursts, ..Conditions::default() });
        assert!((loss - 0.1).abs() < 0.03, "{loss}");
    }

    #[test]
    fn datagrams_have_the_configured_delays_and_duplicates() {
        let conditions = Conditions {
            delay: (5 * MS, 9 * MS),
            duplicates: 0.5,
            delayed: (0.2, 50 * MS),
            ..Conditions::default()
        };
        let mut network = Network::new(&conditions, 3, 7);
        let mut twice = 0;
        for i in 0..10_000 {
            let arrivals = network.send(i * SEC, 0, 1);
            for at in arrivals.iter().flatten() {
                let delay = at - i * SEC;
                assert!((5 * MS..=conditions.longest_delay()).contains(&delay));
            }
            twice += u32::from(arrivals.iter().all(Option::is_some));
        }
        assert!((4500..5500).contains(&twice), "{twice}");
    }

    #[test]
    fn a_partition_separates_only_different_sides() {
        let mut network = Network::new(&Conditions::default(), 3, 7);
        network.divide(Some(vec![0, 0, 1]));
        assert!(network.send(0, 0, 1)[0].is_some());
        assert_eq!(network.send(0, 0, 2), [None, None]);
        network.divide(None);
        assert!(network.send(0, 0, 2)[0].is_some());
    }
}
