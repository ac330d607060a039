// Wallets on Bitcoin and Solana, as the published adapters take them, unmodified: each signs with the job's key. On
// Bitcoin the address is of any kind that one key spends.
//
// Read here of the job: {abroad: [{id, name, vmType, rpc, address, secret, sponsor?}]}. A secret is 32 bytes in hex; that of
// a sponsor pays for the transactions on Solana, and signs them first.

import { axios, convertViemChainToRelayChain } from '@relayprotocol/relay-sdk'
import { adaptBitcoinWallet } from '@relayprotocol/relay-bitcoin-wallet-adapter'
import { adaptSolanaWallet } from '@relayprotocol/relay-svm-wallet-adapter'
import {
  AddressLookupTableAccount,
  Connection,
  Keypair,
  PublicKey,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js'
import { schnorr, secp256k1 } from '@noble/curves/secp256k1'
import { initEccLib } from 'bitcoinjs-lib'
import * as viem from 'viem'
import { job } from './client.mjs'

const abroad = job.abroad ?? []

// The chains as the client is told of them.
export const chains = abroad.map(({ id, name, rpc, vmType }) => {
  const nativeCurrency = { name, symbol: name, decimals: 9 }
  const chain = viem.defineChain({ id, name, nativeCurrency, rpcUrls: { default: { http: [new URL(rpc).origin] } } })
  return { ...convertViemChainToRelayChain(chain), vmType }
})

// The job's wallet on a chain; nothing where the chain is of no such family.
export function wallet(id) {
  const chain = abroad.find((one) => one.id === id)
  return chain && { bvm: bitcoin, svm: solana }[chain.vmType](chain)
}

function bitcoin({ rpc, address, secret }) {
  // The adapter sends through a service of the main network, whose place the node takes.
  axios.interceptors.request.use((config) => {
    if (config.url !== 'https://mempool.space/api/tx') return config
    const adapter = async () => ({ data: await send(rpc, config.data), status: 200, statusText: 'OK', headers: {}, config })
    return { ...config, adapter }
  })
  const key = viem.hexToBytes(secret)
  const isTaproot = /^(bc|tb|bcrt)1p/.test(address)
  const signer = isTaproot ? tweaked(key) : plain(key)
  return adaptBitcoinWallet(address, async (_, psbt) => psbt.signAllInputs(signer).toBase64())
}

function plain(key) {
  return {
    publicKey: secp256k1.getPublicKey(key),
    sign: (hash) => secp256k1.sign(hash, key).toCompactRawBytes(),
  }
}

// The key of a Taproot address without scripts (BIP 86). bitcoinjs signs with it where the PSBT shows the internal key.
function tweaked(key) {
  const { n } = secp256k1.CURVE
  const number = viem.bytesToBigInt(key)
  const isEven = secp256k1.getPublicKey(key)[0] === 2
  const tweak = viem.bytesToBigInt(schnorr.utils.taggedHash('TapTweak', schnorr.getPublicKey(key)))
  const secret = viem.numberToBytes(((isEven ? number : n - number) + tweak) % n, { size: 32 })
  return {
    publicKey: secp256k1.getPublicKey(secret),
    signSchnorr: (hash) => schnorr.sign(hash, secret),
  }
}

// The curve as bitcoinjs asks for it, without which it finalises no Taproot input.
const point = (x) => schnorr.utils.lift_x(viem.bytesToBigInt(x))
initEccLib({
  isXOnlyPoint(x) {
    try {
      return Boolean(point(x))
    } catch {
      return false
    }
  },
  xOnlyPointAddTweak(x, tweak) {
    const { BASE, ZERO } = secp256k1.ProjectivePoint
    const sum = point(x).add(BASE.multiply(viem.bytesToBigInt(tweak)))
    if (sum.equals(ZERO)) return null
    return { parity: sum.hasEvenY() ? 0 : 1, xOnlyPubkey: schnorr.utils.pointToBytes(sum) }
  },
})

async function send(rpc, raw) {
  const { origin, username, password } = new URL(rpc)
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  const body = JSON.stringify({ jsonrpc: '1.0', id: 1, method: 'sendrawtransaction', params: [raw] })
  const answer = await fetch(origin, { method: 'POST', headers: { authorization }, body })
  const { result, error } = await answer.json()
  if (error) throw new Error(error.message)
  return result
}

function solana({ id, rpc, address, secret, sponsor }) {
  const [pair, payer] = [secret, sponsor].map((seed) => seed && Keypair.fromSeed(viem.hexToBytes(seed)))
  const connection = new Connection(rpc, 'confirmed')
  // The node has no sockets to be told over.
  connection.confirmTransaction = async ({ signature }) => {
    for (;;) {
      const { context, value } = await connection.getSignatureStatuses([signature])
      const { confirmationStatus, err } = value[0] ?? {}
      if (['confirmed', 'finalized'].includes(confirmationStatus)) return { context, value: { err } }
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
  const sign = async (transaction) => {
    transaction.sign(payer ? [payer, pair] : [pair])
    return { signature: await connection.sendTransaction(transaction) }
  }
  return adaptSolanaWallet(address, id, connection, sign, payer?.publicKey.toBase58())
}

// The bytes of the signed transaction of a step, with these lookup tables, as the Solana adapter compiles it.
export function size({ step, tables, payer }) {
  const instructions = step.instructions.map(({ keys, programId, data }) => {
    const accounts = keys.map((key) => ({ ...key, pubkey: new PublicKey(key.pubkey) }))
    return new TransactionInstruction({
      keys: accounts,
      programId: new PublicKey(programId),
      data: Buffer.from(data, 'hex'),
    })
  })
  const listed = tables.map(({ key, addresses }) => {
    const state = { addresses: addresses.map((address) => new PublicKey(address)) }
    return new AddressLookupTableAccount({ key: new PublicKey(key), state })
  })
  const recentBlockhash = PublicKey.default.toBase58()
  const message = new TransactionMessage({ payerKey: new PublicKey(payer), recentBlockhash, instructions })
  return new VersionedTransaction(message.compileToV0Message(listed)).serialize().length
}
