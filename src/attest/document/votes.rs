//! Whether enough providers said what a document was judged over. Pure: no I/O, no clock.

use std::collections::HashSet;

use vm::{
    B256,
    evidence::{Question, Read, Said},
};

use super::{Document, Flaw};
use crate::hub;

impl Document {
    /// Checks that enough providers said each answer: as many as the document says were required, and as the reader
    /// requires of his own providers. `own` tells how many that are, 0 where he has none; `None` for a chain that he does
    /// not know. An answer that needs no votes is the same in each read of it.
    pub fn check_votes(&self, own: impl Fn(&str) -> Option<usize>) -> Vec<Flaw> {
        let mut flaws = Vec::new();
        for (at, read) in self.reads.iter().enumerate() {
            let chain = read.chain.to_string();
            match own(&chain) {
                Some(own) => {
                    let unvoted = || self.check_unvoted(at, read);
                    flaws.extend(check_read(at, read, own).or_else(unvoted));
                }
                None => flaws.push(Flaw::Chain { at, chain }),
            }
        }
        flaws
    }

    /// Checks an answer without votes, which never changes.
    fn check_unvoted(&self, at: usize, read: &Read) -> Option<Flaw> {
        if !read.votes.is_empty() {
            return None;
        }
        let differs = |other: &Read| {
            let same = other.chain == read.chain && is_same_call(&other.question, &read.question);
            same && other.answer != read.answer
        };
        let other = self.reads.iter().position(differs)?;
        let (chain, what) = (read.chain.to_string(), read.question.subject());
        Some(Flaw::Changed {
            at,
            chain,
            what,
            other,
        })
    }
}

fn check_read(at: usize, read: &Read, own: usize) -> Option<Flaw> {
    let (chain, what) = (read.chain.to_string(), read.question.subject());
    if read.votes.is_empty() {
        return (!hub::is_constant(&read.question)).then_some(Flaw::Unvoted { at, chain, what });
    }
    let mut providers = HashSet::new();
    for vote in &read.votes {
        if !providers.insert(&vote.provider) {
            let provider = vote.provider.to_string();
            return Some(Flaw::Twice { at, provider });
        }
    }
    let agree = agreeing(read);
    let recorded = usize::try_from(read.required).unwrap_or(usize::MAX).max(1);
    let (required, by) = match own > recorded {
        true => (own, "this configuration"),
        false => (recorded, "the document"),
    };
    (agree < required).then_some(Flaw::Votes {
        at,
        chain,
        what,
        agree,
        required,
        by,
    })
}

/// Whether two questions are one call of one contract, whatever the block.
fn is_same_call(one: &Question, other: &Question) -> bool {
    match (one, other) {
        (
            Question::View { to, data, .. },
            Question::View {
                to: called,
                data: sent,
                ..
            },
        ) => to == called && data == sent,
        _ => false,
    }
}

/// How many providers' votes support the answer. Of a head, which differs from provider to provider, every provider
/// that showed one; 0 where all showed one head and the answer is another.
pub fn agreeing(read: &Read) -> usize {
    let digest = read.answer.digest();
    let said = read.votes.iter().filter_map(|vote| match vote.said {
        Said::Answer(said) => Some(said),
        _ => None,
    });
    let said: Vec<B256> = said.collect();
    let agree = said.iter().filter(|said| **said == digest).count();
    let differ = said.iter().any(|other| *other != said[0]);
    match read.question {
        Question::Head { .. } if agree > 0 || differ => said.len(),
        _ => agree,
    }
}
