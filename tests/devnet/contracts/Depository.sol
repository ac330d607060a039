// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

import {Typed} from "./Typed.sol";

interface Erc20 {
    function allowance(address owner, address spender) external view returns (uint256);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

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

struct CallResult {
    bool success;
    bytes returnData;
}

/// Takes deposits and pays out what its allocator signed. Interface, events and typed data are
/// those of the guide's protocol 4.1; the domain is `RelayDepository` version 1.
contract Depository is Typed("RelayDepository", "1") {
    event RelayNativeDeposit(address from, uint256 amount, bytes32 id);
    event RelayErc20Deposit(address from, address token, uint256 amount, bytes32 id);
    event RelayCallExecuted(bytes32 id, Call call);

    error InvalidSignature();
    error CallRequestExpired();
    error CallRequestAlreadyUsed();
    error CallFailed(bytes returnData);
    error TransferFailed();

    bytes32 private constant CALL =
        keccak256("Call(address to,bytes data,uint256 value,bool allowFailure)");
    bytes32 private constant CALL_REQUEST = keccak256(
        "CallRequest(Call[] calls,uint256 nonce,uint256 expiration)Call(address to,bytes data,uint256 value,bool allowFailure)"
    );

    address public immutable allocator;
    mapping(bytes32 => bool) public callRequests;

    constructor(address allocator_) {
        allocator = allocator_;
    }

    /// A zero depositor means the caller.
    function depositNative(address depositor, bytes32 id) external payable {
        emit RelayNativeDeposit(_or(depositor), msg.value, id);
    }

    function depositErc20(address depositor, address token, uint256 amount, bytes32 id) public {
        // Tokens without a return value are fine, tokens that return false are not.
        (bool ok, bytes memory answer) =
            token.call(abi.encodeCall(Erc20.transferFrom, (msg.sender, address(this), amount)));
        bool agreed = answer.length == 0 ? token.code.length > 0 : abi.decode(answer, (bool));
        if (!ok || !agreed) revert TransferFailed();
        emit RelayErc20Deposit(_or(depositor), token, amount, id);
    }

    /// Deposits the whole allowance.
    function depositErc20(address depositor, address token, bytes32 id) external {
        depositErc20(depositor, token, Erc20(token).allowance(msg.sender, address(this)), id);
    }

    /// Makes the calls of a request that the allocator signed, once, before it expires.
    function execute(CallRequest calldata request, bytes calldata signature)
        external
        returns (CallResult[] memory results)
    {
        if (request.expiration < block.timestamp) revert CallRequestExpired();
        bytes32 id = hashCallRequest(request);
        if (_recover(_digest(id), signature) != allocator) revert InvalidSignature();
        if (callRequests[id]) revert CallRequestAlreadyUsed();
        callRequests[id] = true;

        results = new CallResult[](request.calls.length);
        for (uint256 i; i < request.calls.length; ++i) {
            Call calldata wanted = request.calls[i];
            (bool ok, bytes memory answer) = wanted.to.call{value: wanted.value}(wanted.data);
            if (!ok && !wanted.allowFailure) revert CallFailed(answer);
            results[i] = CallResult(ok, answer);
            if (ok) emit RelayCallExecuted(id, wanted);
        }
    }

    /// The struct hash, which is the withdrawal's id.
    function hashCallRequest(CallRequest calldata request) public pure returns (bytes32) {
        bytes32[] memory calls = new bytes32[](request.calls.length);
        for (uint256 i; i < calls.length; ++i) {
            Call calldata wanted = request.calls[i];
            calls[i] = keccak256(
                abi.encode(CALL, wanted.to, keccak256(wanted.data), wanted.value, wanted.allowFailure)
            );
        }
        return keccak256(
            abi.encode(CALL_REQUEST, keccak256(abi.encodePacked(calls)), request.nonce, request.expiration)
        );
    }

    function _or(address depositor) private view returns (address) {
        return depositor == address(0) ? msg.sender : depositor;
    }
}
