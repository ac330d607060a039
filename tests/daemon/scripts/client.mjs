// What the drivers of the published TypeScript clients share: the job, the chains and an account on them, what a
// client asked of the daemon, and the last line.
//
// The job is one JSON object on standard input. Read here of it: {base, key, chains: [{id, name, rpc}]}.

import { text } from 'node:stream/consumers'
import * as viem from 'viem'
import { privateKeyToAccount } from 'viem/accounts'

export const job = JSON.parse(await text(process.stdin))

export const chains = job.chains.map(({ id, name, rpc }) =>
  viem.defineChain({
    id,
    name,
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    // Receipts are looked for twice per block.
    blockTime: 1000,
    rpcUrls: { default: { http: [rpc] } },
  }),
)

// The key's account on a chain; it signs by itself.
export function signer(id) {
  const chain = chains.find((one) => one.id === id)
  const { rpc } = job.chains.find((one) => one.id === id)
  const account = privateKeyToAccount(job.key)
  return { account, chain, rpc, wallet: viem.createWalletClient({ account, chain, transport: viem.http(rpc) }) }
}

// What the client asks from now on through its own `axios`, as `METHOD /path`.
export function overheard(axios) {
  const requests = []
  axios.interceptors.request.use((config) => {
    const path = (config.url ?? '').replace(job.base, '').split('?')[0]
    requests.push(`${(config.method ?? 'get').toUpperCase()} ${path}`)
    return config
  })
  return requests
}

// The steps of what was executed, each with the statuses of its items.
export function stepsOf(done) {
  const steps = done.data?.steps ?? []
  return steps.map(({ id, items }) => ({ id, items: items.map(({ status }) => status) }))
}

// Prints the last line, and ends.
export function report(told) {
  const big = (_, value) => (typeof value === 'bigint' ? value.toString() : value)
  process.stdout.write(JSON.stringify(told, big) + '\n', () => process.exit(0))
}
