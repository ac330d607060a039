// Drives one published version of the TypeScript client, unmodified, through what an app does with it:
// quote and execute (the native currency, a token), a refusal, a refund, the list of chains.
//
// Usage: node drive.mjs < job.json, with client.mjs and node_modules beside this file.
// The job: {sdk, base, key, chains: [{id, name, rpc}], native, token, wrong}; the last three are quotes to ask.
// Prints one JSON object, a field for each thing done: {ok: true, ...} or {ok: false, error}.

import { chains, job, overheard, report, signer, stepsOf } from './client.mjs'

const sdk = await import(job.sdk)
// Since version 6 the function is in a module of its own.
const { configureDynamicChains } = sdk.configureDynamicChains ? sdk : await import(`${job.sdk}/chain-utils`)

const requests = overheard(sdk.axios)
const { wallet } = signer(chains[0].id)

const told = {}
const client = as('acceptance.test')
const { chainId, toChainId, currency, toCurrency, user, recipient, amount, tradeType } = job.native
// Only version 2 asks these.
if (client.actions.getPrice) {
  const [originChainId, destinationChainId] = [chainId, toChainId]
  const capacity = { originChainId: `${chainId}`, destinationChainId: `${toChainId}`, user, currency: 'eth' }
  const currencies = { originCurrency: currency, destinationCurrency: toCurrency }
  const price = { originChainId, destinationChainId, ...currencies, amount, tradeType, user, recipient }
  await tell('capacity', () => client.actions.getSolverCapacity(capacity))
  await tell('price', () => client.actions.getPrice(price))
}
await tell('native', () => life(job.native))
await tell('token', () => life(job.token))
await tell('wrong', () => client.actions.getQuote(job.wrong))
as('debug-force-refund')
await tell('refund', () => life(job.native))
await tell('chains', async () => ({ ids: (await configureDynamicChains()).map(({ id }) => id) }))
report({ ...told, requests })

// The client is one object of its module; a second call changes it.
function as(source) {
  return sdk.createClient({
    baseApiUrl: job.base,
    source,
    chains: chains.map(sdk.convertViemChainToRelayChain),
    // Several clients share an address, and with it the questions that it may ask.
    pollingInterval: 600,
    confirmationPollingInterval: 100,
    maxPollingAttemptsBeforeTimeout: 100,
  })
}

// A quote, and every step of it. The quote is in `told` even if a step fails.
async function life(wanted) {
  const quote = await client.actions.getQuote(wanted)
  try {
    const done = await client.actions.execute({ quote, wallet })
    return { quote, steps: stepsOf(done) }
  } catch (error) {
    throw Object.assign(error, { quote })
  }
}

async function tell(name, act) {
  const from = requests.length
  try {
    told[name] = { ok: true, ...(await act()) }
  } catch (error) {
    const { message, rawError, quote } = error
    told[name] = { ok: false, error: message ?? String(error), name: error.name, raw: rawError, quote }
  }
  told[name].requests = [...new Set(requests.slice(from))]
}
