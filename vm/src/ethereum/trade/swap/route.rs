//! Ways through Uniswap V3's pools, and their bytes. Pure.

use alloy::primitives::{Address, Bytes, U256};

/// The whole in hundredths of a basis point.
const WHOLE: u32 = 1_000_000;

/// One to two pools after another. Its tokens are one more than its fees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// From what goes in to what comes out.
    pub tokens: Vec<Address>,
    pub fees: Vec<u32>,
}

impl Route {
    /// Token, fee (three bytes), token, fee, token: as QuoterV2 and SwapRouter02 read it, from the
    /// input to the output.
    pub fn path(&self) -> Bytes {
        self.encode(self.tokens.iter(), self.fees.iter())
    }

    /// The same from the output to the input, which an exact output wants.
    pub fn reversed(&self) -> Bytes {
        self.encode(self.tokens.iter().rev(), self.fees.iter().rev())
    }

    fn encode<'a>(
        &self,
        tokens: impl Iterator<Item = &'a Address>,
        fees: impl Iterator<Item = &'a u32>,
    ) -> Bytes {
        let mut path = Vec::with_capacity(43 + 23);
        let mut fees = fees;
        for token in tokens {
            path.extend_from_slice(token.as_slice());
            if let Some(fee) = fees.next() {
                path.extend_from_slice(&fee.to_be_bytes()[1..]);
            }
        }
        path.into()
    }

    /// What [`Route::path`] made; `None` for anything else.
    pub fn decode(path: &[u8]) -> Option<Self> {
        let (first, hops) = path.split_first_chunk::<20>()?;
        let mut route = Self {
            tokens: vec![first.into()],
            fees: Vec::new(),
        };
        for hop in hops.chunks(23) {
            let (fee, token) = hop.split_first_chunk::<3>()?;
            let token = <&[u8; 20]>::try_from(token).ok()?;
            route
                .fees
                .push(u32::from_be_bytes([0, fee[0], fee[1], fee[2]]));
            route.tokens.push(token.into());
        }
        matches!(route.fees.len(), 1 | 2).then_some(route)
    }
}

/// What goes in, and what comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    pub from: Address,
    pub to: Address,
}

impl Ends {
    pub fn has(&self, token: Address) -> bool {
        [self.from, self.to].contains(&token)
    }
}

/// One pool, and what goes in (or else must come out).
pub struct Hop {
    pub ends: Ends,
    pub fee: u32,
    pub amount: U256,
}

impl Hop {
    /// The way of this pool alone.
    pub fn route(&self) -> Route {
        Route {
            tokens: vec![self.ends.from, self.ends.to],
            fees: vec![self.fee],
        }
    }
}

/// Whether pools can have this fee: a part of the whole.
pub fn is_fee(fee: u32) -> bool {
    (1..WHOLE).contains(&fee)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Address = Address::repeat_byte(0xa);
    const B: Address = Address::repeat_byte(0xb);
    const C: Address = Address::repeat_byte(0xc);

    #[test]
    fn paths_go_both_ways_and_come_back() {
        let route = Route {
            tokens: vec![A, B, C],
            fees: vec![500, 0x01_02_03],
        };
        let path = [
            A.as_slice(),
            &[0, 1, 0xf4],
            B.as_slice(),
            &[1, 2, 3],
            C.as_slice(),
        ]
        .concat();
        let back = [
            C.as_slice(),
            &[1, 2, 3],
            B.as_slice(),
            &[0, 1, 0xf4],
            A.as_slice(),
        ]
        .concat();
        assert_eq!(route.path(), path);
        assert_eq!(route.reversed(), back);
        assert_eq!(Route::decode(&path), Some(route));
        assert!(Route::decode(&path[..43]).is_some());
        for length in [0, 19, 20, 42, 44, 65] {
            assert_eq!(Route::decode(&path[..length]), None, "{length}");
        }
        let long = [path.as_slice(), &[0, 1, 0xf4], A.as_slice()].concat();
        assert_eq!(Route::decode(&long), None);
    }
}
