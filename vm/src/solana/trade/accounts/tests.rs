use borsh::BorshSerialize;
use spl_token_2022_interface::extension::{
    BaseStateWithExtensionsMut, ExtensionType, StateWithExtensionsMut,
};

use super::{
    super::{
        super::programs::TOKEN_2022,
        fixtures::{key, old, raw},
    },
    *,
};

/// As Metaplex's program writes it: texts are filled up with zeros, and more follows.
fn metaplex(kind: u8, mint: &Pubkey) -> Vec<u8> {
    let mut data = vec![kind];
    data.extend([7; 32]);
    data.extend(mint.to_bytes());
    for (text, length) in [("USD Coin", 32), ("USDC", 10), ("https://", 200)] {
        let mut text = text.as_bytes().to_vec();
        text.resize(length, 0);
        text.serialize(&mut data).unwrap();
    }
    data.extend([0; 9]);
    data
}

#[test]
fn metaplex_names_a_mint() {
    // The account of the mint of USDC on mainnet.
    let usdc = pubkey!("EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v");
    let account = pubkey!("5x38Kp4hvdomTCnCrAny4UtMUt5rQBdB6px2K1Ui45Wq");
    assert_eq!(metadata(&usdc), Some(account));
    let found = named(&usdc, &raw(&METAPLEX, &metaplex(METADATA, &usdc))).unwrap();
    let [name, symbol] = [found.0, found.1].map(|text| shown(&text));
    assert_eq!((name.as_str(), symbol.as_str()), ("USD Coin", "USDC"));
    for account in [
        raw(&TOKEN_2022, &metaplex(METADATA, &usdc)),
        raw(&METAPLEX, &metaplex(METADATA, &key(3))),
        raw(&METAPLEX, &metaplex(6, &usdc)),
        raw(&METAPLEX, &metaplex(METADATA, &usdc)[..70]),
    ] {
        assert_eq!(named(&usdc, &account), None);
    }
}

/// A mint of Token-2022 that says what the mint `of` is called.
fn speaking(of: Pubkey) -> RawAccount {
    let metadata = TokenMetadata {
        mint: of,
        name: "Pay Dollar".into(),
        symbol: "PYD".into(),
        ..TokenMetadata::default()
    };
    let text = metadata.tlv_size_of().unwrap();
    let bare =
        ExtensionType::try_calculate_account_len::<MintState>(&[ExtensionType::MintCloseAuthority]);
    let mut data = vec![0; bare.unwrap() + text];
    let mut state = StateWithExtensionsMut::<MintState>::unpack_uninitialized(&mut data).unwrap();
    state.base = MintState {
        is_initialized: true,
        ..MintState::default()
    };
    state.pack_base();
    state.init_account_type().unwrap();
    state.init_variable_len_extension(&metadata, false).unwrap();
    raw(&TOKEN_2022, &data)
}

#[test]
fn mint_names_itself_and_no_other() {
    let said = own(&key(1), &speaking(key(1)));
    assert_eq!(said, Some(("Pay Dollar".into(), "PYD".into())));
    assert_eq!(own(&key(1), &speaking(key(2))), None);
    assert_eq!(own(&key(1), &old(6)), None);
}

#[test]
fn texts_are_shown_without_what_is_no_text() {
    assert_eq!(shown(" USD\0\u{7}C \0\0"), "USDC");
    assert_eq!(shown(&"a".repeat(1_000)).len(), LONGEST);
}
