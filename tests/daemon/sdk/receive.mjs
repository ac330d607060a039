// An integrator's receiver of webhooks, behind the guide's `genuine` with its imports: verifies what
// was parsed and written again, as the guide and as the published example do, and prints what came.
// KEY is the API key; the first line is the port.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'

createServer(async (request, response) => {
  const body = await json(request)
  const { headers } = request
  const timestamp = headers['x-signature-timestamp']
  const signed = `${timestamp}.${JSON.stringify(body)}`
  const wanted = createHmac('sha256', process.env.KEY).update(signed).digest()
  const given = Buffer.from(headers['x-signature-sha256'] ?? '', 'hex')
  const published = given.length === wanted.length && timingSafeEqual(given, wanted)
  const current = genuine(headers, body, process.env.KEY)
  const old = genuine({ ...headers, 'x-signature-timestamp': timestamp - 600 }, body, process.env.KEY)
  const other = genuine({ ...headers, 'x-event-id': '77' }, body, process.env.KEY)
  response.writeHead(current ? 200 : 401).end()
  const replayed = old || other
  console.log(JSON.stringify({ current, published, replayed, timestamp, body, headers }))
}).listen(0, '127.0.0.1', function () {
  console.log(this.address().port)
})
