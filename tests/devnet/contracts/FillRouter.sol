// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

interface Erc20 {
    function balanceOf(address owner) external view returns (uint256);
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// Calls of tokens: some old ones answer nothing, some say no by answering false.
library Calls {
    function token(address at, bytes memory data) internal returns (bool) {
        (bool ok, bytes memory answer) = at.call(data);
        return ok && at.code.length != 0 && (answer.length == 0 || abi.decode(answer, (bool)));
    }
}

/// Pays recipients and makes an order's calls in one transaction (guide: protocol 4.1). The order id
/// follows the calldata: the decoder ignores what stands behind the arguments.
///
/// Anybody may have it call anything: what it holds between transactions is anybody's, and nobody may allow
/// it anything. Who pays in tokens does so through the approval proxy.
contract FillRouter {
    /// What was here before the fill under way came, in the native currency. It is not swept in it: a recipient
    /// that takes none would have its fill fail for a wei that somebody sent here.
    uint256 private transient before;

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
        // One within another's calls leaves that one's alone.
        uint256 outer = before;
        before = address(this).balance - msg.value;
        for (uint256 i; i < calls.length; ++i) {
            Call calldata wanted = calls[i];
            (bool ok, bytes memory why) = wanted.to.call{value: wanted.value}(wanted.data);
            if (!ok && why.length == 0) revert Failed(i);
            if (!ok) {
                assembly {
                    revert(add(why, 32), mload(why))
                }
            }
            if (wanted.data.length == 0) emit SolverNativeTransfer(wanted.to, wanted.value);
            else emit SolverCallExecuted(wanted.to, wanted.data, wanted.value);
        }
        before = outer;
    }

    /// Pays a token straight from the caller's own balance.
    function pay(address token, address to, uint256 amount) external {
        require(Erc20(token).transferFrom(msg.sender, to, amount));
    }

    /// Gives what is left of a currency (zero is the native one) to `to`: of the native one what came in the
    /// fill, outside of fills all of it.
    function sweep(address currency, address to) external {
        if (currency == address(0)) {
            // Who gets nothing is not asked whether it takes it.
            uint256 here = address(this).balance;
            if (here <= before) return;
            (bool ok,) = to.call{value: here - before}("");
            require(ok, "the recipient does not take what is left");
            return;
        }
        uint256 left = Erc20(currency).balanceOf(address(this));
        if (left == 0) return;
        require(Calls.token(currency, abi.encodeCall(Erc20.transfer, (to, left))), "the token does not move");
    }
}

/// What a solver allows to take its tokens: only its caller's money moves, whoever calls, and whatever
/// the calls behind the payments do. An allowance without end is therefore safe here.
contract ApprovalProxy {
    struct Payment {
        address token;
        address to;
        uint256 amount;
    }

    FillRouter public immutable router;

    constructor(FillRouter router_) {
        router = router_;
    }

    /// Pays tokens from the caller's own balance, then has the router make calls.
    function fill(Payment[] calldata payments, FillRouter.Call[] calldata calls) external payable {
        for (uint256 i; i < payments.length; ++i) {
            Payment calldata paid = payments[i];
            bytes memory data = abi.encodeCall(Erc20.transferFrom, (msg.sender, paid.to, paid.amount));
            require(Calls.token(paid.token, data), "the token does not move");
        }
        router.fill{value: msg.value}(calls);
    }
}
