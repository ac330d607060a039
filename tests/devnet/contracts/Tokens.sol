// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

/// A plain ERC-20 that anyone may mint. The others differ from it in one habit each.
contract Token {
    event Transfer(address indexed from, address indexed to, uint256 amount);
    event Approval(address indexed owner, address indexed spender, uint256 amount);

    string public symbol;
    uint8 public constant decimals = 6;
    mapping(address => uint256) internal held;
    mapping(address => mapping(address => uint256)) public allowance;

    constructor(string memory symbol_) {
        symbol = symbol_;
    }

    function balanceOf(address owner) external view virtual returns (uint256) {
        return held[owner];
    }

    function mint(address to, uint256 amount) external {
        held[to] += amount;
        emit Transfer(address(0), to, amount);
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external virtual returns (bool) {
        return _move(msg.sender, to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) external virtual returns (bool) {
        _spend(from, amount);
        return _move(from, to, amount);
    }

    function _spend(address from, uint256 amount) internal {
        allowance[from][msg.sender] -= amount;
    }

    function _move(address from, address to, uint256 amount) internal virtual returns (bool) {
        held[from] -= amount;
        held[to] += amount;
        emit Transfer(from, to, amount);
        return true;
    }
}

/// Takes 1 % of every transfer and says so in its events.
contract FeeToken is Token {
    constructor(string memory symbol_) Token(symbol_) {}

    function _move(address from, address to, uint256 amount) internal override returns (bool) {
        uint256 fee = amount / 100;
        super._move(from, address(this), fee);
        return super._move(from, to, amount - fee);
    }
}

/// Refuses by returning false instead of reverting.
contract FalseToken is Token {
    constructor(string memory symbol_) Token(symbol_) {}

    function _move(address, address, uint256) internal pure override returns (bool) {
        return false;
    }
}

/// Moves but returns nothing, as some old tokens do.
contract SilentToken is Token {
    constructor(string memory symbol_) Token(symbol_) {}

    function transfer(address to, uint256 amount) external override returns (bool) {
        _move(msg.sender, to, amount);
        assembly {
            return(0, 0)
        }
    }

    function transferFrom(address from, address to, uint256 amount) external override returns (bool) {
        _spend(from, amount);
        _move(from, to, amount);
        assembly {
            return(0, 0)
        }
    }
}

/// Claims a transfer in its event and moves nothing.
contract LyingToken is Token {
    constructor(string memory symbol_) Token(symbol_) {}

    function _move(address from, address to, uint256 amount) internal override returns (bool) {
        emit Transfer(from, to, amount);
        return true;
    }
}

/// Moves and emits nothing.
contract QuietToken is Token {
    constructor(string memory symbol_) Token(symbol_) {}

    function _move(address from, address to, uint256 amount) internal override returns (bool) {
        held[from] -= amount;
        held[to] += amount;
        return true;
    }
}

/// Doubles everybody's balance at the push of a button; transfers speak of amounts, not shares.
contract RebasingToken is Token {
    uint256 public factor = 1;

    constructor(string memory symbol_) Token(symbol_) {}

    function rebase() external {
        factor *= 2;
    }

    function balanceOf(address owner) external view override returns (uint256) {
        return held[owner] * factor;
    }

    function _move(address from, address to, uint256 amount) internal override returns (bool) {
        held[from] -= amount / factor;
        held[to] += amount / factor;
        emit Transfer(from, to, amount);
        return true;
    }
}

interface Depositing {
    function depositErc20(address depositor, address token, uint256 amount, bytes32 id) external;
}

/// Deposits a second time, with an id of its own, from inside the first deposit's transfer.
contract ReentrantToken is Token {
    bytes32 public constant INNER_ID = keccak256("re-entered");
    bool private inside;

    constructor(string memory symbol_) Token(symbol_) {}

    function transferFrom(address from, address to, uint256 amount) external override returns (bool) {
        if (from == address(this)) return _move(from, to, amount);
        _spend(from, amount);
        if (!inside) {
            inside = true;
            held[address(this)] += amount;
            Depositing(to).depositErc20(from, address(this), amount, INNER_ID);
            inside = false;
        }
        return _move(from, to, amount);
    }
}
