// An integrator's receiver of webhooks: verifies what was parsed and written again, as the published
// example does, and prints what came. KEY is the API key; the first line is the port.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'

createServer(async (request, response) => {
  const body = await json(request)
  const timestamp = request.headers['x-signature-timestamp']
  const signed = `${timestamp}.${JSON.stringify(body)}`
  const wanted = createHmac('sha256', process.env.KEY).update(signed).digest()
  const given = Buffer.from(request.headers['x-signature-sha256'] ?? '', 'hex')
  const genuine = given.length === wanted.length && timingSafeEqual(given, wanted)
  response.writeHead(genuine ? 200 : 401).end()
  console.log(JSON.stringify({ genuine, timestamp, body, headers: request.headers }))
}).listen(0, '127.0.0.1', function () {
  console.log(this.address().port)
})
