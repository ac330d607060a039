// Quotes with a key, and reads the listing to its end while more quotes are made, as an app would.
const { url, key, body } = JSON.parse(process.env.JOB)
const headers = { 'x-api-key': key, 'content-type': 'application/json' }

async function quote() {
  const answer = await fetch(`${url}/quote/v2`, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(await answer.text())
  return (await answer.json()).steps[0].requestId
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
