//! When the daemon dies: after some time, or over some call to a chain.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use devnet::proxy::{Lie, LyingProxy};
use tokio::{sync::Notify, time::timeout};

use crate::crash::{Dice, victim::kill};

/// Milliseconds that a life lasts at most: an order's whole way, and its finality, take less.
const LONGEST: usize = 4_000;
/// The calls that the way from quote to fill is made of; the first stands for any.
const METHODS: [&str; 8] = [
    "",
    "eth_sendRawTransaction",
    "eth_sendRawTransaction",
    "eth_getTransactionReceipt",
    "eth_getTransactionCount",
    "eth_estimateGas",
    "eth_getLogs",
    "eth_getTransactionByHash",
];

/// When the daemon dies: after some milliseconds, or over a call if that comes first.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// It is dead after so many milliseconds at the latest.
    after: u64,
    over: Option<Trigger>,
}

/// The call that it dies over.
#[derive(Clone, Copy, Debug)]
struct Trigger {
    method: &'static str,
    /// One is the first of a life.
    nth: usize,
    /// Whether the call still reaches the chain.
    reaches: bool,
}

impl Moment {
    /// Half of them by the clock.
    pub fn choose(dice: &Dice) -> Self {
        let after = u64::try_from(dice.below(LONGEST)).unwrap();
        if dice.below(2) == 0 {
            return Self { after, over: None };
        }
        let method = METHODS[dice.below(METHODS.len())];
        let most = match method {
            "" => 200,
            "eth_sendRawTransaction" => 4,
            _ => 20,
        };
        Self {
            after: u64::try_from(LONGEST).unwrap(),
            over: Some(Trigger {
                method,
                nth: 1 + dice.below(most),
                reaches: dice.below(2) == 0,
            }),
        }
    }

    /// Lays the trap for process `pid`, if there is one.
    pub fn arm(self, pid: u32, proxies: &[LyingProxy]) -> Trap {
        let sprung = Arc::new(Notify::new());
        let trap = Trap {
            after: Duration::from_millis(self.after),
            pid,
            sprung: sprung.clone(),
        };
        let Some(over) = self.over else {
            return trap;
        };
        let seen = Arc::new(AtomicUsize::new(0));
        for proxy in proxies {
            let (seen, sprung) = (seen.clone(), sprung.clone());
            proxy.lie(Box::new(move |call| {
                if !over.method.is_empty() && call.method != over.method {
                    return None;
                }
                let nth = 1 + seen.fetch_add(1, Ordering::SeqCst);
                if nth == over.nth {
                    kill(pid);
                    sprung.notify_one();
                }
                (nth >= over.nth && !over.reaches).then_some(Lie::Drop)
            }));
        }
        trap
    }
}

/// What kills in this life.
pub struct Trap {
    after: Duration,
    pid: u32,
    sprung: Arc<Notify>,
}

impl Trap {
    /// Waits until it is time, and kills; whether it was over a call.
    pub async fn strike(self) -> bool {
        let sprung = timeout(self.after, self.sprung.notified()).await.is_ok();
        if !sprung {
            kill(self.pid);
        }
        sprung
    }
}
