//! The contracts that stand on scripted chains, by the interfaces of `tests/devnet/contracts`.

alloy::sol! {
    function transfer(address to, uint256 amount);
    function transferFrom(address from, address to, uint256 amount);
    function approve(address spender, uint256 amount);
    function depositNative(address depositor, bytes32 id);
    function depositErc20(address depositor, address token, uint256 amount, bytes32 id);
    function sweep(address currency, address to);
    function execute(bytes32 idempotencyKey, bytes[] actions, bytes[] signatures);
    function isExecuted(bytes32 idempotencyKey) returns (bool);
    function HUB() returns (address);
    function router() returns (address);
    function balanceOf(address owner, uint256 id) returns (uint256);
    function getEntry(address user, bytes32 id) returns (bytes data, uint256 createdAt);
    function leave(address user, bytes32 id);
    function latestRoundData();
    function decimals() returns (uint8);
    /// Buys something for `buyer`; what it takes in gas is the till's decision.
    function buy(address buyer);
    error AlreadyExecuted(bytes32 idempotencyKey);

    event RelayNativeDeposit(address from, uint256 amount, bytes32 id);
    event RelayErc20Deposit(address from, address token, uint256 amount, bytes32 id);
    event Transfer(address indexed from, address indexed to, uint256 amount);
    event SolverNativeTransfer(address to, uint256 amount);
    event SolverCallExecuted(address to, bytes data, uint256 amount);
}

/// Two contracts have a function of this name.
pub mod router {
    alloy::sol! {
        struct Call { address to; bytes data; uint256 value; }
        function fill(Call[] calls);
    }
}

/// See [`router`].
pub mod proxy {
    alloy::sol! {
        struct Call { address to; bytes data; uint256 value; }
        struct Payment { address token; address to; uint256 amount; }
        function fill(Payment[] payments, Call[] calls);
    }
}
