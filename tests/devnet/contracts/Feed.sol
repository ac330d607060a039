// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

/// A price as Chainlink's aggregators tell it, always of now. Whoever runs the devnet says it.
contract Feed {
    uint8 public constant decimals = 8;
    uint80 private round;
    int256 private answer;

    function set(int256 to) external {
        answer = to;
        ++round;
    }

    function latestRoundData()
        external
        view
        returns (uint80 roundId, int256, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound)
    {
        return (round, answer, block.timestamp, block.timestamp, round);
    }
}
