// Drives the published client, unmodified, against one daemon, as an app would.
//
// Usage: node drive.mjs < job.json, with client.mjs, abroad.mjs and node_modules beside this file.
// The job: {base, source, key, chains: [{id, name, rpc}], what, quote, ...}. Prints one JSON object:
// {ok: true, ...} or {ok: false, error}. `quoted` is a quote from before; without it `quote` is asked.

import { createClient, convertViemChainToRelayChain, getClient, axios } from '@relayprotocol/relay-sdk'
import { configureDynamicChains } from '@relayprotocol/relay-sdk/chain-utils'
import * as viem from 'viem'
import WebSocket from 'ws'
import * as abroad from './abroad.mjs'
import { chains, job, overheard, report, signer, stepsOf } from './client.mjs'

const requests = overheard(axios)

// What a browser has, and all that the client asks of one.
const heard = []
const closed = []
if (job.websocket) {
  globalThis.WebSocket = class extends WebSocket {
    constructor(url) {
      super(url)
      this.on('message', (data) => heard.push(JSON.parse(data)))
      this.on('close', (code, reason) => closed.push({ code, reason: reason.toString() }))
    }
  }
  globalThis.window = { WebSocket: globalThis.WebSocket }
}

createClient({
  baseApiUrl: job.base,
  websocket: { enabled: Boolean(job.websocket), url: job.websocket },
  source: job.source ?? 'acceptance.test',
  chains: [...chains.map(convertViemChainToRelayChain), ...abroad.chains],
  // Several of these share an address.
  pollingInterval: 300,
  confirmationPollingInterval: 50,
  maxPollingAttemptsBeforeTimeout: job.attempts ?? 300,
})

// The one that is executed, for whoever asks why it failed.
let request
const jobs = {
  // The chains as the daemon lists them.
  async chains() {
    const found = await configureDynamicChains()
    return { chains: found.map(({ id, displayName, vmType }) => ({ id, displayName, vmType })) }
  },
  async quote() {
    return { quote: await quote() }
  },
  // The bytes of the transactions of steps on Solana.
  async sizes() {
    return { sizes: job.compiled.map(abroad.size) }
  },
  // A quote, and every step of it, until the client says that it is done.
  async execute() {
    const quoted = job.quoted ?? (await quote())
    request = quoted.steps.at(-1)?.requestId
    const seen = []
    const done = await getClient().actions.execute({
      quote: quoted,
      wallet: abroad.wallet(job.quote.chainId) ?? wallet(job.quote.chainId),
      onProgress: ({ currentStep, txHashes }) =>
        seen.push({ step: currentStep?.id, transactions: txHashes?.length ?? 0 }),
    })
    return { quote: quoted, seen, steps: stepsOf(done) }
  },
}

let told
try {
  told = { ok: true, ...(await jobs[job.what]()) }
} catch (error) {
  told = { ok: false, error: error.message ?? error, name: error.name, raw: error.rawError }
}
report({ ...told, request, requests, heard, closed })

function quote() {
  return getClient().actions.getQuote({ ...job.quote, wallet: undefined })
}

// A local account; with `rejecting` one whose owner refuses to sign; with `batching` a wallet that takes several calls at once (EIP-5792) and is
// answered by the node in one transaction each, nothing told to the daemon.
function wallet(id) {
  const { account, chain, rpc, wallet: plain } = signer(id)
  const reader = viem.createPublicClient({ chain, transport: viem.http(rpc) })
  const over = (request) =>
    viem.createWalletClient({ account: account.address, chain, transport: viem.custom({ request }) })
  if (job.rejecting) {
    return over(async ({ method, params }) => {
      const refused = { code: 4001, message: 'User rejected the request.' }
      if (/^(eth_send|wallet_)/.test(method)) throw Object.assign(new Error(refused.message), refused)
      return reader.request({ method, params })
    })
  }
  if (!job.batching) return plain
  const batches = new Map()
  const request = async ({ method, params }) => {
    if (method === 'wallet_getCapabilities') return { [viem.toHex(id)]: { atomic: { status: 'supported' } } }
    if (method === 'wallet_sendCalls') return send(params[0])
    if (method === 'wallet_getCallsStatus') return batches.get(params[0])
    if (method === 'eth_accounts' || method === 'eth_requestAccounts') return [account.address]
    return reader.request({ method, params })
  }
  const send = async ({ calls }) => {
    const receipts = []
    for (const { to, data, value } of calls) {
      const hash = await plain.sendTransaction({ to, data, value: BigInt(value ?? 0) })
      const receipt = await reader.waitForTransactionReceipt({ hash, pollingInterval: 50 })
      receipts.push({
        logs: [],
        status: receipt.status === 'success' ? '0x1' : '0x0',
        blockHash: receipt.blockHash,
        blockNumber: viem.toHex(receipt.blockNumber),
        gasUsed: viem.toHex(receipt.gasUsed),
        transactionHash: hash,
      })
    }
    const batch = `0x${(batches.size + 1).toString(16).padStart(64, '0')}`
    const whole = receipts.every((receipt) => receipt.status === '0x1')
    const status = whole ? 200 : 500
    batches.set(batch, { version: '2.0.0', id: batch, chainId: viem.toHex(id), atomic: true, status, receipts })
    return { id: batch }
  }
  return over(request)
}
