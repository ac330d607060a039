//! The interfaces of `contracts/*.sol`, for calls, events and errors.

use alloy::sol;

sol! {
    #[derive(Debug, PartialEq, Eq)]
    contract Depository {
        struct Call {
            address to;
            bytes data;
            uint256 value;
            bool allowFailure;
        }

        struct CallRequest {
            Call[] calls;
            uint256 nonce;
            uint256 expiration;
        }

        event RelayNativeDeposit(address from, uint256 amount, bytes32 id);
        event RelayErc20Deposit(address from, address token, uint256 amount, bytes32 id);
        event RelayCallExecuted(bytes32 id, Call call);

        error InvalidSignature();
        error CallRequestExpired();
        error CallRequestAlreadyUsed();
        error TransferFailed();

        constructor(address allocator);
        function allocator() external view returns (address);
        function callRequests(bytes32 id) external view returns (bool);
        function depositNative(address depositor, bytes32 id) external payable;
        function depositErc20(address depositor, address token, uint256 amount, bytes32 id) external;
        function depositErc20(address depositor, address token, bytes32 id) external;
        function execute(CallRequest request, bytes signature) external;
        function hashCallRequest(CallRequest request) external view returns (bytes32);
    }

    #[derive(Debug, PartialEq, Eq)]
    contract FillRouter {
        struct Call {
            address to;
            bytes data;
            uint256 value;
        }

        event SolverNativeTransfer(address to, uint256 amount);
        event SolverCallExecuted(address to, bytes data, uint256 amount);

        function fill(Call[] calls) external payable;
        function pay(address token, address to, uint256 amount) external;
        function sweep(address currency, address to) external;
    }

    #[derive(Debug, PartialEq, Eq)]
    contract ApprovalProxy {
        struct Payment {
            address token;
            address to;
            uint256 amount;
        }

        constructor(address router);
        function fill(Payment[] payments, FillRouter.Call[] calls) external payable;
    }

    #[derive(Debug, PartialEq, Eq)]
    contract Token {
        event Transfer(address indexed from, address indexed to, uint256 amount);

        constructor(string symbol);
        function symbol() external view returns (string);
        function balanceOf(address owner) external view returns (uint256);
        function mint(address to, uint256 amount) external;
        function approve(address spender, uint256 amount) external returns (bool);
        function transfer(address to, uint256 amount) external returns (bool);
        function transferFrom(address from, address to, uint256 amount) external returns (bool);
        function rebase() external;
    }

    #[derive(Debug, PartialEq, Eq)]
    contract Hub {
        event Transfer(address caller, address indexed from, address indexed to, uint256 indexed id, uint256 amount);

        error OnlyOracle();
        error InsufficientBalance(address owner, uint256 id, uint256 balance, uint256 amount);

        function setOracle(address oracle) external;
        function balanceOf(address owner, uint256 id) external view returns (uint256);
        function totalSupply(uint256 id) external view returns (uint256);
        function mint(address to, uint256 id, uint256 amount) external;
    }

    #[derive(Debug, PartialEq, Eq)]
    contract Oracle {
        event Executed(bytes32 indexed idempotencyKey, bytes[] actions);

        error AlreadyExecuted(bytes32 idempotencyKey);
        error InvalidActionType(uint8 actionType);
        error UnknownSigner(address signer);
        error DuplicateSigner(address signer);
        error BelowThreshold(uint256 given, uint256 threshold);

        constructor(address hub, string version, address[] signers, uint256 threshold);
        function HUB() external view returns (address);
        function DOMAIN_SEPARATOR() external view returns (bytes32);
        function threshold() external view returns (uint256);
        function isExecuted(bytes32 idempotencyKey) external view returns (bool);
        function execute(bytes32 idempotencyKey, bytes[] actions, bytes[] signatures) external;
    }

    /// What oracles sign for [`Oracle`] (guide: protocol 5).
    struct Execution {
        bytes32 idempotencyKey;
        bytes[] actions;
    }

    #[derive(Debug, PartialEq, Eq)]
    contract GenericMapping {
        constructor(address[] signers, uint256 threshold);
        function setEntry(address user, bytes32 id, bytes data, bytes32 nonce, bytes[] signatures) external;
        function getEntry(address user, bytes32 id) external view returns (bytes data, uint256 createdAt);
    }

    #[derive(Debug, PartialEq, Eq)]
    contract PayloadBuilder {
        constructor(string family);
        function family() external view returns (string);
    }

    #[derive(Debug, PartialEq, Eq)]
    contract Allocator {
        function payloadBuilders(uint256 chainId, string depository) external view returns (address);
        function payloadBuilders(string chainId, bytes depository) external view returns (address);
        function payloads(bytes32 id) external view returns (bytes);
        function hashesToSign(bytes32 id, uint256 index) external view returns (bytes32);
        function hashToSign(uint256 chainId, string depository, bytes payload, uint32 index) external view returns (bytes32);
        function signedPayloads(bytes32 id, bytes32 hash) external view returns (bytes);
        function setPayloadBuilder(uint256 chainId, string depository, address builder) external;
        function setPayloadBuilder(string chainId, bytes depository, address builder) external;
        function setPayload(bytes32 id, bytes payload, bytes32[] toSign) external;
        function setSigned(bytes32 id, bytes32 hash, bytes signature) external;
    }

    /// What a payload's id is the hash of (guide: protocol 8.2).
    struct SubmitWithdrawRequest {
        uint256 chainId;
        string depository;
        string currency;
        uint256 amount;
        address spender;
        string receiver;
        bytes data;
        bytes32 nonce;
    }

    #[derive(Debug, PartialEq, Eq)]
    contract Executor {
        function orderAddressByWithdrawRequestHash(bytes32 requestHash) external view returns (address);
        function set(bytes32 requestHash, address orderAddress) external;
    }

    #[derive(Debug, PartialEq, Eq)]
    contract DepositAddressManager {
        function triggers(bytes32 triggerHash) external view returns (bytes32);
        function set(bytes32 triggerHash, bytes32 orderId) external;
    }

    #[derive(Debug, PartialEq, Eq)]
    contract FakeEmitter {
        function nativeDeposit(address from, uint256 amount, bytes32 id) external;
        function erc20Deposit(address from, address token, uint256 amount, bytes32 id) external;
        function nativePayment(address to, uint256 amount) external;
        function anything(bytes32[] topics, bytes data) external;
        function noise(uint256 count) external;
    }

    #[derive(Debug, PartialEq, Eq)]
    contract Proxy {
        constructor(address target);
    }

    #[derive(Debug, PartialEq, Eq)]
    contract Wallet {
        struct Call {
            address to;
            bytes data;
            uint256 value;
            bool allowFailure;
        }

        function run(Call[] calls) external payable;
        function runAndUndo(Call[] calls) external payable;
    }

    #[derive(Debug, PartialEq, Eq)]
    contract Burner {
        function arm(bool to) external;
        function paid() external payable;
        function later() external payable;
    }

    #[derive(Debug, PartialEq, Eq)]
    contract Feed {
        function set(int256 to) external;
    }

    #[derive(Debug, PartialEq, Eq)]
    contract Till {
        function close(bool to) external;
        function buy(address buyer) external payable;
        function buyWith(address token, uint256 amount, address buyer) external;
        function bought(address currency, address buyer) external view returns (uint256);
    }

    /// Uniswap V3's NonfungiblePositionManager.
    #[derive(Debug, PartialEq, Eq)]
    contract Positions {
        struct MintParams {
            address token0;
            address token1;
            uint24 fee;
            int24 tickLower;
            int24 tickUpper;
            uint256 amount0Desired;
            uint256 amount1Desired;
            uint256 amount0Min;
            uint256 amount1Min;
            address recipient;
            uint256 deadline;
        }

        function createAndInitializePoolIfNecessary(address token0, address token1, uint24 fee, uint160 sqrtPriceX96) external payable;
        function mint(MintParams params) external payable;
    }
}
