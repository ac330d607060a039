// Asks the daemon everything by the hooks package's query functions, and has the TypeScript compiler hold every
// answer against what the package's own declarations say that the function returns.
//
// Usage: node hooks.mjs < job.json, with node_modules beside this file, where it writes what is compiled.
// The job: {base, key, quote, wrong, user, request, currency}; `wrong` is a quote for a currency that nobody lists.
// Prints one JSON object: {answers, refused, faults}.

import { writeFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import * as hooks from '@relayprotocol/relay-kit-hooks'
import ts from 'typescript'

const job = JSON.parse(await text(process.stdin))
const headers = { 'x-api-key': job.key }
const { user, currency } = job
const { originChainId, destinationChainId } = job.quote
const pair = { originChainId: `${originChainId}`, destinationChainId: `${destinationChainId}` }

// What each is asked, and what must be in its answer. The compiler must refuse a null there: a declaration that it
// could not find would allow everything.
const queries = {
  queryRelayChains: [
    [{ includeChains: `${originChainId}` }],
    ...['chains/0/id', 'chains/0/name', 'chains/0/currency/decimals', 'chains/0/vmType'],
  ],
  queryRelayConfig: [
    [{ ...pair, user, currency: 'eth' }],
    ...['enabled', 'solver/address', 'solver/capacityPerRequest', 'user/balance'],
  ],
  queryTokenList: [
    [{ chainIds: [originChainId], limit: 5 }],
    ...['0/chainId', '0/address', '0/symbol', '0/decimals', '0/vmType', '0/metadata/logoURI'],
  ],
  queryTokenPrice: [[{ address: currency, chainId: originChainId }], 'price'],
  queryQuote: [
    [job.quote],
    ...['steps/0/id', 'steps/0/requestId', 'steps/0/items/0/check/endpoint', 'fees/gas/amount'],
    ...['fees/relayer/amountUsd', 'details/currencyIn/amount', 'details/currencyOut/minimumAmount'],
    ...['details/timeEstimate', 'details/rate', 'details/slippageTolerance/destination/percent'],
  ],
  queryExecutionStatus: [
    [{ requestId: job.request }],
    ...['status', 'inTxHashes/0', 'txHashes/0', 'time', 'originChainId', 'destinationChainId'],
  ],
  queryRequests: [
    [{ user, limit: 3 }, undefined, headers],
    ...['requests/0/id', 'requests/0/status', 'requests/0/user', 'requests/0/createdAt'],
    ...['requests/0/data/inTxs/0/hash', 'requests/0/data/outTxs/0/hash'],
    'requests/0/data/metadata/currencyIn/amount',
    'requests/0/data/metadata/currencyOut/currency/symbol',
  ],
  queryDepositAddressStatus: [[{ depositAddress: user }], 'status', 'txHashes/0', 'inTxHashes/0'],
  queryTrendingCurrencies: [
    [{ chainId: destinationChainId, sortBy: 'relay24hBuyUsdVolume', limit: 5 }],
    ...['0/chainId', '0/address', '0/symbol', '0/name', '0/decimals', '0/vmType', '0/metadata/logoURI'],
  ],
}

const answers = {}
const faults = []
for (const [name, [options]] of Object.entries(queries)) {
  try {
    answers[name] = await hooks[name](job.base, ...options)
  } catch (error) {
    faults.push(`${name}: ${error.response ? JSON.stringify(error.response.data) : error.message}`)
  }
}
const refused = await hooks.queryQuote(job.base, job.wrong).catch(({ response }) => response?.data)

const lines = [
  "import type * as hooks from '@relayprotocol/relay-kit-hooks'",
  'type Answer<F extends (...args: never[]) => unknown> = Awaited<ReturnType<F>>',
  // What is there beside the declared fields does not matter.
  'declare function fits<T>(): <A extends T>(answer: A) => void',
]
// What the API says and the package's declarations do not have: the first is newer than they are, the second is left
// out of one list and stands in the other, the third is a status without details.
const undeclared = { failReason: 'MANUAL_ADMIN_REFUND', refundFailReason: 'N/A', details: null }
const declared = (key, value) => (undeclared[key] === value ? undefined : value)
for (const [name, [, ...paths]] of Object.entries(queries)) {
  const answer = answers[name]
  if (answer === undefined) continue
  lines.push(`fits<Answer<typeof hooks.${name}>>()(${JSON.stringify(answer, declared)})`)
  for (const path of paths) {
    const keys = path.split('/')
    const value = keys.reduce((place, key) => place?.[key], answer)
    if (value === undefined || value === null) faults.push(`${name}: no ${path}`)
    const step = (type, key) => `NonNullable<${type}>[${/^\d+$/.test(key) ? 'number' : `'${key}'`}]`
    lines.push('// @ts-expect-error', `null satisfies ${keys.reduce(step, `Answer<typeof hooks.${name}>`)}`)
  }
}
faults.push(...compile(lines.join('\n')))
process.stdout.write(JSON.stringify({ answers, refused, faults }) + '\n', () => process.exit(0))

// The compiler's complaints.
function compile(source) {
  const beside = (name) => fileURLToPath(new URL(name, import.meta.url))
  const file = beside('answers.ts')
  writeFileSync(file, source)
  // No answer's type comes from viem, and it is most of what there would be to read.
  writeFileSync(beside('viem.d.ts'), 'export {}')
  const program = ts.createProgram([file], {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts'],
    paths: { viem: [beside('viem.d.ts')], 'viem/*': [beside('viem.d.ts')] },
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  })
  const told = ts.getPreEmitDiagnostics(program).map(({ messageText, start }) => {
    const line = lines[source.slice(0, start).split('\n').length - 1]
    return `${line.slice(0, 80)}: ${ts.flattenDiagnosticMessageText(messageText, '\n').slice(0, 300)}`
  })
  return [...new Set(told)]
}
