//! What the operator does, in any weather.

use alloy::primitives::B256;
use tokio::select;

use crate::{
    clock,
    history::{Act, History},
    invariants::violation,
    stored,
};

impl History {
    /// Holds fills for so many seconds.
    pub async fn pause(&mut self, seconds: u64) {
        let handle = self.world.handle().clone();
        let store = self.world.store.clone();
        select! {
            biased;
            () = store.died() => {}
            paused = handle.pause("a look at the books") => {
                paused.unwrap();
                if self.held.is_none() {
                    self.held = Some(stored::fills(&self.world).await);
                }
            }
        }
        self.at(clock::seconds() + seconds, Act::Resume);
    }

    pub async fn resume(&mut self) {
        if let Some(held) = self.held.take() {
            let begun = stored::fills(&self.world).await;
            if begun != held {
                let what = format!("fills while the solver was paused: {held:?}, then {begun:?}");
                self.broken.push(violation('f', what));
            }
        }
        let handle = self.world.handle().clone();
        let store = self.world.store.clone();
        select! {
            biased;
            // What has died goes on as it was: paused.
            () = store.died() => self.at(clock::seconds() + 10, Act::Resume),
            resumed = handle.resume() => {
                resumed.unwrap();
            }
        }
    }

    /// Has everything that is parked looked at again, asks again about what is not settled, and uses up
    /// nonces that the chains wait for.
    pub async fn go_through(&mut self) {
        let store = self.world.store.clone();
        let told = select! {
            biased;
            () = store.died() => return,
            told = self.verbs() => told,
        };
        self.note(told);
    }

    /// Dismisses what is parked, and writes off what is not settled.
    pub async fn clear(&mut self) {
        let store = self.world.store.clone();
        let (mut gone, mut off) = (Vec::new(), Vec::new());
        select! {
            biased;
            () = store.died() => {}
            () = self.cleared(&mut gone, &mut off) => {}
        }
        self.note(format!(
            "the operator dismisses {gone:?}, writes off {off:?}"
        ));
        self.dismissed.extend(gone);
        self.written_off.extend(off);
    }

    /// What died meanwhile may have been done.
    async fn cleared(&self, gone: &mut Vec<B256>, off: &mut Vec<B256>) {
        let handle = self.world.handle();
        for one in handle.parked(true).await.unwrap() {
            gone.push(one.deposit);
            handle.dismiss(one.deposit).await.ok();
        }
        for one in handle.unsettled().await.unwrap() {
            off.push(one.deposit);
            if handle.write_off(one.deposit).await.is_err() {
                off.pop();
            }
        }
    }

    async fn verbs(&self) -> String {
        let handle = self.world.handle();
        let (parked, unsettled) = (handle.parked(true).await, handle.unsettled().await);
        let (parked, unsettled) = (parked.unwrap(), unsettled.unwrap());
        let mut refused = 0;
        for one in &parked {
            refused += usize::from(handle.release(one.deposit).await.is_err());
        }
        for one in &unsettled {
            refused += usize::from(handle.retry(one.deposit).await.is_err());
        }
        let mut healed = 0;
        for account in self.world.accounts() {
            // Providers that do not agree heal nothing.
            healed += account
                .heal(clock::seconds())
                .await
                .map_or(0, |gaps| gaps.len());
        }
        let (parked, unsettled) = (parked.len(), unsettled.len());
        format!("{parked} released, {unsettled} asked again, {healed} healed, {refused} refused")
    }
}
