// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

/// EIP-712 digests of one domain, and strict recovery of 65-byte signatures.
abstract contract Typed {
    bytes32 public immutable DOMAIN_SEPARATOR;

    constructor(string memory name, string memory version) {
        DOMAIN_SEPARATOR = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256(bytes(name)),
                keccak256(bytes(version)),
                block.chainid,
                address(this)
            )
        );
    }

    function _digest(bytes32 structHash) internal view returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR, structHash));
    }

    /// Zero for anything but 65 bytes with a low s and v of 27 or 28.
    function _recover(bytes32 digest, bytes calldata signature) internal pure returns (address) {
        if (signature.length != 65) return address(0);
        bytes32 s = bytes32(signature[32:64]);
        if (uint256(s) > 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0) return address(0);
        return ecrecover(digest, uint8(signature[64]), bytes32(signature[:32]), s);
    }
}

/// A fixed set of signers of which `threshold` different ones must have signed.
abstract contract Quorum is Typed {
    error UnknownSigner(address signer);
    error DuplicateSigner(address signer);
    error BelowThreshold(uint256 given, uint256 threshold);
    error InvalidSignerSet();

    uint256 public immutable threshold;
    mapping(address => bool) public isSigner;

    constructor(address[] memory signers, uint256 threshold_) {
        if (threshold_ == 0 || threshold_ > signers.length) revert InvalidSignerSet();
        threshold = threshold_;
        for (uint256 i; i < signers.length; ++i) {
            if (signers[i] == address(0) || isSigner[signers[i]]) revert InvalidSignerSet();
            isSigner[signers[i]] = true;
        }
    }

    /// Every signature must be good: one bad one among enough good ones is refused as well.
    function _require(bytes32 digest, bytes[] calldata signatures) internal view {
        if (signatures.length < threshold) revert BelowThreshold(signatures.length, threshold);
        address[] memory seen = new address[](signatures.length);
        for (uint256 i; i < signatures.length; ++i) {
            address signer = _recover(digest, signatures[i]);
            if (!isSigner[signer]) revert UnknownSigner(signer);
            for (uint256 k; k < i; ++k) {
                if (seen[k] == signer) revert DuplicateSigner(signer);
            }
            seen[i] = signer;
        }
    }
}
