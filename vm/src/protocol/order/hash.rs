//! The order's EIP-712 struct hash, without a domain.
//!
//! The hash of each type is made once. [`SolStruct`] writes, sorts and hashes the texts of the types anew for each
//! struct, which takes longer than the values do.

use std::sync::LazyLock;

use alloy::{
    primitives::{Keccak256, keccak256},
    sol_types::SolStruct,
};

use super::typed::{Fee, Input, InputPayment, InputRefund, Order, Output, OutputPayment};
use crate::{B256, U256};

type TypeHash = LazyLock<B256>;

static ORDER: TypeHash = type_hash::<Order>();
static INPUT: TypeHash = type_hash::<Input>();
static INPUT_PAYMENT: TypeHash = type_hash::<InputPayment>();
static INPUT_REFUND: TypeHash = type_hash::<InputRefund>();
static OUTPUT: TypeHash = type_hash::<Output>();
static OUTPUT_PAYMENT: TypeHash = type_hash::<OutputPayment>();
static FEE: TypeHash = type_hash::<Fee>();

const fn type_hash<T: SolStruct>() -> TypeHash {
    LazyLock::new(|| keccak256(T::eip712_encode_type().as_bytes()))
}

/// The hash of an order.
pub fn of(order: &Order) -> B256 {
    let words = [
        keccak256(&order.version),
        keccak256(&order.solverChainId),
        order.solver.into_word(),
        B256::from(order.salt),
        list(order.inputs.iter().map(input)),
        output(&order.output),
        list(order.fees.iter().map(|fee| flat(&FEE, fee))),
    ];
    hash(&ORDER, words.concat())
}

fn input(input: &Input) -> B256 {
    let refunds = input.refunds.iter();
    let words = [
        flat(&INPUT_PAYMENT, &input.payment),
        list(refunds.map(|refund| flat(&INPUT_REFUND, refund))),
    ];
    hash(&INPUT, words.concat())
}

fn output(output: &Output) -> B256 {
    let payments = output.payments.iter();
    let words = [
        keccak256(&output.chainId),
        list(payments.map(|payment| flat(&OUTPUT_PAYMENT, payment))),
        B256::from(U256::from(output.deadline)),
        list(output.calls.iter().map(keccak256)),
        keccak256(&output.extraData),
    ];
    hash(&OUTPUT, words.concat())
}

/// The hash of a struct that holds no other.
fn flat(of: &TypeHash, fields: &impl SolStruct) -> B256 {
    hash(of, fields.eip712_encode_data())
}

fn hash(of: &TypeHash, data: impl AsRef<[u8]>) -> B256 {
    let mut hash = Keccak256::new();
    hash.update(**of);
    hash.update(data);
    hash.finalize()
}

/// The word of a list whose items have these words.
fn list(items: impl Iterator<Item = B256>) -> B256 {
    let mut hash = Keccak256::new();
    items.for_each(|item| hash.update(item));
    hash.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, EvmAddress};

    fn order() -> Order {
        let bytes = |byte: u8| Bytes::from(vec![byte; 20]);
        let refund = |byte: u8| InputRefund {
            chainId: "base".into(),
            recipient: bytes(byte),
            currency: bytes(2),
            minimumAmount: U256::from(3),
            deadline: 4,
            extraData: bytes(5),
        };
        let input = |byte: u8| Input {
            payment: InputPayment {
                chainId: "base".into(),
                currency: bytes(byte),
                amount: U256::MAX,
                weight: U256::from(1),
            },
            refunds: vec![refund(byte), refund(6)],
        };
        let payment = |byte: u8| OutputPayment {
            recipient: bytes(byte),
            currency: bytes(7),
            minimumAmount: U256::from(8),
            expectedAmount: U256::from(9),
        };
        let fee = |byte: u8| Fee {
            recipientChainId: "base".into(),
            recipient: bytes(byte),
            currencyChainId: "zora".into(),
            currency: bytes(10),
            amount: U256::from(11),
        };
        Order {
            version: "v1".into(),
            solverChainId: "ethereum".into(),
            solver: EvmAddress::repeat_byte(12),
            salt: U256::from(13),
            inputs: vec![input(1), input(2)],
            output: Output {
                chainId: "zora".into(),
                payments: vec![payment(1), payment(2)],
                deadline: u32::MAX,
                calls: vec![Bytes::new(), bytes(14)],
                extraData: bytes(15),
            },
            fees: vec![fee(1), fee(2)],
        }
    }

    #[test]
    fn the_hash_is_that_of_the_typed_data_and_no_field_is_left_out() {
        let changes: &[fn(&mut Order)] = &[
            |_| {},
            |order| order.version.clear(),
            |order| order.solverChainId.clear(),
            |order| order.solver = EvmAddress::ZERO,
            |order| order.salt = U256::ZERO,
            |order| order.inputs.clear(),
            |order| order.inputs.swap(0, 1),
            |order| order.inputs[1].payment.amount = U256::ZERO,
            |order| order.inputs[1].refunds.clear(),
            |order| order.inputs[1].refunds[1].deadline = 0,
            |order| order.output.chainId.clear(),
            |order| order.output.payments.clear(),
            |order| order.output.payments[1].expectedAmount = U256::ZERO,
            |order| order.output.deadline = 0,
            |order| order.output.calls.clear(),
            |order| order.output.calls.swap(0, 1),
            |order| order.output.extraData = Bytes::new(),
            |order| order.fees.clear(),
            |order| order.fees[1].amount = U256::ZERO,
        ];
        let mut hashes = std::collections::HashSet::new();
        for (at, change) in changes.iter().enumerate() {
            let mut order = order();
            change(&mut order);
            assert_eq!(of(&order), order.eip712_hash_struct(), "{at}");
            assert!(hashes.insert(of(&order)), "{at}");
        }
    }
}
