// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

/// Emits the events of others: genuine names, wrong emitter.
contract FakeEmitter {
    event RelayNativeDeposit(address from, uint256 amount, bytes32 id);
    event RelayErc20Deposit(address from, address token, uint256 amount, bytes32 id);
    event SolverNativeTransfer(address to, uint256 amount);

    function nativeDeposit(address from, uint256 amount, bytes32 id) external {
        emit RelayNativeDeposit(from, amount, id);
    }

    function erc20Deposit(address from, address token, uint256 amount, bytes32 id) external {
        emit RelayErc20Deposit(from, token, amount, id);
    }

    function nativePayment(address to, uint256 amount) external {
        emit SolverNativeTransfer(to, amount);
    }

    /// So many logs of nothing.
    function noise(uint256 count) external {
        for (uint256 i; i < count; ++i) {
            assembly ("memory-safe") {
                log1(0, 0, 1)
            }
        }
    }

    /// Any log with one to four topics: other indexing, extra topics, extra data.
    function anything(bytes32[] calldata topics, bytes memory data) external {
        assembly {
            let at := add(data, 32)
            let size := mload(data)
            let t := topics.offset
            switch topics.length
            case 1 { log1(at, size, calldataload(t)) }
            case 2 { log2(at, size, calldataload(t), calldataload(add(t, 32))) }
            case 3 { log3(at, size, calldataload(t), calldataload(add(t, 32)), calldataload(add(t, 64))) }
            case 4 {
                log4(
                    at, size, calldataload(t), calldataload(add(t, 32)), calldataload(add(t, 64)), calldataload(add(t, 96))
                )
            }
            default { revert(0, 0) }
        }
    }
}

/// Runs another contract's code as its own: its events come from this address.
contract Proxy {
    address private immutable target;

    constructor(address target_) {
        target = target_;
    }

    fallback() external payable {
        (bool ok, bytes memory answer) = target.delegatecall(msg.data);
        assembly {
            switch ok
            case 0 { revert(add(answer, 32), mload(answer)) }
            default { return(add(answer, 32), mload(answer)) }
        }
    }
}

/// A contract wallet: several calls in one transaction, each of which may be allowed to fail.
/// Also what an EIP-7702 account delegates to.
contract Wallet {
    struct Call {
        address to;
        bytes data;
        uint256 value;
        bool allowFailure;
    }

    error Failed(uint256 index, bytes reason);
    error Undone();

    function run(Call[] calldata calls) public payable {
        for (uint256 i; i < calls.length; ++i) {
            (bool ok, bytes memory reason) = calls[i].to.call{value: calls[i].value}(calls[i].data);
            if (!ok && !calls[i].allowFailure) revert Failed(i, reason);
        }
    }

    /// Makes the calls inside an inner call that is then undone; the transaction itself succeeds.
    function runAndUndo(Call[] calldata calls) external payable {
        try this.runThenRevert{value: msg.value}(calls) {} catch {}
    }

    function runThenRevert(Call[] calldata calls) external payable {
        run(calls);
        revert Undone();
    }

    receive() external payable {}
}

/// Burns gas where that costs whoever calls it: only when gas is paid for, or only once it is armed.
contract Burner {
    uint256 private constant MUCH = 3_000_000;

    bool public armed;

    function arm(bool to) external {
        armed = to;
    }

    function paid() external payable {
        if (tx.gasprice > 0) _burn();
    }

    function later() external payable {
        if (armed) _burn();
    }

    function _burn() private view {
        uint256 begun = gasleft();
        bytes32 waste;
        while (begun - gasleft() < MUCH) {
            waste = keccak256(abi.encode(waste));
        }
    }
}
