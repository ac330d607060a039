// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

import {Erc20} from "./FillRouter.sol";

/// Sells to anybody for anybody while it is open; takes no gifts.
contract Till {
    bool public closed;
    mapping(address currency => mapping(address buyer => uint256)) public bought;

    function close(bool to) external {
        closed = to;
    }

    function buy(address buyer) external payable {
        require(!closed, "the till is closed");
        bought[address(0)][buyer] += msg.value;
    }

    /// Takes tokens that its caller has allowed.
    function buyWith(address token, uint256 amount, address buyer) external {
        require(!closed, "the till is closed");
        require(Erc20(token).transferFrom(msg.sender, address(this), amount));
        bought[token][buyer] += amount;
    }
}
