// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

import {Quorum, Typed} from "./Typed.sol";

/// Balances per account and token id (guide: protocol 2.4). Only the oracle contract moves them.
contract Hub {
    event Transfer(address caller, address indexed from, address indexed to, uint256 indexed id, uint256 amount);

    error OnlyOracle();
    error InsufficientBalance(address owner, uint256 id, uint256 balance, uint256 amount);

    address private immutable deployer = msg.sender;
    address public oracle;
    mapping(address => mapping(uint256 => uint256)) public balanceOf;
    mapping(uint256 => uint256) public totalSupply;

    modifier onlyOracle() {
        if (msg.sender != oracle) revert OnlyOracle();
        _;
    }

    /// Once, by whom this contract was deployed: the oracle contract needs the hub's address first.
    function setOracle(address oracle_) external {
        if (msg.sender != deployer || oracle != address(0)) revert OnlyOracle();
        oracle = oracle_;
    }

    function mint(address to, uint256 id, uint256 amount) external onlyOracle {
        totalSupply[id] += amount;
        balanceOf[to][id] += amount;
        emit Transfer(msg.sender, address(0), to, id, amount);
    }

    function burn(address from, uint256 id, uint256 amount) external onlyOracle {
        _take(from, id, amount);
        totalSupply[id] -= amount;
        emit Transfer(msg.sender, from, address(0), id, amount);
    }

    function transferFrom(address from, address to, uint256 id, uint256 amount) external onlyOracle {
        _take(from, id, amount);
        balanceOf[to][id] += amount;
        emit Transfer(msg.sender, from, to, id, amount);
    }

    function _take(address from, uint256 id, uint256 amount) private {
        uint256 balance = balanceOf[from][id];
        if (balance < amount) revert InsufficientBalance(from, id, balance, amount);
        balanceOf[from][id] = balance - amount;
    }
}

/// Applies executions (guide: protocol 5) that enough oracles signed: domain `RelayOracle`, the
/// version given at deployment. An idempotency key acts once.
contract Oracle is Quorum {
    event Executed(bytes32 indexed idempotencyKey, bytes[] actions);

    error AlreadyExecuted(bytes32 idempotencyKey);
    error InvalidActionType(uint8 actionType);

    bytes32 private constant EXECUTION = keccak256("Execution(bytes32 idempotencyKey,bytes[] actions)");

    Hub public immutable HUB;
    mapping(bytes32 => bool) public isExecuted;

    constructor(Hub hub, string memory version, address[] memory signers, uint256 threshold)
        Typed("RelayOracle", version)
        Quorum(signers, threshold)
    {
        HUB = hub;
    }

    function execute(bytes32 idempotencyKey, bytes[] calldata actions, bytes[] calldata signatures) external {
        if (isExecuted[idempotencyKey]) revert AlreadyExecuted(idempotencyKey);
        bytes32[] memory hashes = new bytes32[](actions.length);
        for (uint256 i; i < actions.length; ++i) hashes[i] = keccak256(actions[i]);
        bytes32 structHash = keccak256(abi.encode(EXECUTION, idempotencyKey, keccak256(abi.encodePacked(hashes))));
        _require(_digest(structHash), signatures);
        isExecuted[idempotencyKey] = true;
        for (uint256 i; i < actions.length; ++i) _act(actions[i]);
        emit Executed(idempotencyKey, actions);
    }

    function _act(bytes calldata action) private {
        uint8 kind = abi.decode(action, (uint8));
        if (kind == 2) {
            (, address from, address to, uint256 id, uint256 amount) =
                abi.decode(action, (uint8, address, address, uint256, uint256));
            HUB.transferFrom(from, to, id, amount);
        } else if (kind < 2) {
            (, address account, uint256 id, uint256 amount) = abi.decode(action, (uint8, address, uint256, uint256));
            if (kind == 0) HUB.mint(account, id, amount);
            else HUB.burn(account, id, amount);
        } else {
            revert InvalidActionType(kind);
        }
    }
}

/// Entries that enough oracles signed (guide: protocol 9.1): domain `RelayGenericMapping` version 1.
contract GenericMapping is Quorum {
    event EntrySet(address indexed user, bytes32 indexed id, bytes data);

    error InvalidEntry();
    error EntryAlreadyExists(address user, bytes32 id);
    error NonceAlreadyUsed(bytes32 nonce);

    struct Entry {
        bytes data;
        uint256 createdAt;
    }

    bytes32 private constant SET_ENTRY = keccak256("SetEntry(address user,bytes32 id,bytes data,bytes32 nonce)");

    mapping(address => mapping(bytes32 => Entry)) private entries;
    mapping(bytes32 => bool) public usedNonces;

    constructor(address[] memory signers, uint256 threshold)
        Typed("RelayGenericMapping", "1")
        Quorum(signers, threshold)
    {}

    function setEntry(address user, bytes32 id, bytes calldata data, bytes32 nonce, bytes[] calldata signatures)
        external
    {
        if (id == 0 || data.length == 0) revert InvalidEntry();
        if (entries[user][id].createdAt > 0) revert EntryAlreadyExists(user, id);
        if (usedNonces[nonce]) revert NonceAlreadyUsed(nonce);
        _require(_digest(keccak256(abi.encode(SET_ENTRY, user, id, keccak256(data), nonce))), signatures);
        usedNonces[nonce] = true;
        entries[user][id] = Entry(data, block.timestamp);
        emit EntrySet(user, id, data);
    }

    function getEntry(address user, bytes32 id) external view returns (bytes memory data, uint256 createdAt) {
        Entry storage entry = entries[user][id];
        return (entry.data, entry.createdAt);
    }
}
