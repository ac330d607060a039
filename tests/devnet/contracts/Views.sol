// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

/// What the oracle reads of a payload builder.
contract PayloadBuilder {
    string public family;

    constructor(string memory family_) {
        family = family_;
    }
}

/// The views of the hub allocator and of the older allocator that the oracle reads (guide: protocol 8.5). Whoever
/// runs the devnet fills them in; there is no allocation logic here.
contract Allocator {
    /// Topic 0 of the event whose further topics are payload id and hash (guide: protocol 8.5).
    bytes32 private constant SIGNED = 0x0442d576de21d369ae594c20a06e751211e214c91de4b237e5f66edd1900f1f9;

    mapping(bytes32 => address) private builders;
    mapping(bytes32 => bytes) public payloads;
    mapping(bytes32 => mapping(uint256 => bytes32)) public hashesToSign;
    mapping(bytes32 => mapping(bytes32 => bytes)) public signedPayloads;
    mapping(bytes32 => mapping(uint32 => bytes32)) private hashes;

    function payloadBuilders(uint256 chainId, string calldata depository) external view returns (address) {
        return builders[keccak256(abi.encode(chainId, depository))];
    }

    function payloadBuilders(string calldata chainId, bytes calldata depository) external view returns (address) {
        return builders[keccak256(abi.encode(chainId, depository))];
    }

    function hashToSign(uint256, string calldata, bytes calldata payload, uint32 index)
        external
        view
        returns (bytes32)
    {
        return hashes[keccak256(payload)][index];
    }

    function setPayloadBuilder(uint256 chainId, string calldata depository, address builder) external {
        builders[keccak256(abi.encode(chainId, depository))] = builder;
    }

    function setPayloadBuilder(string calldata chainId, bytes calldata depository, address builder) external {
        builders[keccak256(abi.encode(chainId, depository))] = builder;
    }

    function setPayload(bytes32 id, bytes calldata payload, bytes32[] calldata toSign) external {
        payloads[id] = payload;
        for (uint256 i; i < toSign.length; ++i) {
            hashesToSign[id][i] = toSign[i];
            hashes[keccak256(payload)][uint32(i)] = toSign[i];
        }
    }

    function setSigned(bytes32 id, bytes32 hash, bytes calldata signature) external {
        signedPayloads[id][hash] = signature;
        bytes memory data = abi.encode(signature);
        assembly {
            log3(add(data, 32), mload(data), SIGNED, id, hash)
        }
    }
}

/// Which order a withdraw request of the executor belongs to.
contract Executor {
    mapping(bytes32 => address) public orderAddressByWithdrawRequestHash;

    function set(bytes32 requestHash, address orderAddress) external {
        orderAddressByWithdrawRequestHash[requestHash] = orderAddress;
    }
}

/// Which order a deposit address trigger belongs to.
contract DepositAddressManager {
    mapping(bytes32 => bytes32) public triggers;

    function set(bytes32 triggerHash, bytes32 orderId) external {
        triggers[triggerHash] = orderId;
    }
}
