// Quotes with a key, deposits, and reads the listing to its end while more of them come, as an app would.
const { url, key, body, rpc } = JSON.parse(process.env.JOB)
const headers = { 'x-api-key': key, 'content-type': 'application/json' }

async function quote() {
  const answer = await fetch(`${url}/quote/v2`, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(await answer.text())
  const { steps } = await answer.json()
  const { from, to, value, data } = steps.find((step) => step.kind === 'transaction').items[0].data
  await ask('eth_sendTransaction', [{ from, to, data, value: `0x${BigInt(value).toString(16)}` }])
  const id = steps[0].requestId
  await listed(id)
  return id
}

async function ask(method, params) {
  const call = { jsonrpc: '2.0', id: 1, method, params }
  const answer = await fetch(rpc, { method: 'POST', headers, body: JSON.stringify(call) })
  const { error } = await answer.json()
  if (error) throw new Error(JSON.stringify(error))
}

// A quote is in the listing once somebody has acted on it.
async function listed(id) {
  for (let looks = 0; looks < 300; looks++) {
    const answer = await fetch(`${url}/requests/v3?limit=50&apiKey=app`, { headers })
    if (!answer.ok) throw new Error(await answer.text())
    if ((await answer.json()).requests.some((request) => request.id === id)) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`${id} is not listed`)
}

async function* pages(query) {
  let continuation
  do {
    const more = continuation ? `&continuation=${encodeURIComponent(continuation)}` : ''
    const answer = await fetch(`${url}/requests/v3?${query}${more}`, { headers })
    if (!answer.ok) throw new Error(await answer.text())
    const page = await answer.json()
    yield page.requests.map((request) => request.id)
    continuation = page.continuation
  } while (continuation)
}

await ask('anvil_impersonateAccount', [body.user])
const made = []
for (let n = 0; n < 14; n++) made.push(await quote())
const told = {}
for (const direction of ['desc', 'asc']) {
  const before = [...made]
  const seen = []
  for await (const page of pages(`limit=3&sortDirection=${direction}&apiKey=app`)) {
    seen.push(...page)
    if (made.length < before.length + 8) made.push(await quote(), await quote())
  }
  const missed = before.filter((id) => !seen.includes(id))
  const twice = seen.filter((id, at) => seen.indexOf(id) !== at)
  told[direction] = { before: before.length, made: made.length, seen: seen.length, missed, twice }
}
console.log(JSON.stringify(told))
