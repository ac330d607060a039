//! What accounts hold piece by piece, as enough providers show it.

use std::collections::{HashMap, HashSet};

use super::Failover;
use crate::{
    ReadError,
    trade::{SpentBy, TradingProvider, Unspent},
    types::{Address, Bytes},
};

impl Failover {
    /// The unspent outputs of an account that a quorum shows alike; the largest first, then by their bytes.
    pub async fn unspent(&self, owner: &Address) -> Result<Vec<Unspent>, ReadError> {
        let ask = |provider: TradingProvider| async move {
            let outputs = provider.outputs()?.unspent(owner).await?.into_iter();
            // A provider that shows an output twice counts once.
            let outputs = outputs.map(|one| (one.output, one.amount, one.height));
            Ok(outputs.collect::<HashSet<_>>())
        };
        let said = self.gather("outputs", HashSet::eq, ask).await?;
        let mut shown: HashMap<(Bytes, _, u64), usize> = HashMap::new();
        for outputs in said {
            for output in outputs {
                *shown.entry(output).or_default() += 1;
            }
        }
        let agreed = shown.into_iter();
        let agreed = agreed.filter(|(_, count)| *count >= self.required);
        let mut agreed: Vec<_> = agreed
            .map(|((output, amount, height), _)| Unspent {
                output,
                amount,
                height,
            })
            .collect();
        agreed.sort_unstable_by(|one, other| {
            let (one, other) = ((one.amount, &other.output), (other.amount, &one.output));
            other.cmp(&one)
        });
        Ok(agreed)
    }

    /// Has all providers watch an account of our own.
    pub fn watch(&self, owner: &Address) {
        let outputs = self.providers.iter().filter_map(|it| it.outputs.as_ref());
        outputs.for_each(|outputs| outputs.watch(owner));
    }

    /// What in a block spends each of these outputs: spent where a quorum says so, by a transaction where a quorum names
    /// that one. As many answers in the same order.
    pub async fn spenders(&self, outputs: &[Bytes]) -> Result<Vec<SpentBy>, ReadError> {
        let ask = |provider: TradingProvider| async move {
            let said = provider.outputs()?.spenders(outputs).await?;
            match said.len() == outputs.len() {
                true => Ok(said),
                false => Err(ReadError::Doubtful("an answer is missing".into())),
            }
        };
        let said = self.gather("spenders", Vec::eq, ask).await?;
        let each = (0..outputs.len()).map(|at| {
            let said = said.iter().filter_map(|answers| answers.get(at));
            self.spender(said.collect())
        });
        Ok(each.collect())
    }

    fn spender(&self, said: Vec<&SpentBy>) -> SpentBy {
        let spent = said.iter().filter(|one| ***one != SpentBy::Nobody);
        if spent.clone().count() < self.required {
            return SpentBy::Nobody;
        }
        let same = |one: &&&SpentBy| said.iter().filter(|other| *other == *one).count();
        let named = spent.filter(|one| matches!(**one, SpentBy::Transaction(_)));
        let agreed = named.clone().find(|one| same(one) >= self.required);
        agreed.map_or(SpentBy::Somebody, |one| SpentBy::clone(one))
    }
}

#[cfg(test)]
mod tests;
