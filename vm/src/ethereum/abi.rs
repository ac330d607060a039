//! The contract functions that trading calls (guide: protocol 4.1).
#![allow(missing_docs, reason = "generated from the contracts' own names")]

alloy::sol! {
    contract Token {
        function transfer(address to, uint256 amount) external returns (bool);
        function transferFrom(address from, address to, uint256 amount) external returns (bool);
        function approve(address spender, uint256 amount) external returns (bool);
        function balanceOf(address owner) external view returns (uint256);
        function allowance(address owner, address spender) external view returns (uint256);
        function symbol() external view returns (string);
        function name() external view returns (string);
        function decimals() external view returns (uint8);
    }

    contract Depository {
        function depositNative(address depositor, bytes32 id) external payable;
        function depositErc20(address depositor, address token, uint256 amount, bytes32 id) external;
    }

    contract FillRouter {
        struct Call { address to; bytes data; uint256 value; }
        function fill(Call[] calls) external payable;
        function sweep(address currency, address to) external;
    }

    contract DataFees {
        function getL1Fee(bytes transaction) external view returns (uint256);
    }

    contract ApprovalProxy {
        function router() external view returns (address);
        struct Payment { address token; address to; uint256 amount; }
        function fill(Payment[] payments, FillRouter.Call[] calls) external payable;
    }
}
