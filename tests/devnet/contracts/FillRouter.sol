// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

interface Erc20 {
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// Pays recipients and makes an order's calls in one transaction (settlement.md 9). The order id
/// follows the calldata: the decoder ignores what stands behind the arguments.
contract FillRouter {
    event SolverNativeTransfer(address to, uint256 amount);
    event SolverCallExecuted(address to, bytes data, uint256 amount);

    error Failed(uint256 index);

    struct Call {
        address to;
        bytes data;
        uint256 value;
    }

    /// A payment to the router itself is what the calls behind it spend.
    receive() external payable {}

    /// A call without data is a native payment.
    function fill(Call[] calldata calls) external payable {
        for (uint256 i; i < calls.length; ++i) {
            Call calldata wanted = calls[i];
            (bool ok,) = wanted.to.call{value: wanted.value}(wanted.data);
            if (!ok) revert Failed(i);
            if (wanted.data.length == 0) emit SolverNativeTransfer(wanted.to, wanted.value);
            else emit SolverCallExecuted(wanted.to, wanted.data, wanted.value);
        }
    }

    /// Pays a token straight from the caller's own balance.
    function pay(address token, address to, uint256 amount) external {
        require(Erc20(token).transferFrom(msg.sender, to, amount));
    }
}
